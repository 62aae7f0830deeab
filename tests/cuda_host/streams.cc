#include "tests/cuda_host/streams.h"

#include <utility>

#include "base/status.h"
#include "tests/cuda_host/activity.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"

namespace host = switchyard::cuda_host;

namespace switchyard::cuda_host {
namespace {

struct Recording {
  CUstream_st* stream = nullptr;
};

Recording& TheRecording() {
  static auto* recording = new Recording;
  return *recording;
}

}  // namespace

std::recursive_mutex& RuntimeMutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

CUstream_st& StreamOf(cudaStream_t stream) {
  static auto* default_stream = new CUstream_st;
  return stream == nullptr ? *default_stream : *stream;
}

void Enqueue(cudaStream_t stream, QueuedWork work) {
  CUstream_st& to = StreamOf(stream);
  if (to.recording != nullptr) {
    to.recording->work.push_back(std::move(work));
  } else {
    to.work.push_back(std::move(work));
  }
}

bool RunAll(CUstream_st& stream) {
  const bool had_work = !stream.work.empty();
  while (!stream.work.empty()) {
    const QueuedWork next = std::move(stream.work.front());
    stream.work.pop_front();
    if (CurrentFault() == Fault::kNone) {  // a device that failed does nothing more
      next();
    }
  }
  return had_work;
}

bool RefuseWhileRecording(const char* call) {
  if (TheRecording().stream == nullptr) {
    return false;
  }
  Report(Fault::kWrongCapture, Concat(call, " while a stream is being captured"));
  return true;
}

cudaError_t LastError() {
  return CurrentFault() == Fault::kNone ? cudaSuccess : cudaErrorLaunchFailure;
}

Activity& CurrentActivity() {
  static auto* activity = new Activity;
  return *activity;
}

Activity TakeActivity() {
  const std::lock_guard lock(RuntimeMutex());
  return std::exchange(CurrentActivity(), Activity());
}

}  // namespace switchyard::cuda_host

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  const std::lock_guard lock(host::RuntimeMutex());
  if (stream == nullptr) {
    host::Report(host::Fault::kWrongCapture, "the default stream cannot be captured");
    return cudaErrorInvalidValue;
  }
  if (host::RefuseWhileRecording("cudaStreamBeginCapture")) {
    return cudaErrorInvalidValue;
  }
  stream->recording = new CUgraph_st;
  host::TheRecording().stream = stream;
  host::StartNotingAllocations();
  return host::LastError();
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(host::RuntimeMutex());
  *graph = nullptr;
  if (stream == nullptr || stream->recording == nullptr) {
    host::Report(host::Fault::kWrongCapture, "the stream was not being captured");
    return cudaErrorInvalidValue;
  }
  *graph = std::exchange(stream->recording, nullptr);
  host::TheRecording().stream = nullptr;
  (*graph)->allocations = host::NotedAllocations();
  ++host::CurrentActivity().graphs_recorded;
  return host::LastError();
}

cudaError_t cudaGraphInstantiate(
    cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long /*flags*/
) {
  const std::lock_guard lock(host::RuntimeMutex());
  *executable = nullptr;
  void* const memory = host::AllocateDevice(host::kGraphBytes);
  if (memory == nullptr) {
    return cudaErrorMemoryAllocation;
  }
  *executable = new CUgraphExec_st{*graph, memory};
  return host::LastError();
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::lock_guard lock(host::RuntimeMutex());
  host::FreeDevice(executable->memory);
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(host::RuntimeMutex());
  if (host::RefuseWhileRecording("cudaGraphLaunch")) {
    return host::LastError();
  }
  for (const void* allocation : executable->graph.allocations) {
    if (!host::IsLiveAllocation(allocation)) {
      host::Report(
          host::Fault::kUseAfterFree, "a graph reaches memory that was freed after its capture"
      );
      return host::LastError();
    }
  }
  for (const QueuedWork& work : executable->graph.work) {
    host::Enqueue(stream, work);
  }
  ++host::CurrentActivity().graph_launches;
  return host::LastError();
}
