#include <cuda_runtime.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/status.h"
#include "tests/cuda_host/activity.h"
#include "tests/cuda_host/block_runner.h"
#include "tests/cuda_host/launch.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/streams.h"

namespace sy = switchyard;
namespace host = switchyard::cuda_host;

struct CUevent_st {
  cudaStream_t stream = nullptr;  // whose work must be done; all that is queued counts
};

namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr unsigned kMaxBlockZ = 64;
constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridYz = 65535;
constexpr size_t kSharedWithoutAttribute = size_t{48} * 1024;
constexpr int kMultiprocessors = 2;

struct Device {
  std::set<cudaStream_t> streams;
  std::map<const void*, size_t> dynamic_shared_limits;
  std::map<const void*, std::string> names;
  host::BlockRunner runner;
};

Device& TheDevice() {
  static auto* device = new Device;
  return *device;
}

// A wait for one stream or, for null, the default one.
void WaitFor(cudaStream_t stream) {
  if (host::RunAll(host::StreamOf(stream))) {
    ++host::CurrentActivity().waits;
  }
}

void WaitForEverything() {
  WaitFor(nullptr);
  for (cudaStream_t stream : TheDevice().streams) {
    WaitFor(stream);
  }
}

std::string KernelName(const void* kernel) {
  Dl_info info;
  if (dladdr(kernel, &info) == 0 || info.dli_sname == nullptr) {
    return "a kernel";
  }
  int status = 0;
  char* demangled = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : info.dli_sname;
  std::free(demangled);
  return name.substr(0, name.find('('));
}

// "" when a device would run it.
std::string BrokenLimit(const host::LaunchRequest& request, size_t shared_limit) {
  const dim3& block = request.block;
  const dim3& grid = request.grid;
  const int64_t threads = int64_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > kMaxThreads || block.z > kMaxBlockZ) {
    return sy::Concat(threads, " threads in a block; a device takes 1 to ", kMaxThreads);
  }
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > kMaxGridX || grid.y > kMaxGridYz ||
      grid.z > kMaxGridYz) {
    return sy::Concat("a grid of ", grid.x, " x ", grid.y, " x ", grid.z, " blocks");
  }
  if (request.dynamic_shared_bytes > shared_limit) {
    return sy::Concat(
        request.dynamic_shared_bytes, " bytes of shared memory; the kernel may have ", shared_limit
    );
  }
  return "";
}

void Copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  const auto count = static_cast<int64_t>(bytes);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  void* to = to_device ? host::BytesOfDevice(target, count) : target;
  const void* from = from_device ? host::BytesOfDevice(source, count) : source;
  if (to != nullptr && from != nullptr) {
    std::memmove(to, from, bytes);
  }
}

}  // namespace

namespace switchyard::cuda_host {

void EnqueueLaunch(const LaunchRequest& request, std::function<void()> one_thread) {
  Device& device = TheDevice();
  const std::lock_guard lock(RuntimeMutex());
  const auto limit = device.dynamic_shared_limits.find(request.kernel);
  const size_t shared_limit =
      limit == device.dynamic_shared_limits.end() ? kSharedWithoutAttribute : limit->second;
  std::string& name = device.names[request.kernel];
  if (name.empty()) {
    name = KernelName(request.kernel);
  }
  if (const std::string broken = BrokenLimit(request, shared_limit); !broken.empty()) {
    Report(Fault::kLaunchLimit, name + ": " + broken);
    return;
  }
  LaunchedGrid grid = {
      .body = std::move(one_thread),
      .name = name,
      .grid = {request.grid.x, request.grid.y, request.grid.z},
      .block = {request.block.x, request.block.y, request.block.z},
      .dynamic_shared_bytes = static_cast<int64_t>(request.dynamic_shared_bytes)};
  ++CurrentActivity().launches;
  Enqueue(request.stream, [&device, grid = std::move(grid)] { device.runner.Run(grid); });
}

void AllowDynamicShared(const void* kernel, size_t bytes) {
  Device& device = TheDevice();
  const std::lock_guard lock(RuntimeMutex());
  if (bytes > static_cast<size_t>(SharedMemory::kMaxDynamicBytes)) {
    Report(
        Fault::kLaunchLimit,
        Concat(bytes, " bytes of shared memory; a device has ", SharedMemory::kMaxDynamicBytes)
    );
    return;
  }
  size_t& limit = device.dynamic_shared_limits[kernel];
  limit = std::max({limit, bytes, kSharedWithoutAttribute});
}

}  // namespace switchyard::cuda_host

