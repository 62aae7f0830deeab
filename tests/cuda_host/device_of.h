#pragma once

#include <cstdint>

#include "tests/cuda_host/memory.h"

namespace switchyard {

// The device has so much memory while this lives.
class DeviceOf {
 public:
  explicit DeviceOf(int64_t bytes) : before_(cuda_host::DeviceMemory().total_bytes) {
    cuda_host::SetDeviceMemory(bytes);
  }
  DeviceOf(const DeviceOf&) = delete;
  DeviceOf& operator=(const DeviceOf&) = delete;
  ~DeviceOf() { cuda_host::SetDeviceMemory(before_); }

 private:
  int64_t before_;
};

}  // namespace switchyard
