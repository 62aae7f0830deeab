#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

// Work of a stream waits until somebody waits for it, so that memory which is freed, overwritten or
// read too early shows up as such.

using QueuedWork = std::function<void()>;

struct CUgraph_st {
  std::vector<QueuedWork> work;
  std::vector<const void*> allocations;  // that its kernels reach
};
struct CUgraphExec_st {
  CUgraph_st graph;
  void* memory = nullptr;  // of the device
};
struct CUstream_st {
  std::deque<QueuedWork> work;
  CUgraph_st* recording = nullptr;  // where work goes while it is captured
};

namespace switchyard::cuda_host {

// What an executable graph takes on the device.
inline constexpr int64_t kGraphBytes = 4096;

// One lock for all of the runtime's state.
std::recursive_mutex& RuntimeMutex();

// The stream itself, or the default one for null.
CUstream_st& StreamOf(cudaStream_t stream);

// Behind what the stream has, or into the graph that is being recorded. Requires: the mutex.
void Enqueue(cudaStream_t stream, QueuedWork work);

// Runs what the stream has. True when there was anything, so that a caller had to wait. Requires:
// the mutex.
bool RunAll(CUstream_st& stream);

// A fault when some stream is being recorded, as a device would refuse the call. Requires: the
// mutex.
bool RefuseWhileRecording(const char* call);

cudaError_t LastError();

}  // namespace switchyard::cuda_host
