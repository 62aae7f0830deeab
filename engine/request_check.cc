#include "engine/request_check.h"

#include <algorithm>
#include <functional>

#include "engine/scheduler.h"

namespace switchyard {
namespace {

Status CheckTokenId(const char* place, int32_t token_id, int64_t vocabulary_size) {
  if (0 <= token_id && token_id < vocabulary_size) {
    return OkStatus();
  }
  return InvalidArgument(
      place, " token id ", token_id, " is not in the vocabulary; use 0 to ", vocabulary_size - 1
  );
}

Status CheckTokenIds(const GenerationRequest& request, int64_t vocabulary_size) {
  for (const int32_t token_id : request.prompt) {
    RETURN_IF_ERROR(CheckTokenId("prompt", token_id, vocabulary_size));
  }
  for (const int32_t token_id : request.stopping.stop_token_ids) {
    RETURN_IF_ERROR(CheckTokenId("stop", token_id, vocabulary_size));
  }
  for (const auto& entry : request.sampling.logit_bias) {
    RETURN_IF_ERROR(CheckTokenId("logit bias", entry.first, vocabulary_size));
  }
  for (const std::vector<int32_t>& word : request.sampling.bad_words) {
    if (word.empty()) {
      return InvalidArgument("a bad word has no tokens; leave it out");
    }
    for (const int32_t token_id : word) {
      RETURN_IF_ERROR(CheckTokenId("bad word", token_id, vocabulary_size));
    }
  }
  for (const int32_t token_id : request.sampling.allowed_token_ids) {
    RETURN_IF_ERROR(CheckTokenId("allowed", token_id, vocabulary_size));
  }
  const std::vector<int32_t>& allowed = request.sampling.allowed_token_ids;
  if (std::ranges::adjacent_find(allowed, std::ranges::greater_equal()) != allowed.end()) {
    return InvalidArgument("allowed token ids must ascend and be distinct; sort them");
  }
  return OkStatus();
}

Status CheckLength(const GenerationRequest& request, const RequestBounds& bounds) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (prompt_tokens == 0) {
    return InvalidArgument("the prompt has no tokens; send at least 1");
  }
  if (prompt_tokens >= bounds.context_tokens) {
    return InvalidArgument(
        "the prompt has ",
        prompt_tokens,
        " tokens; a context of ",
        bounds.context_tokens,
        " leaves no room for a completion; shorten it by ",
        prompt_tokens - bounds.context_tokens + 1
    );
  }
  if (request.stopping.max_tokens < 1) {
    return InvalidArgument("max_tokens is ", request.stopping.max_tokens, "; ask for at least 1");
  }
  const int64_t total_tokens =
      std::min(bounds.context_tokens, prompt_tokens + request.stopping.max_tokens);
  const int64_t cache_tokens = int64_t{bounds.total_blocks} * bounds.block_tokens;
  if (total_tokens > cache_tokens) {
    return InvalidArgument(
        "prompt and max_tokens are ",
        total_tokens,
        " tokens together; the KV cache holds ",
        cache_tokens,
        "; ask for fewer, or give the server a larger KV cache"
    );
  }
  return OkStatus();
}

}  // namespace

Status CheckRequest(const GenerationRequest& request, const RequestBounds& bounds) {
  RETURN_IF_ERROR(CheckLength(request, bounds));
  return CheckTokenIds(request, bounds.vocabulary_size);
}

}  // namespace switchyard
