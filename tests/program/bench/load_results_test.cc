#include "program/bench/load_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

RequestRecord Completed(int32_t tokens) {
  RequestRecord record;
  record.has_finished = true;
  record.asked_tokens = tokens;
  record.received_tokens = tokens;
  record.prompt_tokens = 10;
  record.cached_prompt_tokens = 4;
  record.within_window = true;
  record.until_first_token = milliseconds(30);
  record.until_end = milliseconds(90);
  return record;
}

RequestRecord Failed(Disturbance disturbance, const Status& status, int32_t received_tokens) {
  RequestRecord record;
  record.disturbance = disturbance;
  record.status = status;
  record.asked_tokens = 8;
  record.received_tokens = received_tokens;
  record.until_end = milliseconds(2);
  return record;
}

Outcome OutcomeOfFailed(Disturbance disturbance, StatusCode code, int32_t received_tokens = 3) {
  RequestRecord record = Failed(disturbance, Status(code, "x"), received_tokens);
  return OutcomeOf(record);
}

TEST(OutcomeOf, DependsOnWhatWasPlanned) {
  EXPECT_EQ(OutcomeOfFailed(Disturbance::kCancel, StatusCode::kCancelled), Outcome::kCancelled);
  EXPECT_EQ(OutcomeOfFailed(Disturbance::kNone, StatusCode::kCancelled), Outcome::kFailed);
  EXPECT_EQ(OutcomeOfFailed(Disturbance::kCancel, StatusCode::kInternal), Outcome::kFailed);
  EXPECT_EQ(
      OutcomeOfFailed(Disturbance::kDeadline, StatusCode::kDeadlineExceeded), Outcome::kPastDeadline
  );
  EXPECT_EQ(OutcomeOfFailed(Disturbance::kNone, StatusCode::kDeadlineExceeded), Outcome::kFailed);
  EXPECT_EQ(
      OutcomeOfFailed(Disturbance::kStall, StatusCode::kResourceExhausted), Outcome::kStallEnded
  );
  EXPECT_EQ(
      OutcomeOfFailed(Disturbance::kStall, StatusCode::kResourceExhausted, 0), Outcome::kFailed
  );
}

TEST(OutcomeOf, IsAFailureWhenTokensOrTheEndAreMissing) {
  RequestRecord too_short = Completed(8);
  too_short.received_tokens = 7;
  RequestRecord unfinished = Completed(8);
  unfinished.has_finished = false;

  EXPECT_EQ(OutcomeOf(too_short), Outcome::kFailed);
  EXPECT_EQ(too_short.status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(too_short.status), HasSubstr("7 tokens; 8 were asked for"));
  EXPECT_EQ(OutcomeOf(unfinished), Outcome::kFailed);
  EXPECT_THAT(MessageOf(unfinished.status), HasSubstr("without a `finished` event"));
}

TEST(LoadResults, SpreadsAMessageOverItsTokens) {
  RequestRecord record = Completed(7);
  record.gaps = {{.gap = milliseconds(12), .tokens = 4}, {.gap = milliseconds(5), .tokens = 2}};
  LoadResults results;

  results.Add(std::move(record));

  // Four times 3 ms and twice 2.5 ms.
  EXPECT_EQ(results.inter_token.count(), 6);
  EXPECT_NEAR(results.inter_token.MeanSeconds(), 17e-3 / 6, 1e-9);
  EXPECT_NEAR(results.inter_token.PercentileSeconds(33), 2.5e-3, 2e-6);
  EXPECT_NEAR(results.inter_token.PercentileSeconds(50), 3e-3, 2e-6);
  EXPECT_EQ(results.message_gap.count(), 2);
  EXPECT_DOUBLE_EQ(results.message_gap.MaxSeconds(), 12e-3);
  EXPECT_DOUBLE_EQ(results.time_to_first_token.MaxSeconds(), 30e-3);
  EXPECT_DOUBLE_EQ(results.end_to_end.MaxSeconds(), 90e-3);
}

TEST(LoadResults, TakesNoLatencyFromAStalledRequest) {
  RequestRecord record = Completed(8);
  record.disturbance = Disturbance::kStall;
  LoadResults results;

  results.Add(std::move(record));

  EXPECT_EQ(results.completed, 1);
  EXPECT_EQ(results.stalled, 1);
  EXPECT_EQ(results.end_to_end.count(), 0);
}

TEST(LoadResults, CountsWhatEndedInTheWindowForRates) {
  LoadResults results;
  results.window_seconds = 4;
  results.Add(Completed(8));
  results.Add(Completed(8));
  RequestRecord late = Completed(8);
  late.within_window = false;
  results.Add(std::move(late));

  EXPECT_EQ(results.completed, 3);
  EXPECT_DOUBLE_EQ(results.PerSecond(results.completed_within_window), 0.5);
  EXPECT_DOUBLE_EQ(results.PerSecond(results.prompt_tokens_within_window), 5);
  EXPECT_EQ(results.prompt_tokens, 30);
  EXPECT_EQ(results.cached_prompt_tokens, 12);
  EXPECT_EQ(results.received_tokens, 24);
  EXPECT_EQ(LoadResults().PerSecond(7), 0);
}

TEST(LoadResults, KeepsFailuresByCode) {
  LoadResults results;
  results.Add(Failed(Disturbance::kNone, ResourceExhausted("queue of 4"), 0));
  results.Add(Failed(Disturbance::kNone, ResourceExhausted("queue of 5"), 0));
  results.Add(Failed(Disturbance::kCancel, Internal("oh"), 1));
  results.Add(Failed(Disturbance::kCancel, Status(StatusCode::kCancelled, ""), 1));

  EXPECT_EQ(results.failed, 3);
  EXPECT_EQ(results.cancelled, 1);
  ASSERT_THAT(results.failures, SizeIs(2));
  const FailureCount& exhausted = results.failures.at(StatusCode::kResourceExhausted);
  EXPECT_EQ(exhausted.count, 2);
  EXPECT_EQ(exhausted.first_message, "queue of 4");
  EXPECT_DOUBLE_EQ(exhausted.until_answer.MaxSeconds(), 2e-3);
  EXPECT_EQ(results.received_tokens, 2);
}

TEST(LoadResults, KeepsTokensOfCompletedRequestsToVerify) {
  LoadResults results;
  RequestRecord record = Completed(2);
  record.index = 6;
  record.verify = true;
  record.token_ids = {5, 3};
  results.Add(record);
  record.status = Internal("oh");
  results.Add(record);

  ASSERT_THAT(results.verifiable, SizeIs(1));
  EXPECT_EQ(results.verifiable[0].index, 6U);
  EXPECT_THAT(results.verifiable[0].token_ids, ElementsAre(5, 3));
}

}  // namespace
}  // namespace switchyard
