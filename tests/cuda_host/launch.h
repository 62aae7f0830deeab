#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace switchyard::cuda_host {

// Queues a grid on a stream. `kernel` names it in reports and holds its attributes.
struct LaunchRequest {
  const void* kernel = nullptr;
  dim3 grid;
  dim3 block;
  size_t dynamic_shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
void EnqueueLaunch(const LaunchRequest& request, std::function<void()> one_thread);

// How much dynamic shared memory a kernel may be launched with.
void AllowDynamicShared(const void* kernel, size_t bytes);

}  // namespace switchyard::cuda_host
