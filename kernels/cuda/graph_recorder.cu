#include <algorithm>
#include <unordered_map>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/graph_failure.h"

namespace switchyard {
namespace {

// Each is a few hundred kernels, about a megabyte of device memory.
constexpr int64_t kMaxRecordings = 128;

}  // namespace

// Verbs of a key run once as they are, so that what they allocate is there; the second time they
// are captured as a graph, and from then on launched as that.
class CudaOps::GraphRecorder final : public VerbRecorder {
 public:
  explicit GraphRecorder(CudaOps& ops) : ops_(ops) {}
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;
  ~GraphRecorder() override { ForgetGraphs(); }

  void Run(uint64_t key, const std::function<void()>& verbs) override;
  int64_t MaxRecordings() const override { return kMaxRecordings; }

 private:
  struct Recording {
    cudaGraphExec_t graph = nullptr;  // null: not captured yet
    int64_t weight_bytes = 0;         // that the host counts for it
    int64_t used_at = 0;
  };

  void Capture(const std::function<void()>& verbs, Recording& recording);
  // Keeps what has run, drops the graphs: they hold addresses.
  void ForgetGraphs();
  void MakeRoom();

  CudaOps& ops_;
  std::unordered_map<uint64_t, Recording> recordings_;
  int64_t runs_ = 0;
  int64_t memory_epoch_ = 0;
};

void CudaOps::GraphRecorder::Run(uint64_t key, const std::function<void()>& verbs) {
  if (memory_epoch_ != ops_.work_memory_epoch_) {
    ForgetGraphs();
    memory_epoch_ = ops_.work_memory_epoch_;
  }
  ++runs_;
  const auto found = recordings_.find(key);
  if (found == recordings_.end()) {
    MakeRoom();
    recordings_[key].used_at = runs_;
    verbs();
    return;
  }
  Recording& recording = found->second;
  recording.used_at = runs_;
  if (recording.graph == nullptr && ops_.graphs_) {
    Capture(verbs, recording);
  }
  if (recording.graph == nullptr) {
    verbs();  // as ever, when graphs have been given up
    return;
  }
  if (!ops_.status_.ok()) {
    return;
  }
  ops_.host_weight_bytes_ += recording.weight_bytes;
  ops_.Note(CudaStatus(cudaGraphLaunch(recording.graph, ops_.stream_->get()), "launch a graph"));
}

void CudaOps::GraphRecorder::Capture(const std::function<void()>& verbs, Recording& recording) {
  cudaStream_t stream = ops_.stream_->get();
  if (!ops_.status_.ok() ||
      !ops_.Note(CudaStatus(
          cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a capture"
      ))) {
    return;
  }
  const int64_t bytes_before = ops_.host_weight_bytes_;
  verbs();
  recording.weight_bytes = ops_.host_weight_bytes_ - bytes_before;
  ops_.host_weight_bytes_ = bytes_before;
  cudaGraph_t graph = nullptr;
  // Even after a failure: the stream must not stay in capture.
  ops_.Note(CudaStatus(cudaStreamEndCapture(stream, &graph), "end a capture"));
  if (graph == nullptr) {
    return;
  }
  const cudaError_t error =
      ops_.status_.ok() ? cudaGraphInstantiate(&recording.graph, graph, 0) : cudaErrorUnknown;
  cudaGraphDestroy(graph);
  if (!ops_.status_.ok()) {
    recording.graph = nullptr;
    return;
  }
  if (error != cudaSuccess) {
    // Graphs take memory, too, and without them everything works, if slower.
    cudaGetLastError();
    recording.graph = nullptr;
    ops_.graphs_ = false;  // from now on, so that this is said once
    LogGraphsGivenUp(error, static_cast<int64_t>(recordings_.size()), ops_.AvailableBytes());
  }
}

void CudaOps::GraphRecorder::ForgetGraphs() {
  for (auto& [key, recording] : recordings_) {
    if (recording.graph != nullptr) {
      cudaGraphExecDestroy(recording.graph);
      recording.graph = nullptr;
    }
  }
}

void CudaOps::GraphRecorder::MakeRoom() {
  if (static_cast<int64_t>(recordings_.size()) < kMaxRecordings) {
    return;
  }
  const auto oldest =
      std::min_element(recordings_.begin(), recordings_.end(), [](const auto& a, const auto& b) {
        return a.second.used_at < b.second.used_at;
      });
  if (oldest->second.graph != nullptr) {
    cudaGraphExecDestroy(oldest->second.graph);
  }
  recordings_.erase(oldest);
}

std::unique_ptr<VerbRecorder> CudaOps::MakeRecorder() {
  return graphs_ ? std::make_unique<GraphRecorder>(*this) : nullptr;
}

}  // namespace switchyard
