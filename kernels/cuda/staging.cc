#include "kernels/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/device_memory.h"

namespace switchyard {

StatusOr<std::unique_ptr<Staging>> Staging::Create(cudaStream_t stream, int64_t buffer_bytes) {
  std::unique_ptr<Staging> staging(new Staging(stream, buffer_bytes));
  for (PinnedBuffer& buffer : staging->buffers_) {
    RETURN_IF_ERROR(CudaStatus(
        cudaMallocHost(&buffer.data, static_cast<size_t>(buffer_bytes)), "pin host memory"
    ));
    RETURN_IF_ERROR(CudaStatus(
        cudaEventCreateWithFlags(&buffer.fetched, cudaEventDisableTiming), "create an event"
    ));
  }
  return staging;
}

Staging::~Staging() {
  cudaStreamSynchronize(stream_);
  for (const PinnedBuffer& buffer : buffers_) {
    if (buffer.fetched != nullptr) {
      cudaEventDestroy(buffer.fetched);
    }
    if (buffer.data != nullptr) {
      cudaFreeHost(buffer.data);
    }
  }
}

Status Staging::Upload(const void* host, void* device, int64_t bytes) {
  const auto* from = static_cast<const char*>(host);
  auto* to = static_cast<char*>(device);
  for (int64_t begin = 0; begin < bytes; begin += buffer_bytes_) {
    const auto count = static_cast<size_t>(std::min(buffer_bytes_, bytes - begin));
    const PinnedBuffer& buffer = buffers_[next_];
    next_ = (next_ + 1) % buffers_.size();
    RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(buffer.fetched), "wait for a copy"));
    std::memcpy(buffer.data, from + begin, count);
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(to + begin, buffer.data, count, cudaMemcpyHostToDevice, stream_),
        "copy to the device"
    ));
    RETURN_IF_ERROR(CudaStatus(cudaEventRecord(buffer.fetched, stream_), "record an event"));
  }
  return OkStatus();
}

Status Staging::Download(const void* device, void* host, int64_t bytes) {
  const auto* from = static_cast<const char*>(device);
  auto* to = static_cast<char*>(host);
  for (int64_t begin = 0; begin < bytes; begin += buffer_bytes_) {
    const auto count = static_cast<size_t>(std::min(buffer_bytes_, bytes - begin));
    void* pinned = buffers_[next_].data;
    // Behind everything on the stream, so behind the last copy out of the buffer, too.
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(pinned, from + begin, count, cudaMemcpyDeviceToHost, stream_),
        "copy from the device"
    ));
    RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream_), "wait for the device"));
    std::memcpy(to + begin, pinned, count);
  }
  return OkStatus();
}

}  // namespace switchyard