cudaError_t cudaGetDeviceCount(int* count) {
  *count = host::DeviceExists() ? 1 : 0;
  return host::DeviceExists() ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = host::SharedMemory::kMaxDynamicBytes;
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const host::MemoryInfo info = host::DeviceMemory();
  *free_bytes = static_cast<size_t>(info.free_bytes);
  *total_bytes = static_cast<size_t>(info.total_bytes);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return host::LastError();
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    default:
      break;
  }
  static thread_local std::string message;
  message = host::CurrentMessage();
  return message.c_str();
}

cudaError_t cudaMalloc(void** device, size_t bytes) {
  const std::lock_guard lock(host::RuntimeMutex());
  *device = nullptr;
  if (host::RefuseWhileRecording("cudaMalloc")) {
    return host::LastError();
  }
  ++host::CurrentActivity().allocations;
  *device = host::AllocateDevice(static_cast<int64_t>(std::min(bytes, size_t{1} << 50)));
  return *device == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Waits for the device, as the real one does.
cudaError_t cudaFree(void* device) {
  const std::lock_guard lock(host::RuntimeMutex());
  host::RefuseWhileRecording("cudaFree");
  WaitForEverything();
  host::FreeDevice(device);
  return host::LastError();
}

cudaError_t cudaMallocHost(void** host, size_t bytes) {
  *host = host::AllocatePinned(static_cast<int64_t>(bytes));
  return *host == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFreeHost(void* host) {
  const std::lock_guard lock(host::RuntimeMutex());
  WaitForEverything();
  host::FreePinned(host);
  return host::LastError();
}

cudaError_t cudaMemcpyAsync(
    void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream
) {
  const std::lock_guard lock(host::RuntimeMutex());
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != host::IsDevice(target) || from_device != host::IsDevice(source)) {
    host::Report(
        host::Fault::kWrongCopy,
        sy::Concat("a copy of kind ", static_cast<int>(kind), " from ", source, " to ", target)
    );
    return host::LastError();
  }
  const void* const host_side = to_device ? source : target;
  if (to_device != from_device && !host::IsPinned(host_side, static_cast<int64_t>(bytes))) {
    host::Report(
        host::Fault::kWrongCopy,
        sy::Concat("an asynchronous copy of ", bytes, " bytes of host memory that is not pinned")
    );
    return host::LastError();
  }
  host::CurrentActivity().uploads += kind == cudaMemcpyHostToDevice ? 1 : 0;
  host::CurrentActivity().downloads += kind == cudaMemcpyDeviceToHost ? 1 : 0;
  host::Enqueue(stream, [=] { Copy(target, source, bytes, kind); });
  return host::LastError();
}

cudaError_t cudaMemsetAsync(void* device, int byte, size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(host::RuntimeMutex());
  host::Enqueue(stream, [=] {
    void* target = host::BytesOfDevice(device, static_cast<int64_t>(bytes));
    if (target != nullptr) {
      std::memset(target, byte, bytes);
    }
  });
  return host::LastError();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const std::lock_guard lock(host::RuntimeMutex());
  *stream = new CUstream_st;
  TheDevice().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(host::RuntimeMutex());
  host::RunAll(*stream);
  TheDevice().streams.erase(stream);
  delete stream;
  return host::LastError();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(host::RuntimeMutex());
  if (!host::RefuseWhileRecording("cudaStreamSynchronize")) {
    WaitFor(stream);
  }
  return host::LastError();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(host::RuntimeMutex());
  if (event->stream != nullptr) {
    WaitFor(event->stream);
  }
  return host::LastError();
}
