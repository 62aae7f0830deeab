#include "tests/engine/make_sequence.h"

#include <utility>

namespace switchyard {

std::unique_ptr<Sequence> MakeSequence(const SequenceSpec& spec) {
  constexpr int32_t kBlockTokens = 4;
  GenerationRequest request;
  request.prompt = spec.prompt;
  request.sampling = spec.sampling;
  request.stopping = spec.stopping;
  auto sequence = std::make_unique<Sequence>(
      RequestId{1}, std::move(request), spec.context_tokens, kBlockTokens
  );
  for (const int32_t token_id : spec.generated) {
    sequence->Append(token_id);
  }
  for (const int32_t block : spec.blocks) {
    sequence->blocks.push_back(BlockId{block});
  }
  sequence->computed_tokens = spec.computed_tokens;
  return sequence;
}

}  // namespace switchyard
