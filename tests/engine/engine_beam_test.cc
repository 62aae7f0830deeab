#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/engine/completions_sink.h"
#include "tests/engine/driven_engine.h"

namespace switchyard {
namespace {

using ::testing::SizeIs;

struct Found {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Found&) const = default;
};

// Log-probabilities of all tokens after `tokens`, computed alone and from nothing.
std::vector<TokenLogprobValue> AllAfter(const std::vector<int32_t>& tokens, int32_t vocabulary) {
  DrivenEngine engine({});
  GenerationRequest request = GreedyRequest(tokens, 1);
  request.sampling.top_logprobs = vocabulary;
  const auto sink = engine.Add(std::move(request));
  engine.RunAll();
  return sink->tops[0];
}

// A beam search as one would write it down, without stop tokens.
std::vector<Found> ExpectedBeams(
    const std::vector<int32_t>& prompt, size_t width, int32_t max_tokens, int32_t vocabulary
) {
  struct Beam {
    Found found;
    double sum = 0;
  };
  std::vector<Beam> beams(1);
  for (int32_t round = 0; round < max_tokens; ++round) {
    std::vector<Beam> next;
    for (const Beam& beam : beams) {
      std::vector<int32_t> tokens = prompt;
      tokens.insert(tokens.end(), beam.found.tokens.begin(), beam.found.tokens.end());
      for (const TokenLogprobValue& token : AllAfter(tokens, vocabulary)) {
        Beam longer = beam;
        longer.found.tokens.push_back(token.id);
        longer.found.logprobs.push_back(token.logprob);
        longer.sum += token.logprob;
        next.push_back(std::move(longer));
      }
    }
    std::ranges::sort(next, std::ranges::greater(), &Beam::sum);
    next.resize(width);
    beams = std::move(next);
  }
  std::vector<Found> found;
  for (const Beam& beam : beams) {
    found.push_back(beam.found);
  }
  return found;
}

std::vector<Found> Search(DrivenEngine& engine, size_t prompt_tokens, int32_t width, int32_t max) {
  GenerationRequest request = GreedyRequest(Prompt(prompt_tokens), max);
  request.beam_search = BeamParameters{.width = width};
  request.completions = width;
  auto sink = std::make_shared<CompletionsSink>();
  request.sink = sink;
  engine.AddAsItIs(std::move(request));
  engine.RunAll();
  std::vector<Found> found;
  for (const auto& [index, completion] : sink->completions) {
    EXPECT_EQ(completion.finished_calls, 1);
    EXPECT_EQ(completion.finished->reason, FinishReason::kLength);
    found.push_back({.tokens = completion.tokens, .logprobs = completion.logprobs});
  }
  return found;
}

int32_t Vocabulary() {
  return static_cast<int32_t>(DrivenEngine({}).core().model().config().vocabulary_size);
}

TEST(BeamSearchEngine, FindsWhatAPlainSearchFindsBitForBit) {
  const std::vector<Found> expected = ExpectedBeams(Prompt(7), 3, 5, Vocabulary());
  DrivenEngine engine({});

  EXPECT_EQ(Search(engine, 7, 3, 5), expected);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(BeamSearchEngine, FindsTheSameWhenItsPromptEndsWithABlock) {
  const std::vector<Found> expected = ExpectedBeams(Prompt(8), 3, 6, Vocabulary());
  DrivenEngine engine({});

  EXPECT_EQ(Search(engine, 8, 3, 6), expected);
}

TEST(BeamSearchEngine, FindsTheSameBesideOthersThatTakeItsBlocks) {
  DrivenEngine roomy({});
  const std::vector<Found> expected = Search(roomy, 9, 3, 14);
  DrivenEngine engine(
      {.limits = {.max_step_tokens = 8, .max_running = 6, .block_tokens = 4, .growth_tokens = 0},
       .blocks = 18}
  );
  for (int32_t first = 40; first < 43; ++first) {
    GenerationRequest other = GreedyRequest(Prompt(11), 20);
    other.prompt[0] = first;
    engine.Add(std::move(other));
    engine.core().Step();
  }

  EXPECT_EQ(Search(engine, 9, 3, 14), expected);
  EXPECT_GT(engine.core().Load().preempted_total, 0);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(BeamSearchEngine, IsCancelledWholeInAnyState) {
  for (const int steps : {0, 1, 2, 5}) {
    DrivenEngine engine({});
    GenerationRequest request = GreedyRequest(Prompt(7), 20);
    request.beam_search = BeamParameters{.width = 3};
    request.completions = 2;
    auto sink = std::make_shared<CompletionsSink>();
    request.sink = sink;
    engine.AddAsItIs(std::move(request));
    for (int step = 0; step < steps; ++step) {
      engine.core().Step();
    }

    engine.core().Cancel(engine.last_id());

    ASSERT_THAT(sink->completions, SizeIs(2)) << "after " << steps << " steps";
    EXPECT_EQ(sink->completions[1].finished->reason, FinishReason::kCancelled);
    EXPECT_EQ(sink->completions[1].finished_calls, 1);
    EXPECT_FALSE(engine.core().HasWork());
    EXPECT_TRUE(engine.all_blocks_are_free());
  }
}

TEST(BeamSearchEngine, RefusesMoreBeamsThanRunAtOnceOrTheCacheHolds) {
  DrivenEngine engine({.blocks = 8});
  const auto status_of = [&engine](int32_t width, int32_t max_tokens) {
    GenerationRequest request = GreedyRequest(Prompt(7), max_tokens);
    request.beam_search = BeamParameters{.width = width};
    request.sink = std::make_shared<CompletionsSink>();
    return MessageOf(engine.core().Accept(RequestId{9}, std::move(request)).status());
  };

  EXPECT_EQ(status_of(5, 1), "the beam width is 5; use 1 to 4, as many as run at once");
  EXPECT_EQ(
      status_of(4, 6),
      "4 beams of 13 tokens need 16 blocks; the KV cache has 8; use fewer beams or tokens, or give "
      "the server a larger KV cache"
  );
}

}  // namespace
}  // namespace switchyard
