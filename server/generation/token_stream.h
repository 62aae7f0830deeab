#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/token_sink.h"
#include "server/generation/completion_text.h"
#include "server/generation/prompt_queue.h"
#include "server/generation/routing_trace.h"
#include "server/metrics/request_metrics.h"
#include "switchyard/v1/inference.pb.h"
#include "text/tokenizer.h"

namespace switchyard {

// When the taking side wants to know.
enum class WakeWhen : uint8_t { kAnythingCame, kFinished };

struct TokenStreamOptions {
  CompletionTextOptions text;
  int32_t completions = 1;  // that the engine makes
  // If there: only so many of them are wanted, those with the highest mean log-probability, and
  // none before all are there.
  std::optional<int32_t> best = {};
  bool wants_logprobs = false;
  int32_t prompt_top_logprobs = 0;  // of what the engine tells for prompt tokens
  WakeWhen wake_when = WakeWhen::kAnythingCame;
  // How many bytes may wait to be taken, about as they are on the wire: the token that makes them
  // more is the last.
  int64_t max_bytes = INT64_MAX;
  RequestMetrics* metrics = nullptr;  // told of tokens and of the end; may be null
};

// One request's results on their way from the engine to the client. The engine puts tokens in and
// never waits; the other side takes all that came since it last did, so a slow client gets fewer
// and larger deltas. A client that is too slow gets an end: what is held is bounded. Thread-safe;
// shared by the engine and the RPC.
class TokenStream : public TokenSink {
 public:
  // `tokenizer` may be null (no text) and must outlive this. `wake` is called on the engine's
  // thread: once when there is something to take, then not again until after the next Take. It must
  // not block.
  TokenStream(const Tokenizer* tokenizer, TokenStreamOptions options, std::function<void()> wake);

  // Holds the prompt's place until the first token, or the end of all completions. Call it before
  // the engine does.
  void KeepPlace(PromptQueue::Place place);

  void OnPromptToken(const TokenEvent& event) override;
  void OnRouting(const RoutingEvent& event) override;
  Verdict OnToken(const TokenEvent& event) override;
  void OnFinished(const FinishEvent& event) override;

  // What came of one completion. Its number is the delta's.
  struct Part {
    v1::Delta delta;            // may be empty
    v1::PromptLogprobs prompt;  // of its prompt, or of its continuation; may be empty
    RoutingTraces routing;      // of its tokens; may be empty
  };
  // How a completion ended.
  struct End {
    FinishEvent event;
    std::optional<std::string> matched_stop;  // the stop string that ended it
    double logprob_sum = 0;                   // over the tokens that were generated
    double scored_logprob_sum = 0;            // over those of OnPromptToken
    bool is_greedy = true;                    // whether each of these was the likeliest
  };
  struct Taken {
    std::vector<Part> parts;  // of the completions of which something came
    // Once, with the last of the parts: when every completion has ended, in order, or when the
    // first ended badly, that one alone.
    std::vector<End> ends;
    bool overflowed = false;           // with `ends`: max_bytes ended it
    int32_t cached_prompt_tokens = 0;  // with `ends`: when the prompt was computed first
  };
  // All that came since the last call.
  Taken Take();

 private:
  struct Completion {
    explicit Completion(const Tokenizer* tokenizer, const CompletionTextOptions& options)
        : text(tokenizer, options) {}
    CompletionText text;
    Part part;
    End end;
    int32_t tokens = 0;
    bool has_ended = false;
  };

  void AddToken(const TokenEvent& event, Completion& completion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddBytes(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::TokenLogprobs Describe(const TokenEvent& event, int32_t tops) const;
  void SetLogprob(int32_t id, float logprob, v1::TokenLogprob& out) const;
  void KeepBest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Completion& Of(const TokenEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return *completions_.at(static_cast<size_t>(event.completion));
  }
  // Whether the caller has to call wake_, which it does without the lock.
  bool NeedsWake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Tokenizer* const tokenizer_;
  const TokenStreamOptions options_;
  const std::function<void()> wake_;

  Mutex mutex_;
  PromptQueue::Place place_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Completion>> completions_ ABSL_GUARDED_BY(mutex_);
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  const Completion* failed_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the first that ended badly
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t cached_prompt_tokens_ ABSL_GUARDED_BY(mutex_
  ) = INT32_MAX;  // the fewest of any completion
  bool overflowed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more counts
  bool ends_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace switchyard
