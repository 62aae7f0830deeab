#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "engine/model/forward_observer.h"

namespace switchyard {

struct TokenLogprobValue {
  int32_t id = 0;
  float logprob = 0;
};

struct TokenEvent {
  int32_t completion = 0;  // which of the request's completions, or of its continuations
  int32_t id = 0;
  float logprob = 0;                            // log-softmax of the raw logits
  std::span<const TokenLogprobValue> top = {};  // what was asked for; valid during the call
  int32_t completion_tokens = 0;                // this one included
  // An end-of-sequence or stop token: the last of the stream, and not part of the text.
  bool is_stop_token = false;
  // Since the completion's token before this one; of the first, since the request was accepted.
  // Absent where tokens do not come one by one (beam search).
  std::optional<std::chrono::nanoseconds> since_previous = {};
};

// What one router chose for the tokens of a RoutingEvent.
struct RoutedTokens {
  int32_t layer = 0;  // executed
  RouterKind kind = RouterKind::kAttention;
  int32_t heads = 1;
  int32_t top_k = 0;
  std::span<const int32_t> expert_ids;  // [tokens, heads, top_k], as Routing has them
  std::span<const float> weights;       // the gate of each
};

// Which experts worked on consecutive tokens of prompt and completion. The events of a completion
// follow each other from position 0 without overlap, even when tokens are computed again after a
// preemption.
struct RoutingEvent {
  int32_t completion = 0;
  int32_t first_token = 0;  // its position
  int32_t tokens = 0;
  bool cached = false;  // found in the prefix cache, and so not routed: `routers` is empty
  std::span<const RoutedTokens> routers = {};  // in executed order; valid during the call
};

enum class FinishReason : uint8_t {
  kStop,       // stop token, end of sequence, or the sink said so (a stop string)
  kLength,     // max_tokens, or the end of the context
  kScored,     // a continuation has its log-probabilities; nothing was to be generated
  kCancelled,  // Engine::Cancel
  kDeadline,   // the request's deadline passed
  kError,      // `status` says what
};

struct FinishEvent {
  int32_t completion = 0;
  FinishReason reason = FinishReason::kStop;
  Status status;                         // not OK only for kError
  std::optional<int32_t> stop_token_id;  // of kStop by a token
  bool stop_is_eos = false;
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;
  int32_t cached_prompt_tokens = 0;
  double queue_seconds = 0;
  double time_to_first_token_seconds = 0;
  double decode_seconds = 0;
  double total_seconds = 0;
};

enum class Verdict : uint8_t { kContinue, kStop };

// Where a request's results go, implemented by the layers above. The engine thread calls it:
// implementations return at once, never wait for a client and never call back into the engine.
class TokenSink {
 public:
  virtual ~TokenSink() = default;

  // One call for each prompt token whose log-probability is wanted, in order, before OnToken.
  virtual void OnPromptToken(const TokenEvent& /*event*/) {}

  // If the request traces its routing: before OnToken of the token that comes after them.
  virtual void OnRouting(const RoutingEvent& /*event*/) {}

  // One call for each token of a completion, in order. kStop ends the completion here with
  // FinishReason::kStop (a stop string was found); the verdict on a stop token is ignored.
  virtual Verdict OnToken(const TokenEvent& event) = 0;

  // Exactly once for each completion, its last call; the engine holds nothing of it afterwards.
  virtual void OnFinished(const FinishEvent& event) = 0;
};

}  // namespace switchyard
