#include "kernels/backend.h"

#include "kernels/cpu/cpu_ops.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

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
  if (options.device == "auto" || options.device == "cpu") {
    return MakeCpuOps(options.threads);
  }
  return InvalidArgument("device is \"", options.device, "\"; use auto, cpu or reference");
}

}  // namespace switchyard
