#include "engine/step_runner.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace switchyard {
namespace {

// For what SelectTokens reads beside logits, where that goes up with the rest of a step: the rows
// themselves and some thousand tokens of history for each.
constexpr int64_t kSelectionBytes = int64_t{4} << 20;

// Each running request has a slice of at least one token in a step.
int32_t MaxSequences(const SchedulerLimits& limits) {
  return std::min(limits.max_running, limits.max_step_tokens);
}

int64_t MaxBlocksPerSequence(const Model& model, const SchedulerLimits& limits) {
  return (model.config().context_tokens + limits.block_tokens - 1) / limits.block_tokens;
}

}  // namespace

StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const Model& model,
    const StopChecker& stop_checker,
    const SchedulerLimits& limits,
    int64_t blocks
) {
  Ops& ops = model.ops();
  const ModelConfig& config = model.config();
  const int32_t max_sequences = MaxSequences(limits);
  std::unique_ptr<VerbRecorder> recorder = ops.MakeRecorder();
  const BatchLimits batch_limits{
      .max_step_tokens = limits.max_step_tokens,
      .max_sequences = max_sequences,
      .max_blocks_per_sequence = static_cast<int32_t>(MaxBlocksPerSequence(model, limits)),
      .block_tokens = limits.block_tokens,
      .selection_bytes = kSelectionBytes,
      .rounds_tables = recorder != nullptr};
  ASSIGN_OR_RETURN(
      KvCache kv_cache, KvCache::Create(ops, model.kv_layout(), blocks, limits.block_tokens)
  );
  ASSIGN_OR_RETURN(
      Scratch scratch,
      Scratch::Create(ops, model.ScratchBytes(limits.max_step_tokens, max_sequences))
  );
  ASSIGN_OR_RETURN(BatchBuilder batch_builder, BatchBuilder::Create(ops, batch_limits));
  ASSIGN_OR_RETURN(
      auto logits,
      ops.Allocate(max_sequences * config.vocabulary_size * static_cast<int64_t>(sizeof(float)))
  );
  Memory memory{
      .kv_cache = std::move(kv_cache),
      .scratch = std::move(scratch),
      .batch_builder = std::move(batch_builder),
      .logits = std::move(logits)};
  return std::unique_ptr<StepRunner>(
      new StepRunner(model, stop_checker, limits, std::move(recorder), std::move(memory))
  );
}

StepRunner::StepRunner(
    const Model& model,
    const StopChecker& stop_checker,
    const SchedulerLimits& limits,
    std::unique_ptr<VerbRecorder> recorder,
    Memory memory
)
    : model_(model),
      limits_(limits),
      recorder_(std::move(recorder)),
      memory_(std::move(memory)),
      sampler_(
          model.ops(),
          stop_checker,
          {.max_rows = MaxSequences(limits),
           .vocabulary_size = model.config().vocabulary_size,
           .context_tokens = model.config().context_tokens}
      ),
      scorer_(model),
      routing_recorder_(model.ops()) {
  sampling_.reserve(static_cast<size_t>(MaxSequences(limits)));
}

void StepRunner::Prepare(const StepWork& work) {
  sampling_.clear();
  scored_.clear();
  for (const SequenceSlice& slice : work.slices) {
    if (slice.planned.samples) {
      sampling_.push_back(slice.sequence);
    }
    const auto [first, end] = slice.ScoredPositions();
    for (int32_t position = first; position < end; ++position) {
      scored_.push_back({.sequence = slice.sequence, .position = position});
    }
  }
  routing_recorder_.Prepare(work.slices);
  selection_ = sampler_.Gather(Logits(static_cast<int64_t>(sampling_.size())), sampling_);
  batch_ = memory_.batch_builder.Build(work.slices, sampling_.empty() ? nullptr : &selection_);
  selection_.packed = batch_.packed_selection;
}

Status StepRunner::Run(const StepWork& work) {
  Ops& ops = model_.ops();
  for (const BlockCopy& copy : work.copies) {
    memory_.kv_cache.CopyBlock(ops, static_cast<int64_t>(copy.from), static_cast<int64_t>(copy.to));
  }
  if (recorder_ != nullptr && IsDecode()) {
    const auto key = static_cast<uint64_t>(batch_.sequences) << 32 |
                     static_cast<uint64_t>(batch_.block_tables.dim(1));
    recorder_->Run(key, [this] { RunDecode(); });
  } else {
    RETURN_IF_ERROR(RunMixed());
  }
  if (!sampling_.empty()) {
    sampler_.Select(selection_);
  }
  return ops.Finish();
}

int64_t StepRunner::MaxRecordedSteps() const {
  if (recorder_ == nullptr) {
    return 0;
  }
  // One for each number of sequences and each width of block tables: powers of two.
  const auto blocks = static_cast<uint64_t>(MaxBlocksPerSequence(model_, limits_));
  const auto widths = static_cast<int64_t>(std::bit_width(blocks - 1)) + 1;
  return std::min(recorder_->MaxRecordings(), MaxSequences(limits_) * widths);
}

bool StepRunner::IsDecode() const {
  return batch_.tokens == batch_.sequences && scored_.empty() && routing_recorder_.empty() &&
         batch_.sequences == static_cast<int64_t>(sampling_.size());
}

void StepRunner::RunDecode() {
  const Scratch::Scope scope(memory_.scratch);
  const TensorView hidden = memory_.scratch.Floats({batch_.tokens, model_.config().model_dim});
  model_.Forward(batch_, memory_.kv_cache, memory_.scratch, hidden, nullptr);
  model_.ComputeLogits(hidden, batch_.logit_rows, memory_.scratch, selection_.logits);
}

Status StepRunner::RunMixed() {
  const Scratch::Scope scope(memory_.scratch);
  const TensorView hidden = memory_.scratch.Floats({batch_.tokens, model_.config().model_dim});
  RoutingRecorder* const observer = routing_recorder_.empty() ? nullptr : &routing_recorder_;
  model_.Forward(batch_, memory_.kv_cache, memory_.scratch, hidden, observer);
  if (!scored_.empty()) {
    RETURN_IF_ERROR(scorer_.Score(
        hidden, batch_.scored_rows, scored_, memory_.scratch, Logits(MaxSequences(limits_))
    ));
  }
  if (!sampling_.empty()) {
    model_.ComputeLogits(hidden, batch_.logit_rows, memory_.scratch, selection_.logits);
  }
  return OkStatus();
}

TensorView StepRunner::Logits(int64_t rows) const {
  return TensorView(memory_.logits->data(), DType::kF32, {rows, model_.config().vocabulary_size});
}

}  // namespace switchyard
