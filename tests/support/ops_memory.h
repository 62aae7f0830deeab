#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "kernels/ops.h"

namespace switchyard {

// A weight for a test, as float32 numbers; narrowed to `dtype` when it is handed over.
struct TestWeight {
  WeightRole role = WeightRole::kDense;
  WeightLayout layout = WeightLayout::kOutIn;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<float> values;
  TensorPlace place = TensorPlace::kHost;
};

// Tensors and weights of one backend, filled from and read back to plain vectors, so that a test
// never dereferences memory of the backend. Frees everything with itself; the Ops must outlive it.
class OpsMemory {
 public:
  explicit OpsMemory(Ops& ops) : ops_(ops) {}

  TensorView Floats(std::initializer_list<int64_t> shape, const std::vector<float>& values);
  TensorView Ints(std::initializer_list<int64_t> shape, const std::vector<int32_t>& values);
  TensorView Zeros(DType dtype, std::initializer_list<int64_t> shape);
  Weight AddWeight(const TestWeight& weight);
  // kVector
  Weight AddVector(const std::vector<float>& values, DType dtype = DType::kF32);

  std::vector<float> ReadFloats(TensorView view) const;
  std::vector<int32_t> ReadInts(TensorView view) const;
  std::vector<int64_t> ReadLongs(TensorView view) const;

 private:
  Ops& ops_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> weights_;
};

// Evenly spread in [-1, 1); the same for the same seed on every machine.
std::vector<float> RandomFloats(int64_t count, uint64_t seed);
// Evenly spread in 0 .. limit - 1.
std::vector<int32_t> RandomInts(int64_t count, int32_t limit, uint64_t seed);

}  // namespace switchyard
