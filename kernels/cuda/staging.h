#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace switchyard {

// Copies between host memory of any kind and the device, through two pinned buffers: while the
// device fetches one, the other is filled, so that reading a file and copying it overlap.
class Staging {
 public:
  // On `stream`, which must outlive it.
  static StatusOr<std::unique_ptr<Staging>> Create(cudaStream_t stream, int64_t buffer_bytes);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  // The host memory may change as soon as this returns; the copy may still be under way.
  Status Upload(const void* host, void* device, int64_t bytes);
  // Waits for the stream.
  Status Download(const void* device, void* host, int64_t bytes);

 private:
  explicit Staging(cudaStream_t stream, int64_t buffer_bytes)
      : stream_(stream), buffer_bytes_(buffer_bytes) {}

  struct PinnedBuffer {
    void* data = nullptr;
    cudaEvent_t fetched = nullptr;  // the last copy out of it is done
  };

  cudaStream_t stream_;
  int64_t buffer_bytes_;
  std::array<PinnedBuffer, 2> buffers_ = {};
  size_t next_ = 0;
};

}  // namespace switchyard
