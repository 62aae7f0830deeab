#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/forward_observer.h"
#include "engine/sequence.h"
#include "engine/token_sink.h"
#include "kernels/ops.h"

namespace switchyard {

// Copies to the host what the routers of a step chose for the tokens of requests that want to know,
// each token once however often it is computed. Waits for the device at every router, so a step
// without such tokens should go unwatched. Used only by the engine thread.
class RoutingRecorder final : public ForwardObserver {
 public:
  // `ops` must outlive this.
  explicit RoutingRecorder(Ops& ops) : ops_(ops) {}

  // A new step begins.
  void Prepare(std::span<const SequenceSlice> slices);
  // Whether nobody wants to know anything of it.
  bool empty() const { return runs_.empty(); }

  void OnEmbedding(TensorView x) override;
  void OnRouting(int64_t layer, RouterKind router, const Routing& routing) override;
  void OnHidden(int64_t layer, TensorView x) override;

  // Tells the sinks of those sequences that still run, and that their positions have been told.
  void Tell();

 private:
  // Consecutive tokens of one sequence.
  struct Run {
    Sequence* sequence = nullptr;
    int64_t first_row = 0;  // in the step
    int64_t offset = 0;     // among the recorded tokens
    int32_t first_token = 0;
    int32_t tokens = 0;
  };
  struct Recorded {
    RoutedTokens router;         // without the spans
    std::vector<int32_t> ids;    // [recorded tokens, heads, top_k]
    std::vector<float> weights;  // as ids
  };

  Ops& ops_;
  // Of the step; kept for their memory.
  std::vector<Run> runs_;
  int64_t recorded_tokens_ = 0;
  size_t routers_ = 0;  // of recorded_, those of this step
  std::vector<Recorded> recorded_;
  std::vector<RoutedTokens> told_;
};

}  // namespace switchyard
