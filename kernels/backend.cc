#include "kernels/backend.h"

#include <charconv>
#include <string_view>

#include "base/log.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/reference/reference_ops.h"
#if defined(SWITCHYARD_HAS_CUDA)
#include "kernels/cuda/cuda_backend.h"
#endif

namespace switchyard {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::string_view kCuda = "cuda";

StatusOr<std::unique_ptr<Ops>> MakeCuda(int device, [[maybe_unused]] bool graphs) {
#if defined(SWITCHYARD_HAS_CUDA)
  return MakeCudaOps(device, graphs);
#else
  return Unavailable(
      "no CUDA device ", device, ": this program was built without CUDA (SWITCHYARD_CUDA=OFF)"
  );
#endif
}

// N of "cuda:N", 0 of "cuda"; -1 for anything else.
int CudaDeviceOf(std::string_view name) {
  if (!name.starts_with(kCuda)) {
    return -1;
  }
  name.remove_prefix(kCuda.size());
  if (name.empty()) {
    return 0;
  }
  int device = -1;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + 1, end, device);
  const bool is_number = name.front() == ':' && error == std::errc() && stopped == end;
  return is_number && device >= 0 ? device : -1;
}

StatusOr<std::unique_ptr<Ops>> MakeBest(const BackendOptions& options) {
  StatusOr<std::unique_ptr<Ops>> cuda = MakeCuda(0, options.cuda_graphs);
  if (cuda.ok()) {
    return cuda;
  }
  LogInfo("event=device_chosen device=cpu reason=\"{}\"", MessageOf(cuda.status()));
  return MakeCpuOps(options.threads);
}

}  // namespace

bool IsDeviceName(const std::string& device) {
  return device == "auto" || device == "cpu" || device == "reference" || CudaDeviceOf(device) >= 0;
}

StatusOr<std::unique_ptr<Ops>> MakeOps(const BackendOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument(
        "threads is ",
        options.threads,
        "; it must be 1 to ",
        kMaxThreads,
        ", or 0 for one thread on each usable core"
    );
  }
  if (options.device == "reference") {
    return std::make_unique<ReferenceOps>();
  }
  if (options.device == "cpu") {
    return MakeCpuOps(options.threads);
  }
  if (options.device == "auto") {
    return MakeBest(options);
  }
  if (const int device = CudaDeviceOf(options.device); device >= 0) {
    return MakeCuda(device, options.cuda_graphs);
  }
  return InvalidArgument(
      "device is \"", options.device, "\"; use auto, cpu, cuda, cuda:N or reference"
  );
}

}  // namespace switchyard
