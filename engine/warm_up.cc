#include "engine/warm_up.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

// Runs the sequence's last token and appends the one chosen.
Status RunLastToken(StepRunner& runner, Sequence& sequence) {
  const PlannedSlice planned{
      .id = sequence.id, .first_token = sequence.computed_tokens, .tokens = 1, .samples = true};
  const StepWork work{.slices = {{.sequence = &sequence, .planned = planned}}, .copies = {}};
  runner.Prepare(work);
  if (const Status status = runner.Run(work); !status.ok()) {
    return Internal("warm-up step: ", MessageOf(status));
  }
  const Selection selection = runner.Chosen(0);
  if (selection.id < 0) {
    return Internal(
        "warm-up step: the logits after token ",
        sequence.tokens.back(),
        " are not finite; the model's weights are damaged"
    );
  }
  ++sequence.computed_tokens;
  sequence.Append(selection.id);
  return OkStatus();
}

GenerationRequest WarmUpRequest(const ModelConfig& config) {
  const auto last_id = static_cast<int32_t>(config.vocabulary_size) - 1;
  GenerationRequest request;
  request.prompt = {std::clamp(config.bos_id.value_or(0), 0, last_id)};
  request.sampling.temperature = 0;
  return request;
}

}  // namespace

Status RunWarmUp(
    const ModelConfig& config, int32_t block_tokens, BlockPool& pool, StepRunner& runner
) {
  CHECK(pool.AvailableBlocks() == pool.TotalBlocks()) << "requests hold blocks";
  Sequence sequence(RequestId{0}, WarmUpRequest(config), config.context_tokens, block_tokens);
  sequence.is_warm_up = true;
  Status status;
  // A cache of a single one-token block has no room for the second token.
  const int64_t room = int64_t{pool.TotalBlocks()} * block_tokens;
  for (int32_t token = 0; token < 2 && token < room && status.ok(); ++token) {
    if (token % block_tokens == 0) {
      sequence.blocks.push_back(pool.Allocate());
    }
    status = RunLastToken(runner, sequence);
  }
  for (const BlockId block : sequence.blocks) {
    pool.Release(block);
  }
  return status;
}

}  // namespace switchyard
