#include "server/generation/token_stream.h"

#include <algorithm>
#include <utility>

namespace switchyard {
namespace {

// At most: ids of vocabularies are below 2^21, and a nested message has its tag and length.
constexpr int64_t kTokenIdBytes = 3;
constexpr int64_t kFieldBytes = 4;

bool IsGood(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength ||
         reason == FinishReason::kScored;
}

bool IsEmpty(const TokenStream::Part& part) {
  return part.delta.token_ids().empty() && part.delta.text().empty() &&
         part.prompt.tokens().empty() && part.routing.empty();
}

}  // namespace

TokenStream::TokenStream(
    const Tokenizer* tokenizer, TokenStreamOptions options, std::function<void()> wake
)
    : tokenizer_(tokenizer), options_(std::move(options)), wake_(std::move(wake)) {
  completions_.reserve(static_cast<size_t>(options_.completions));
  for (int32_t index = 0; index < options_.completions; ++index) {
    completions_.push_back(std::make_unique<Completion>(tokenizer, options_.text));
    completions_.back()->part.delta.set_completion(index);
  }
}

void TokenStream::KeepPlace(PromptQueue::Place place) {
  const MutexLock lock(mutex_);
  place_ = std::move(place);
}

void TokenStream::OnPromptToken(const TokenEvent& event) {
  bool needs_wake = false;
  {
    const MutexLock lock(mutex_);
    // The engine cannot be told to stop here: what comes after an overflow is not kept.
    if (is_over_ || overflowed_) {
      return;
    }
    Completion& completion = Of(event);
    v1::TokenLogprobs& logprobs = *completion.part.prompt.add_tokens();
    logprobs = Describe(event, options_.prompt_top_logprobs);
    completion.end.scored_logprob_sum += event.logprob;
    completion.end.is_greedy =
        completion.end.is_greedy && (event.top.empty() || event.top[0].id == event.id);
    AddBytes(static_cast<int64_t>(logprobs.ByteSizeLong()) + kFieldBytes);
    needs_wake = NeedsWake();
  }
  if (needs_wake) {
    wake_();
  }
}

void TokenStream::OnRouting(const RoutingEvent& event) {
  v1::RoutingTrace trace = DescribeRouting(event);
  bool needs_wake = false;
  {
    const MutexLock lock(mutex_);
    if (is_over_ || overflowed_) {
      return;
    }
    AddBytes(static_cast<int64_t>(trace.ByteSizeLong()) + kFieldBytes);
    Completion& completion = *completions_.at(static_cast<size_t>(event.completion));
    AppendTrace(std::move(trace), completion.part.routing);
    needs_wake = NeedsWake();
  }
  if (needs_wake) {
    wake_();
  }
}

Verdict TokenStream::OnToken(const TokenEvent& event) {
  if (options_.metrics != nullptr) {
    options_.metrics->OnToken(event);
  }
  bool needs_wake = false;
  bool stops = false;
  {
    const MutexLock lock(mutex_);
    place_.Release();
    if (is_over_) {
      return Verdict::kStop;
    }
    Completion& completion = Of(event);
    AddToken(event, completion);
    stops = overflowed_ || completion.text.MatchedStop().has_value();
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
    if (is_over_) {
      return;
    }
    Completion& completion = *completions_.at(static_cast<size_t>(event.completion));
    if (completion.text.MatchedStop()) {
      completion.end.matched_stop = completion.text.MatchedStop();
    } else {
      completion.part.delta.mutable_text()->append(completion.text.Flush());
    }
    completion.end.event = event;
    cached_prompt_tokens_ = std::min(cached_prompt_tokens_, event.cached_prompt_tokens);
    completion.has_ended = true;
    ++ended_;
    if (!IsGood(event.reason) || overflowed_) {
      failed_ = &completion;
    }
    is_over_ = failed_ != nullptr || ended_ == completions_.size();
    if (is_over_) {
      place_.Release();
      KeepBest();
    }
    if (is_over_ && options_.metrics != nullptr) {
      options_.metrics->OnRequestEnded(event);
    }
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
  if (options_.best.has_value() && !is_over_) {
    return taken;
  }
  waiting_bytes_ = 0;
  for (size_t index = 0; index < completions_.size(); ++index) {
    Completion& completion = *completions_[index];
    if (!IsEmpty(completion.part)) {
      Part& part = taken.parts.emplace_back(std::exchange(completion.part, Part()));
      // The best of several have other numbers than they were made with.
      for (v1::RoutingTrace& trace : part.routing) {
        trace.set_completion(static_cast<int32_t>(index));
      }
      completion.part.delta.set_completion(static_cast<int32_t>(index));
    }
  }
  if (is_over_ && !ends_taken_) {
    ends_taken_ = true;
    taken.overflowed = overflowed_;
    taken.cached_prompt_tokens = cached_prompt_tokens_;
    if (failed_ != nullptr) {
      taken.ends.push_back(failed_->end);
    } else {
      for (const auto& completion : completions_) {
        taken.ends.push_back(completion->end);
      }
    }
  }
  return taken;
}

void TokenStream::AddToken(const TokenEvent& event, Completion& completion) {
  v1::Delta& delta = completion.part.delta;
  delta.add_token_ids(event.id);
  ++completion.tokens;
  completion.end.logprob_sum += event.logprob;
  int64_t bytes = kTokenIdBytes;
  if (!event.is_stop_token) {
    const std::string text = completion.text.Append(event.id);
    delta.mutable_text()->append(text);
    bytes += static_cast<int64_t>(text.size());
  }
  if (options_.wants_logprobs) {
    v1::TokenLogprobs& logprobs = *delta.add_logprobs();
    logprobs = Describe(event, static_cast<int32_t>(event.top.size()));
    bytes += static_cast<int64_t>(logprobs.ByteSizeLong()) + kFieldBytes;
  }
  AddBytes(bytes);
}

void TokenStream::AddBytes(int64_t bytes) {
  waiting_bytes_ += bytes;
  overflowed_ = overflowed_ || waiting_bytes_ > options_.max_bytes;
}

v1::TokenLogprobs TokenStream::Describe(const TokenEvent& event, int32_t tops) const {
  v1::TokenLogprobs logprobs;
  SetLogprob(event.id, event.logprob, *logprobs.mutable_chosen());
  const size_t count = std::min(event.top.size(), static_cast<size_t>(tops));
  for (const TokenLogprobValue& top : event.top.first(count)) {
    SetLogprob(top.id, top.logprob, *logprobs.add_top());
  }
  return logprobs;
}

void TokenStream::SetLogprob(int32_t id, float logprob, v1::TokenLogprob& out) const {
  out.set_token_id(id);
  out.set_logprob(logprob);
  if (tokenizer_ != nullptr && id < tokenizer_->VocabularySize()) {
    out.set_token(std::string(tokenizer_->TokenBytes(id)));
  }
}

void TokenStream::KeepBest() {
  if (!options_.best.has_value()) {
    return;
  }
  if (failed_ != nullptr) {
    // Nothing is best of what is not all there.
    std::ranges::for_each(completions_, [](const auto& completion) { completion->part = Part(); });
    return;
  }
  const auto mean = [](const Completion& completion) {
    return completion.end.logprob_sum / std::max(1, completion.tokens);
  };
  // Of equals the one with the lower seed.
  std::stable_sort(completions_.begin(), completions_.end(), [mean](const auto& a, const auto& b) {
    return mean(*a) > mean(*b);
  });
  completions_.erase(completions_.begin() + *options_.best, completions_.end());
  for (size_t index = 0; index < completions_.size(); ++index) {
    completions_[index]->part.delta.set_completion(static_cast<int32_t>(index));
  }
}

bool TokenStream::NeedsWake() {
  const bool waits_for_end = options_.wake_when == WakeWhen::kFinished || options_.best.has_value();
  if (woken_ || (waits_for_end && !is_over_)) {
    return false;
  }
  woken_ = true;
  return true;
}

}  // namespace switchyard
