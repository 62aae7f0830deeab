#include "program/bench/load_results.h"

#include <utility>

namespace switchyard {
namespace {

Outcome OutcomeOfError(const RequestRecord& record) {
  const StatusCode code = record.status.code();
  if (record.disturbance == Disturbance::kCancel && code == StatusCode::kCancelled) {
    return Outcome::kCancelled;
  }
  if (record.disturbance == Disturbance::kDeadline && code == StatusCode::kDeadlineExceeded) {
    return Outcome::kPastDeadline;
  }
  // A request that the server refused was never stalled: it has no token yet.
  if (record.disturbance == Disturbance::kStall && record.received_tokens > 0) {
    return Outcome::kStallEnded;
  }
  return Outcome::kFailed;
}

}  // namespace

Outcome OutcomeOf(RequestRecord& record) {
  if (record.status.ok() && !record.has_finished) {
    record.status = DataLoss("the stream ended without a `finished` event");
  } else if (record.status.ok() && record.received_tokens != record.asked_tokens) {
    record.status = DataLoss(
        "the stream brought ",
        record.received_tokens,
        " tokens; ",
        record.asked_tokens,
        " were asked for with ignore_eos"
    );
  }
  return record.status.ok() ? Outcome::kCompleted : OutcomeOfError(record);
}

void LoadResults::Add(RequestRecord record) {
  received_tokens += record.received_tokens;
  stalled += record.disturbance == Disturbance::kStall ? 1 : 0;
  switch (OutcomeOf(record)) {
    case Outcome::kCancelled:
      ++cancelled;
      return;
    case Outcome::kPastDeadline:
      ++past_deadline;
      return;
    case Outcome::kStallEnded:
      ++stall_ended;
      return;
    case Outcome::kFailed: {
      ++failed;
      FailureCount& failure = failures[record.status.code()];
      if (++failure.count == 1) {
        failure.first_message = MessageOf(record.status);
      }
      failure.until_answer.Record(record.until_end);
      return;
    }
    case Outcome::kCompleted:
      break;
  }
  ++completed;
  prompt_tokens += record.prompt_tokens;
  cached_prompt_tokens += record.cached_prompt_tokens;
  if (record.within_window) {
    ++completed_within_window;
    prompt_tokens_within_window += record.prompt_tokens;
  }
  if (record.verify) {
    verifiable.push_back({.index = record.index, .token_ids = std::move(record.token_ids)});
  }
  if (record.disturbance == Disturbance::kStall) {
    return;
  }
  time_to_first_token.Record(record.until_first_token);
  end_to_end.Record(record.until_end);
  server_queue.Record(record.server_queue);
  for (const MessageGap& message : record.gaps) {
    message_gap.Record(message.gap);
    inter_token.Record(message.gap / message.tokens, message.tokens);
  }
}

double LoadResults::PerSecond(int64_t count_within_window) const {
  return window_seconds > 0 ? static_cast<double>(count_within_window) / window_seconds : 0;
}

}  // namespace switchyard
