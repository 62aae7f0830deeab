#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// INTERNAL with what the runtime says; OK for cudaSuccess.
Status CudaStatus(cudaError_t error, const char* what);

// Memory of the current device, uninitialised.
class DeviceMemory final : public Buffer {
 public:
  // RESOURCE_EXHAUSTED, with both numbers, when the device has not so much.
  static StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t bytes);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override;

  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  DeviceMemory(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  void* data_;
  int64_t bytes_;
};

// Device memory that is allocated anew when more is asked of it than it has. What it held is lost
// then.
class GrowingMemory {
 public:
  StatusOr<void*> Get(int64_t bytes);
  int64_t bytes() const { return memory_ == nullptr ? 0 : memory_->bytes(); }

 private:
  std::unique_ptr<DeviceMemory> memory_;
};

// A stream of the current device.
class DeviceStream {
 public:
  static StatusOr<std::unique_ptr<DeviceStream>> Create();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream();

  cudaStream_t get() const { return stream_; }

 private:
  explicit DeviceStream(cudaStream_t stream) : stream_(stream) {}

  cudaStream_t stream_;
};

}  // namespace switchyard
