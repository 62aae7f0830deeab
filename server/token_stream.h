#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/mutex.h"
#include "engine/token_sink.h"
#include "server/completion_text.h"
#include "server/prompt_queue.h"
#include "switchyard/v1/inference.pb.h"
#include "text/tokenizer.h"

namespace switchyard {

// When the taking side wants to know.
enum class WakeWhen : uint8_t { kAnythingCame, kFinished };

struct TokenStreamOptions {
  CompletionTextOptions text;
  bool wants_logprobs = false;
  WakeWhen wake_when = WakeWhen::kAnythingCame;
  // How many bytes may wait to be taken, about as they are on the wire: the token that makes them
  // more is the last.
  int64_t max_bytes = INT64_MAX;
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

  // Holds the prompt's place until the first token, or the end. Call it before the engine does.
  void KeepPlace(PromptQueue::Place place);

  Verdict OnToken(const TokenEvent& event) override;
  void OnFinished(const FinishEvent& event) override;

  struct Taken {
    v1::Delta delta;  // may be empty
    std::optional<FinishEvent> finished;
    std::optional<std::string> matched_stop;  // with `finished`: the stop string that ended it
    bool overflowed = false;                  // with `finished`: max_bytes ended it
  };
  // All that came since the last call. `finished` comes once, with the last of the delta.
  Taken Take();

 private:
  void AddToken(const TokenEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetLogprob(int32_t id, float logprob, v1::TokenLogprob& out) const;
  // Whether the caller has to call wake_, which it does without the lock.
  bool NeedsWake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Tokenizer* const tokenizer_;
  const TokenStreamOptions options_;
  const std::function<void()> wake_;

  Mutex mutex_;
  CompletionText text_ ABSL_GUARDED_BY(mutex_);
  PromptQueue::Place place_ ABSL_GUARDED_BY(mutex_);
  v1::Delta delta_ ABSL_GUARDED_BY(mutex_);
  int64_t delta_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool overflowed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<FinishEvent> finished_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace switchyard
