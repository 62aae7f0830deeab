#include "program/bench/load_stream.h"

#include <algorithm>
#include <utility>

namespace switchyard {

void LoadStream::Start(
    const Client& client,
    const PlannedRequest& planned,
    std::optional<std::chrono::milliseconds> time_limit,
    std::chrono::nanoseconds early_pause
) {
  record_.index = index_;
  record_.disturbance = planned.disturbance;
  record_.asked_tokens = planned.request.stopping().max_tokens();
  record_.verify = planned.verify;
  record_.gaps.reserve(static_cast<size_t>(std::min(record_.asked_tokens, 1024)));
  disturbed_after_tokens_ = planned.disturbed_after_tokens;
  if (planned.disturbance == Disturbance::kCancel && planned.disturbed_after_tokens == 0) {
    owner_.CancelAfter(*this, early_pause);
  }
  started_ = BenchClock::now();
  // The last statement: the stream may be over, and the owner gone, before it returns.
  stream_.Start(client, planned.request, time_limit);
}

void LoadStream::OnEvent(const v1::GenerateResponse& event) {
  const BenchClock::time_point now = BenchClock::now();
  if (event.has_delta()) {
    OnDelta(event.delta(), now);
  } else if (event.has_finished()) {
    const v1::Finished& finished = event.finished();
    record_.has_finished = true;
    record_.until_end = now - started_;
    record_.prompt_tokens = finished.usage().prompt_tokens();
    record_.cached_prompt_tokens = finished.usage().cached_prompt_tokens();
    record_.server_queue = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(finished.timings().queue_seconds())
    );
  }
}

void LoadStream::OnDelta(const v1::Delta& delta, BenchClock::time_point now) {
  const auto tokens = static_cast<int32_t>(delta.token_ids_size());
  if (tokens == 0) {
    return;  // text that a later token completed
  }
  if (record_.received_tokens == 0) {
    record_.until_first_token = now - started_;
    // The other tokens of a first message came without a gap.
    if (tokens > 1) {
      record_.gaps.push_back({.gap = std::chrono::nanoseconds(0), .tokens = tokens - 1});
    }
  } else {
    record_.gaps.push_back({.gap = now - last_tokens_, .tokens = tokens});
  }
  last_tokens_ = now;
  record_.received_tokens += tokens;
  if (record_.verify) {
    record_.token_ids.insert(
        record_.token_ids.end(), delta.token_ids().begin(), delta.token_ids().end()
    );
  }
  owner_.OnTokens(tokens, now);
  if (!was_disturbed_ && record_.received_tokens >= disturbed_after_tokens_) {
    was_disturbed_ = true;
    Disturb();
  }
}

void LoadStream::Disturb() {
  if (record_.disturbance == Disturbance::kCancel) {
    stream_.Cancel();
  } else if (record_.disturbance == Disturbance::kStall) {
    stream_.Pause();
    owner_.ResumeAfterStall(*this);
  }
}

void LoadStream::OnDone(const Status& status) {
  record_.status = status;
  if (!record_.has_finished) {
    record_.until_end = BenchClock::now() - started_;
  }
  owner_.OnStreamDone(*this, std::move(record_));
}

}  // namespace switchyard
