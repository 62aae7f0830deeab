#include "program/bench/server_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/bench/tiny_server.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
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
          Pair("recomputed_tokens", 0)
      )
  );
}

TEST(ServerCounters, AreLeftOutWhenThereIsNoServer) {
  const Client client("127.0.0.1:1", {.deadline = std::chrono::milliseconds(2000)});

  EXPECT_THAT(ReadServerCounters(client), IsEmpty());
}

}  // namespace
}  // namespace switchyard
