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

Status CheckContinuations(const GenerationRequest& request, const RequestBounds& bounds) {
  for (const std::vector<int32_t>& continuation : request.continuations) {
    if (continuation.empty()) {
      return InvalidArgument("a continuation has no tokens; leave it out");
    }
    const auto tokens = static_cast<int64_t>(request.prompt.size() + continuation.size());
    if (tokens > bounds.context_tokens) {
      return InvalidArgument(
          "the prompt with a continuation has ",
          tokens,
          " tokens; the context is ",
          bounds.context_tokens,
          "; shorten one of them by ",
          tokens - bounds.context_tokens
      );
    }
    for (const int32_t token_id : continuation) {
      RETURN_IF_ERROR(CheckTokenId("continuation", token_id, bounds.vocabulary_size));
    }
  }
  return OkStatus();
}

// Tokens of the longest sequence that the request can come to.
int64_t LongestSequence(const GenerationRequest& request, int64_t context_tokens) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  int64_t longest = request.continuations.empty() ? request.stopping.max_tokens : 0;
  for (const std::vector<int32_t>& continuation : request.continuations) {
    longest = std::max(longest, static_cast<int64_t>(continuation.size()));
  }
  return std::min(context_tokens, prompt_tokens + longest);
}

Status CheckBeams(const GenerationRequest& request, const RequestBounds& bounds) {
  if (!request.beam_search.has_value()) {
    return OkStatus();
  }
  const int32_t width = request.beam_search->width;
  if (width < 1 || width > bounds.max_running) {
    return InvalidArgument(
        "the beam width is ", width, "; use 1 to ", bounds.max_running, ", as many as run at once"
    );
  }
  if (request.completions > width) {
    return InvalidArgument(
        request.completions,
        " completions of a search of ",
        width,
        " beams; widen it or ask for ",
        width
    );
  }
  const int64_t tokens = LongestSequence(request, bounds.context_tokens);
  const int64_t blocks =
      int64_t{width} * BlocksFor(static_cast<int32_t>(tokens), bounds.block_tokens);
  if (blocks > bounds.total_blocks) {
    return InvalidArgument(
        width,
        " beams of ",
        tokens,
        " tokens need ",
        blocks,
        " blocks; the KV cache has ",
        bounds.total_blocks,
        "; use fewer beams or tokens, or give the server a larger KV cache"
    );
  }
  return OkStatus();
}

Status CheckCounts(const GenerationRequest& request) {
  if (request.completions < 1) {
    return InvalidArgument(request.completions, " completions are wanted; ask for at least 1");
  }
  if (request.continuations.empty() && request.stopping.max_tokens < 1) {
    return InvalidArgument("max_tokens is ", request.stopping.max_tokens, "; ask for at least 1");
  }
  if (request.scoring.has_value() && request.scoring->first_token < 1) {
    return InvalidArgument(
        "token ",
        request.scoring->first_token,
        " is to be scored; the first that has a log-probability is 1"
    );
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
  const int64_t total_tokens = LongestSequence(request, bounds.context_tokens);
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
  RETURN_IF_ERROR(CheckCounts(request));
  RETURN_IF_ERROR(CheckLength(request, bounds));
  RETURN_IF_ERROR(CheckBeams(request, bounds));
  RETURN_IF_ERROR(CheckContinuations(request, bounds));
  return CheckTokenIds(request, bounds.vocabulary_size);
}

Status CheckQueue(int64_t waiting_requests, int64_t max_queued_requests) {
  if (waiting_requests < max_queued_requests) {
    return OkStatus();
  }
  return ResourceExhausted(
      waiting_requests,
      " requests are waiting; the queue holds ",
      max_queued_requests,
      "; try again later, or on another server"
  );
}

}  // namespace switchyard
