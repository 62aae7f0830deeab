#pragma once

#include <cstdint>

namespace switchyard {

// 1 GB that serves as weights of any dtype, far more than the caches hold: 16-bit words that make
// ordinary numbers as bf16, as f16 and, in pairs, as f32. On huge pages where the system has them.
class WeightMemory {
 public:
  static constexpr int64_t kBytes = int64_t{1} << 30;

  WeightMemory();
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;
  ~WeightMemory();

  char* data() const { return data_; }

 private:
  char* data_;
};

}  // namespace switchyard
