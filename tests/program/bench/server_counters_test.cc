#include "program/bench/server_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/bench/tiny_server.h"

namespace switchyard {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ServerCounters, DifferInWhatBothReadingsHave) {
  const ServerCounters before = {{"a", 3}, {"gone", 1}, {"b", 0.5}};
  const ServerCounters after = {{"b", 2}, {"new", 7}, {"a", 3}};

  EXPECT_THAT(DifferenceOf(before, after), ElementsAre(Pair("b", 1.5), Pair("a", 0)));
}

TEST(ServerCounters, CountTheComputedTokens) {
  const TinyServer server;
  const Client client(server.address());
  const ServerCounters before = ReadServerCounters(client);
  v1::GenerateRequest request;
  request.mutable_prompt_tokens()->mutable_ids()->Resize(9, 5);
  request.mutable_stopping()->set_max_tokens(6);
  request.mutable_stopping()->set_ignore_eos(true);
  ASSERT_TRUE(client.GenerateOnce(request).ok());

  // The last token that comes out does not go in again.
  EXPECT_THAT(
      DifferenceOf(before, ReadServerCounters(client)),
      ElementsAre(
          Pair("prefill_tokens_computed", 9),
          Pair("decode_tokens_computed", 5),
          Pair("recomputed_tokens", 0),
          Pair("steps", 6),
          Pair("preemptions", 0),
          Pair("step_seconds", Gt(0)),
          Pair("scheduling_seconds", Gt(0))
      )
  );
}

TEST(ServerCounters, SayWhatAStepTookAndHowMuchOfItWasScheduling) {
  ServerCounters difference = {{"steps", 4}, {"step_seconds", 0.5}, {"scheduling_seconds", 0.01}};

  AddStepRatios(difference);

  ASSERT_EQ(difference.size(), 6);
  EXPECT_THAT(difference[3], Pair("milliseconds_per_step", DoubleEq(125)));
  EXPECT_THAT(difference[4], Pair("scheduling_microseconds_per_step", DoubleEq(2500)));
  EXPECT_THAT(difference[5], Pair("scheduling_percent_of_steps", DoubleEq(2)));
}

TEST(ServerCounters, SayNothingOfStepsWhenThereWereNone) {
  ServerCounters difference = {{"steps", 0}, {"step_seconds", 0}};

  AddStepRatios(difference);

  EXPECT_EQ(difference.size(), 2);
}

TEST(ServerCounters, AreLeftOutWhenThereIsNoServer) {
  const Client client("127.0.0.1:1", {.deadline = std::chrono::milliseconds(2000)});

  EXPECT_THAT(ReadServerCounters(client), IsEmpty());
}

}  // namespace
}  // namespace switchyard
