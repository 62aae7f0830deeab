#include "kernels/cuda/cuda_ops.h"

#include "base/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace switchyard {
namespace {

constexpr int64_t kStagingBytes = int64_t{16} << 20;

}  // namespace

StatusOr<std::unique_ptr<Ops>> CudaOps::Create(int device, bool graphs) {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    return Unavailable("no CUDA device: ", cudaGetErrorString(error));
  }
  if (device < 0 || device >= devices) {
    return Unavailable("CUDA device ", device, " does not exist; this machine has ", devices);
  }
  std::unique_ptr<CudaOps> ops(new CudaOps(device, graphs));
  RETURN_IF_ERROR(ops->Initialize());
  return ops;
}

Status CudaOps::Initialize() {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "choose the device"));
  int shared_bytes = 0;
  RETURN_IF_ERROR(CudaStatus(
      cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device_),
      "ask for the number of multiprocessors"
  ));
  RETURN_IF_ERROR(CudaStatus(
      cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_),
      "ask for the shared memory"
  ));
  max_shared_bytes_ = shared_bytes;
  ASSIGN_OR_RETURN(stream_, DeviceStream::Create());
  ASSIGN_OR_RETURN(staging_, Staging::Create(stream_->get(), kStagingBytes));
  ASSIGN_OR_RETURN(expert_bytes_, DeviceMemory::Allocate(sizeof(int64_t)));
  return CudaStatus(
      cudaMemsetAsync(expert_bytes_->data(), 0, sizeof(int64_t), stream_->get()), "clear a counter"
  );
}

CudaOps::~CudaOps() {
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_->get());
  }
  staging_.reset();  // before its stream
}

bool CudaOps::Note(const Status& status) {
  if (status_.ok()) {
    status_ = status;
  }
  return status_.ok();
}

void* CudaOps::Grow(GrowingMemory& memory, int64_t bytes) {
  if (!status_.ok()) {
    return nullptr;
  }
  if (memory.bytes() < bytes) {
    ++work_memory_epoch_;
  }
  StatusOr<void*> data = memory.Get(bytes);
  return Note(data.status()) ? *data : nullptr;
}

int64_t CudaOps::AvailableBytes() const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (!status_.ok() || cudaSetDevice(device_) != cudaSuccess ||
      cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
    return 0;
  }
  return static_cast<int64_t>(free_bytes);
}

StatusOr<std::unique_ptr<Buffer>> CudaOps::Allocate(int64_t bytes) {
  RETURN_IF_ERROR(status_);
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "choose the device"));
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, DeviceMemory::Allocate(bytes));
  if (bytes > 0) {
    RETURN_IF_ERROR(CudaStatus(
        cudaMemsetAsync(memory->data(), 0, static_cast<size_t>(bytes), stream_->get()),
        "clear memory"
    ));
  }
  return std::unique_ptr<Buffer>(std::move(memory));
}

void CudaOps::Upload(const void* host, void* device, int64_t bytes) {
  if (status_.ok()) {
    Note(staging_->Upload(host, device, bytes));
  }
}

void CudaOps::Download(const void* device, void* host, int64_t bytes) {
  if (status_.ok()) {
    Note(staging_->Download(device, host, bytes));
  }
}

void CudaOps::Copy(const void* from, void* to, int64_t bytes) {
  if (status_.ok() && bytes > 0) {
    Note(CudaStatus(
        cudaMemcpyAsync(
            to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_->get()
        ),
        "copy within the device"
    ));
  }
}

int64_t CudaOps::WeightBytesRead() const {
  int64_t expert_bytes = 0;
  if (status_.ok() &&
      !staging_->Download(expert_bytes_->data(), &expert_bytes, sizeof(expert_bytes)).ok()) {
    return host_weight_bytes_;
  }
  return host_weight_bytes_ + expert_bytes;
}

Status CudaOps::Finish() {
  if (status_.ok()) {
    Note(CudaStatus(cudaStreamSynchronize(stream_->get()), "wait for the step"));
  }
  return status_;
}

StatusOr<std::unique_ptr<Ops>> MakeCudaOps(int device, bool graphs) {
  return CudaOps::Create(device, graphs);
}

}  // namespace switchyard
