#include "program/bench/load_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/bench/verification.h"
#include "tests/program/bench/tiny_server.h"

// The driver against a real server; what is measured is not looked at, only what is counted.

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int32_t kVocabulary = 61;

LoadShape SmallShape() {
  LoadShape shape;
  shape.prompt_tokens = *LengthDistribution::Parse("uniform:1-12");
  shape.output_tokens = *LengthDistribution::Parse("uniform:2-20");
  return shape;
}

LoadSchedule Requests(int64_t count, int32_t concurrency) {
  LoadSchedule schedule;
  schedule.concurrency = concurrency;
  schedule.max_requests = count;
  schedule.deadline = milliseconds(1);
  schedule.stall = milliseconds(1);
  schedule.time_limit = milliseconds(60'000);
  return schedule;
}

int64_t PlannedTokens(const LoadPlan& plan, uint64_t count) {
  int64_t tokens = 0;
  for (uint64_t i = 0; i < count; ++i) {
    tokens += plan.At(i).request.stopping().max_tokens();
  }
  return tokens;
}

LoadResults Drive(const LoadPlan& plan, const LoadSchedule& schedule, const std::string& address) {
  const LoadClients clients = ConnectLoad(address, {}, 2);
  return LoadDriver(plan, clients).Run(schedule, 0, {});
}

TEST(LoadDriver, BringsEveryTokenOfAClosedLoop) {
  const TinyServer server;
  const LoadPlan plan(SmallShape(), kVocabulary);

  const LoadResults results = Drive(plan, Requests(40, 16), server.address());

  EXPECT_EQ(results.started, 40);
  EXPECT_EQ(results.completed, 40);
  EXPECT_EQ(results.failed, 0);
  EXPECT_EQ(results.received_tokens, PlannedTokens(plan, 40));
  EXPECT_EQ(results.received_tokens_within_window, results.received_tokens);
  EXPECT_EQ(results.time_to_first_token.count(), 40);
  EXPECT_EQ(results.end_to_end.count(), 40);
  // Every token but the first of each request has one before it.
  EXPECT_EQ(results.inter_token.count(), results.received_tokens - 40);
  EXPECT_GT(results.window_seconds, 0);
}

TEST(LoadDriver, SendsAnOpenLoopWhateverTheServerDoes) {
  const TinyServer server;
  const LoadPlan plan(SmallShape(), kVocabulary);
  LoadSchedule schedule = Requests(50, 1);
  schedule.requests_per_second = 2000;

  const LoadResults results = Drive(plan, schedule, server.address());

  EXPECT_EQ(results.started, 50);
  EXPECT_EQ(results.completed, 50);
  EXPECT_EQ(results.received_tokens, PlannedTokens(plan, 50));
}

TEST(LoadDriver, StopsSendingWhenTheTimeIsOver) {
  const TinyServer server;
  const LoadPlan plan(SmallShape(), kVocabulary);
  LoadSchedule schedule = Requests(1, 4);
  schedule.max_requests.reset();
  schedule.max_time = milliseconds(200);

  const LoadResults results = Drive(plan, schedule, server.address());

  EXPECT_GT(results.started, 0);
  EXPECT_EQ(results.completed, results.started);
  EXPECT_DOUBLE_EQ(results.window_seconds, 0.2);
  EXPECT_LE(results.received_tokens_within_window, results.received_tokens);
}

TEST(LoadDriver, AccountsForEveryDisturbedRequestAndLeavesNothingOnTheServer) {
  const TinyServer server;
  LoadShape shape = SmallShape();
  shape.output_tokens = *LengthDistribution::Parse("uniform:2-200");
  shape.cancel_share = 0.4;
  shape.deadline_share = 0.2;
  shape.stall_share = 0.2;
  const LoadPlan plan(shape, kVocabulary);

  const LoadResults results = Drive(plan, Requests(120, 24), server.address());

  EXPECT_EQ(results.started, 120);
  EXPECT_EQ(
      results.completed + results.cancelled + results.past_deadline + results.stall_ended, 120
  ) << (results.failures.empty() ? "" : results.failures.begin()->second.first_message);
  EXPECT_GT(results.cancelled, 0);
  EXPECT_GT(results.past_deadline, 0);
  EXPECT_GT(results.stalled, 0);
  // The engine takes cancels between its steps, before it answers a later request.
  LoadResults after = Drive(LoadPlan(SmallShape(), kVocabulary), Requests(1, 1), server.address());
  EXPECT_EQ(after.completed, 1);
}

TEST(LoadDriver, CountsRefusalsByCodeAndGoesOn) {
  const TinyServer server(/*max_running=*/1, /*max_queued=*/1);
  LoadShape shape = SmallShape();
  // Long ones, so that the others arrive while the first still runs.
  shape.output_tokens = LengthDistribution::Fixed(1500);
  LoadSchedule schedule = Requests(60, 1);
  schedule.requests_per_second = 1e6;

  const LoadResults results = Drive(LoadPlan(shape, kVocabulary), schedule, server.address());

  EXPECT_EQ(results.started, 60);
  EXPECT_EQ(results.completed + results.failed, 60);
  ASSERT_THAT(results.failures, ElementsAre(Pair(StatusCode::kResourceExhausted, ::testing::_)));
  const FailureCount& refused = results.failures.at(StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.count, results.failed);
  EXPECT_EQ(refused.until_answer.count(), results.failed);
}

TEST(LoadDriver, GivesUpWhenThereIsNoServer) {
  const LoadPlan plan(SmallShape(), kVocabulary);

  const LoadResults results = Drive(plan, Requests(1'000'000, 50), "127.0.0.1:1");

  EXPECT_TRUE(results.gave_up);
  EXPECT_GE(results.failed, 100);
  EXPECT_LT(results.failed, 1000);
  EXPECT_THAT(results.failures, ElementsAre(Pair(StatusCode::kUnavailable, ::testing::_)));
  EXPECT_THAT(
      results.failures.at(StatusCode::kUnavailable).first_message, HasSubstr("127.0.0.1:1")
  );
}

TEST(VerifyAlone, GivesTheTokensThatTheLoadGot) {
  const TinyServer server;
  LoadShape shape = SmallShape();
  shape.temperature = 1;
  shape.verify_share = 1;
  const LoadPlan plan(shape, kVocabulary);
  const LoadResults results = Drive(plan, Requests(30, 15), server.address());
  ASSERT_THAT(results.verifiable, SizeIs(30));
  int64_t last_progress = 0;

  const auto verification =
      VerifyAlone(Client(server.address()), plan, results.verifiable, [&](int64_t done) {
        last_progress = done;
      });

  ASSERT_TRUE(verification.ok()) << verification.status();
  EXPECT_EQ(verification->checked, 30);
  EXPECT_THAT(verification->mismatches, SizeIs(0));
  EXPECT_EQ(last_progress, 30);
}

TEST(VerifyAlone, FindsTheFirstTokenThatDiffers) {
  const TinyServer server;
  LoadShape shape = SmallShape();
  shape.prompt_tokens = LengthDistribution::Fixed(3);
  shape.output_tokens = LengthDistribution::Fixed(10);
  shape.verify_share = 1;
  const LoadPlan plan(shape, kVocabulary);
  LoadResults results = Drive(plan, Requests(3, 1), server.address());
  ASSERT_THAT(results.verifiable, SizeIs(3));
  const int32_t right = results.verifiable[0].token_ids[4];
  results.verifiable[0].token_ids[4] = 1000;
  results.verifiable[0].token_ids[6] = 1000;
  results.verifiable[2].token_ids.pop_back();

  const auto verification =
      VerifyAlone(Client(server.address()), plan, results.verifiable, [](int64_t /*done*/) {});

  ASSERT_TRUE(verification.ok()) << verification.status();
  ASSERT_THAT(verification->mismatches, SizeIs(2));
  const Mismatch& changed = verification->mismatches[0];
  EXPECT_EQ(changed.index, 0U);
  EXPECT_EQ(changed.position, 4);
  EXPECT_EQ(changed.under_load, 1000);
  EXPECT_EQ(changed.alone, right);
  EXPECT_EQ(changed.prompt_tokens, 3);
  EXPECT_EQ(verification->mismatches[1].position, 9);
  EXPECT_EQ(verification->mismatches[1].under_load, -1);
}

TEST(VerifyAlone, SaysWhichRequestCouldNotBeRunAgain) {
  TinyServer server;
  const LoadPlan plan(SmallShape(), kVocabulary);
  server.Stop();

  const auto verification =
      VerifyAlone(Client(server.address()), plan, {{.index = 7}}, [](int64_t /*done*/) {});

  EXPECT_EQ(verification.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(verification.status()), HasSubstr("running request 7 again alone"));
}

}  // namespace
}  // namespace switchyard
