#include "server/token_stream.h"

#include <utility>

namespace switchyard {
namespace {

// At most: ids of vocabularies are below 2^21, and a nested message has its tag and length.
constexpr int64_t kTokenIdBytes = 3;
constexpr int64_t kFieldBytes = 4;

}  // namespace

TokenStream::TokenStream(
    const Tokenizer* tokenizer, TokenStreamOptions options, std::function<void()> wake
)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      wake_(std::move(wake)),
      text_(tokenizer, options_.text) {}

void TokenStream::KeepPlace(PromptQueue::Place place) {
  const MutexLock lock(mutex_);
  place_ = std::move(place);
}

Verdict TokenStream::OnToken(const TokenEvent& event) {
  bool needs_wake = false;
  bool stops = false;
  {
    const MutexLock lock(mutex_);
    place_.Release();
    AddToken(event);
    overflowed_ = overflowed_ || delta_bytes_ > options_.max_bytes;
    stops = overflowed_ || text_.MatchedStop().has_value();
    needs_wake = NeedsWake();
  }
  if (needs_wake) {
    wake_();
  }
  return stops ? Verdict::kStop : Verdict::kContinue;
}

void TokenStream::OnFinished(const FinishEvent& event) {
  bool needs_wake = false;
  {
    const MutexLock lock(mutex_);
    place_.Release();
    if (!text_.MatchedStop()) {
      delta_.mutable_text()->append(text_.Flush());
    }
    finished_ = event;
    needs_wake = NeedsWake();
  }
  if (needs_wake) {
    wake_();
  }
}

TokenStream::Taken TokenStream::Take() {
  const MutexLock lock(mutex_);
  woken_ = false;
  Taken taken;
  taken.delta.Swap(&delta_);
  delta_bytes_ = 0;
  if (finished_) {
    taken.matched_stop = text_.MatchedStop();
    taken.overflowed = overflowed_;
    taken.finished = std::exchange(finished_, std::nullopt);
  }
  return taken;
}

void TokenStream::AddToken(const TokenEvent& event) {
  delta_.add_token_ids(event.id);
  delta_bytes_ += kTokenIdBytes;
  if (!event.is_stop_token) {
    const std::string text = text_.Append(event.id);
    delta_.mutable_text()->append(text);
    delta_bytes_ += static_cast<int64_t>(text.size());
  }
  if (!options_.wants_logprobs) {
    return;
  }
  v1::TokenLogprobs* logprobs = delta_.add_logprobs();
  SetLogprob(event.id, event.logprob, *logprobs->mutable_chosen());
  for (const TokenLogprobValue& top : event.top) {
    SetLogprob(top.id, top.logprob, *logprobs->add_top());
  }
  delta_bytes_ += static_cast<int64_t>(logprobs->ByteSizeLong()) + kFieldBytes;
}

void TokenStream::SetLogprob(int32_t id, float logprob, v1::TokenLogprob& out) const {
  out.set_token_id(id);
  out.set_logprob(logprob);
  if (tokenizer_ != nullptr && id < tokenizer_->VocabularySize()) {
    out.set_token(std::string(tokenizer_->TokenBytes(id)));
  }
}

bool TokenStream::NeedsWake() {
  if (woken_ || (options_.wake_when == WakeWhen::kFinished && !finished_)) {
    return false;
  }
  woken_ = true;
  return true;
}

}  // namespace switchyard
