#include <cuda_runtime.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/status.h"
#include "tests/cuda_host/block_runner.h"
#include "tests/cuda_host/launch.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"

// Work of a stream waits until somebody waits for it, so that memory which is freed, overwritten or
// read too early shows up as such.

namespace sy = switchyard;
namespace host = switchyard::cuda_host;

struct CUstream_st {
  std::deque<std::function<void()>> work;
};
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
  std::recursive_mutex mutex;
  CUstream_st default_stream;
  std::set<cudaStream_t> streams;
  std::map<const void*, size_t> dynamic_shared_limits;
  std::map<const void*, std::string> names;
  host::BlockRunner runner;
};

Device& TheDevice() {
  static auto* device = new Device;
  return *device;
}

CUstream_st& StreamOf(cudaStream_t stream) {
  return stream == nullptr ? TheDevice().default_stream : *stream;
}

cudaError_t LastError() {
  return host::CurrentFault() == host::Fault::kNone ? cudaSuccess : cudaErrorLaunchFailure;
}

void RunAll(CUstream_st& stream) {
  while (!stream.work.empty()) {
    const std::function<void()> next = std::move(stream.work.front());
    stream.work.pop_front();
    if (host::CurrentFault() == host::Fault::kNone) {  // a device that failed does nothing more
      next();
    }
  }
}

void RunEverything() {
  Device& device = TheDevice();
  RunAll(device.default_stream);
  for (cudaStream_t stream : device.streams) {
    RunAll(*stream);
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
  const std::lock_guard lock(device.mutex);
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
  StreamOf(request.stream).work.emplace_back([&device, grid = std::move(grid)] {
    device.runner.Run(grid);
  });
}

void AllowDynamicShared(const void* kernel, size_t bytes) {
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
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
  return LastError();
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
  *device = host::AllocateDevice(static_cast<int64_t>(std::min(bytes, size_t{1} << 50)));
  return *device == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Waits for the device, as the real one does.
cudaError_t cudaFree(void* device) {
  const std::lock_guard lock(TheDevice().mutex);
  RunEverything();
  host::FreeDevice(device);
  return LastError();
}

cudaError_t cudaMallocHost(void** host, size_t bytes) {
  *host = host::AllocatePinned(static_cast<int64_t>(bytes));
  return *host == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFreeHost(void* host) {
  const std::lock_guard lock(TheDevice().mutex);
  RunEverything();
  host::FreePinned(host);
  return LastError();
}

cudaError_t cudaMemcpyAsync(
    void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream
) {
  const std::lock_guard lock(TheDevice().mutex);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != host::IsDevice(target) || from_device != host::IsDevice(source)) {
    host::Report(
        host::Fault::kWrongCopy,
        sy::Concat("a copy of kind ", static_cast<int>(kind), " from ", source, " to ", target)
    );
    return LastError();
  }
  const void* const host_side = to_device ? source : target;
  if (to_device != from_device && !host::IsPinned(host_side, static_cast<int64_t>(bytes))) {
    host::Report(
        host::Fault::kWrongCopy,
        sy::Concat("an asynchronous copy of ", bytes, " bytes of host memory that is not pinned")
    );
    return LastError();
  }
  StreamOf(stream).work.emplace_back([=] { Copy(target, source, bytes, kind); });
  return LastError();
}

cudaError_t cudaMemsetAsync(void* device, int byte, size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(TheDevice().mutex);
  StreamOf(stream).work.emplace_back([=] {
    void* target = host::BytesOfDevice(device, static_cast<int64_t>(bytes));
    if (target != nullptr) {
      std::memset(target, byte, bytes);
    }
  });
  return LastError();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const std::lock_guard lock(TheDevice().mutex);
  *stream = new CUstream_st;
  TheDevice().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(TheDevice().mutex);
  RunAll(*stream);
  TheDevice().streams.erase(stream);
  delete stream;
  return LastError();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(TheDevice().mutex);
  RunAll(StreamOf(stream));
  return LastError();
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
  const std::lock_guard lock(TheDevice().mutex);
  if (event->stream != nullptr) {
    RunAll(*event->stream);
  }
  return LastError();
}
