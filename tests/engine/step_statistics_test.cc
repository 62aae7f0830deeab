#include "engine/step_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/driven_engine.h"
#include "tests/engine/make_sequence.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr double kLong = 1000;  // seconds, above every bound

TEST(CountPhaseTokens, SplitsASliceAtWhatWasComputedBeforeAndAtTheEndOfThePrompt) {
  const auto sequence = MakeSequence(
      {.prompt = {1, 2, 3, 4, 5}, .generated = {6, 7}, .blocks = {0, 1}, .computed_tokens = 1}
  );
  sequence->most_computed_tokens = 3;

  const PhaseTokens tokens =
      CountPhaseTokens({{.sequence = sequence.get(), .planned = {.tokens = 6}}});

  // Positions 1 and 2 again, 3 and 4 of the prompt, 5 and 6 of the completion.
  EXPECT_THAT(tokens, ElementsAre(2, 2, 2, 0));
}

TEST(CountPhaseTokens, KeepsWarmUpApart) {
  const auto sequence = MakeSequence({.prompt = {1, 2, 3}, .blocks = {0}});
  sequence->is_warm_up = true;

  const PhaseTokens tokens =
      CountPhaseTokens({{.sequence = sequence.get(), .planned = {.tokens = 3}}});

  EXPECT_THAT(tokens, ElementsAre(0, 0, 0, 3));
}

TEST(StepStatistics, TellsStepsByWhatTheyComputed) {
  StepStatistics statistics;

  statistics.CountStep({7, 0, 0, 0}, kLong);
  statistics.CountStep({0, 0, 3, 0}, kLong);
  statistics.CountStep({0, 4, 0, 0}, kLong);
  statistics.CountStep({5, 1, 0, 0}, 2 * kLong);

  EXPECT_EQ(statistics.Seconds(StepKind::kPrefill).counts.back(), 2);
  EXPECT_EQ(statistics.Seconds(StepKind::kDecode).counts.back(), 1);
  EXPECT_EQ(statistics.Seconds(StepKind::kMixed).counts.back(), 1);
  EXPECT_EQ(statistics.Seconds(StepKind::kMixed).sum, 2 * kLong);
  EXPECT_EQ(statistics.BatchTokens().sum, 7 + 3 + 4 + 6);
  EXPECT_EQ(statistics.Tokens(Phase::kPrefill), 12);
  EXPECT_EQ(statistics.Tokens(Phase::kDecode), 5);
  EXPECT_EQ(statistics.Tokens(Phase::kRecompute), 3);
}

TEST(StepStatistics, CountWhatTheRoutersOfARunningEngineCount) {
  DrivenEngine engine({});
  engine.Add(GreedyRequest(Prompt(21), 7));
  engine.Add(GreedyRequest(Prompt(5), 3));

  engine.RunAll();

  const StepStatistics& steps = engine.core().step_statistics();
  EXPECT_EQ(steps.Tokens(Phase::kPrefill) + engine.core().Load().cached_prompt_tokens_total, 26);
  EXPECT_EQ(steps.Tokens(Phase::kDecode), 6 + 2);  // the last token is never computed
  const RouterStatistics router = engine.core().ReadExpertStatistics().routers.at(0);
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode, Phase::kRecompute}) {
    const int64_t columns = router.heads * router.experts;
    int64_t assignments = 0;
    for (int64_t column = 0; column < columns; ++column) {
      assignments +=
          router.tokens[static_cast<size_t>(static_cast<int64_t>(phase) * columns + column)];
    }
    EXPECT_EQ(assignments, steps.Tokens(phase) * router.top_k * router.heads);
  }
}

TEST(TokenEvents, TellTheTimeSinceAcceptanceAndThenSinceTheTokenBefore) {
  class Times final : public TokenSink {
   public:
    Verdict OnToken(const TokenEvent& event) override {
      since_previous.push_back(event.since_previous);
      return Verdict::kContinue;
    }
    void OnFinished(const FinishEvent& /*event*/) override {}
    std::vector<std::optional<std::chrono::nanoseconds>> since_previous;
  };
  DrivenEngine engine({});
  const auto times = std::make_shared<Times>();
  GenerationRequest request = GreedyRequest(Prompt(3), 3);
  request.sink = times;
  engine.AddAsItIs(std::move(request));

  engine.now += std::chrono::seconds(5);
  engine.core().Step();
  engine.now += std::chrono::seconds(2);
  engine.core().Step();
  engine.now += std::chrono::seconds(3);
  engine.core().Step();

  EXPECT_THAT(
      times->since_previous,
      ElementsAre(
          Optional(std::chrono::seconds(5)),
          Optional(std::chrono::seconds(2)),
          Optional(std::chrono::seconds(3))
      )
  );
}

}  // namespace
}  // namespace switchyard
