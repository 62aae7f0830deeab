#include "kernels/cuda/device_memory.h"

#include <algorithm>

#include "base/check.h"

namespace switchyard {

Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) {
    return OkStatus();
  }
  return Internal("CUDA: ", what, ": ", cudaGetErrorString(error));
}

StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::Allocate(int64_t bytes) {
  CHECK(bytes >= 0) << "bytes=" << bytes;
  void* data = nullptr;
  // Never nothing: views of no elements need an address, too.
  if (cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1))) != cudaSuccess) {
    cudaGetLastError();  // the failed call must not be taken for a fault of the next kernel
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    return ResourceExhausted(
        "cannot allocate ",
        bytes,
        " bytes on the device; it has ",
        free_bytes,
        " bytes available of ",
        total_bytes,
        "; use a smaller cache or model, or a device with more memory"
    );
  }
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(data, bytes));
}

DeviceMemory::~DeviceMemory() {
  cudaFree(data_);
}

StatusOr<void*> GrowingMemory::Get(int64_t bytes) {
  if (memory_ == nullptr || memory_->bytes() < bytes) {
    memory_.reset();  // first, so that both need not fit
    ASSIGN_OR_RETURN(memory_, DeviceMemory::Allocate(bytes));
  }
  return memory_->data();
}

StatusOr<std::unique_ptr<DeviceStream>> DeviceStream::Create() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream")
  );
  return std::unique_ptr<DeviceStream>(new DeviceStream(stream));
}

DeviceStream::~DeviceStream() {
  cudaStreamDestroy(stream_);
}

}  // namespace switchyard
