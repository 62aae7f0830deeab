#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/batch_builder.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model.h"
#include "engine/model/scratch.h"
#include "engine/model/step_batch.h"
#include "engine/prompt_scorer.h"
#include "engine/routing_recorder.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/step_work.h"
#include "engine/stop_checker.h"

namespace switchyard {

// Takes the slices of a step through the model and the sampler, in memory that is allocated here
// once. Knows nothing of queues or blocks' owners. Used only by the engine thread.
class StepRunner {
 public:
  // RESOURCE_EXHAUSTED when the KV cache, the scratch or the logits do not fit. The references must
  // outlive this.
  static StatusOr<std::unique_ptr<StepRunner>> Create(
      const Model& model,
      const StopChecker& stop_checker,
      const SchedulerLimits& limits,
      int64_t blocks
  );

  // Lays the step out and uploads it.
  void Prepare(const StepWork& work);
  // Copies blocks, stores the slices' keys and values and chooses a token for each slice that
  // samples. An error is a device fault: nothing of the step can be trusted. Requires: `work` was
  // prepared.
  Status Run(const StepWork& work);

  // The choice for the row-th slice that samples; valid until the next call of Chosen or Run.
  Selection Chosen(size_t row) { return sampler_.Chosen(row); }
  // The tokens that were scored, slice after slice, and their values; valid until the next Run.
  std::span<const ScoredToken> scored() const { return scored_; }
  ScoredValue Scored(size_t index) const { return scorer_.Value(index); }
  // How many steps may be recorded at a time, each in memory of the backend; 0: none is.
  int64_t MaxRecordedSteps() const;
  // What the routers chose, for the sequences that want to know.
  RoutingRecorder& routing() { return routing_recorder_; }

 private:
  struct Memory {
    KvCache kv_cache;
    Scratch scratch;
    BatchBuilder batch_builder;
    std::unique_ptr<Buffer> logits;  // [max sequences, vocabulary]
  };
  StepRunner(
      const Model& model,
      const StopChecker& stop_checker,
      const SchedulerLimits& limits,
      std::unique_ptr<VerbRecorder> recorder,
      Memory memory
  );

  TensorView Logits(int64_t rows) const;
  // Whether every slice is one token that samples, and nobody watches the routers: a step of the
  // shape that decoding repeats.
  bool IsDecode() const;
  // The same verbs for every such step of as many sequences and as wide block tables.
  void RunDecode();
  Status RunMixed();

  const Model& model_;
  SchedulerLimits limits_;
  std::unique_ptr<VerbRecorder> recorder_;  // null: nothing is recorded
  Memory memory_;
  Sampler sampler_;
  PromptScorer scorer_;
  RoutingRecorder routing_recorder_;

  // Of the step that was prepared.
  std::vector<const Sequence*> sampling_;
  std::vector<ScoredToken> scored_;
  StepBatch batch_;
  SelectTokensArgs selection_;  // of sampling_
};

}  // namespace switchyard
