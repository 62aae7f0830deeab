#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/backend.h"
#include "tests/engine/make_sequence.h"

namespace switchyard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SamplerTest : public ::testing::Test {
 protected:
  // Chooses for `sequences` from rows of five logits each.
  void Select(std::vector<float> logits, const std::vector<const Sequence*>& sequences) {
    const auto rows = static_cast<int64_t>(sequences.size());
    sampler_.Select(sampler_.Gather(TensorView(logits.data(), DType::kF32, {rows, 5}), sequences));
    ASSERT_TRUE(ops_->Finish().ok());
  }

  std::unique_ptr<Ops> ops_ = *MakeOps({.device = "reference"});
  StopChecker stop_checker_{{1}, 100};
  Sampler sampler_{
      *ops_, stop_checker_, {.max_rows = 4, .vocabulary_size = 5, .context_tokens = 100}};
};

SamplingParameters Greedy() {
  SamplingParameters sampling;
  sampling.temperature = 0;
  return sampling;
}

TEST_F(SamplerTest, ChoosesEachRowsLargestLogitAtTemperatureZero) {
  const auto a = MakeSequence({.prompt = {0}, .sampling = Greedy()});
  const auto b = MakeSequence({.prompt = {0}, .sampling = Greedy()});

  Select({0, 1, 5, 2, 3, 9, 1, 5, 2, 3}, {a.get(), b.get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 2);
  EXPECT_EQ(sampler_.Chosen(1).id, 0);
}

TEST_F(SamplerTest, ForbidsEndOfSequenceAndStopTokensBeforeMinTokens) {
  SequenceSpec spec{
      .prompt = {0},
      .generated = {4},
      .sampling = Greedy(),
      .stopping = {.max_tokens = 9, .min_tokens = 2, .stop_token_ids = {3}}};
  const std::vector<float> logits = {0, 9, 5, 8, 3};

  Select(logits, {MakeSequence(spec).get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 2);

  spec.generated = {4, 4};
  Select(logits, {MakeSequence(spec).get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 1);
}

TEST_F(SamplerTest, DoesNotForbidAnIgnoredEndOfSequence) {
  const auto sequence = MakeSequence(
      {.prompt = {0},
       .sampling = Greedy(),
       .stopping = {.max_tokens = 9, .min_tokens = 2, .ignore_eos = true}}
  );

  Select({0, 9, 5, 8, 3}, {sequence.get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 1);
}

TEST_F(SamplerTest, AddsTheRequestsBiasToItsOwnRowOnly) {
  SamplingParameters sampling = Greedy();
  sampling.logit_bias = {{4, 10.0F}, {2, -10.0F}};
  const auto biased = MakeSequence({.prompt = {0}, .sampling = sampling});
  const auto plain = MakeSequence({.prompt = {0}, .sampling = Greedy()});

  Select({0, 1, 5, 2, 3, 0, 1, 5, 2, 3}, {biased.get(), plain.get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 4);
  EXPECT_EQ(sampler_.Chosen(1).id, 2);
}

TEST_F(SamplerTest, PenalisesTokensOfThePromptAndOfTheCompletion) {
  SamplingParameters repetition = Greedy();
  repetition.repetition_penalty = 4;
  SamplingParameters frequency = Greedy();
  frequency.frequency_penalty = 1;
  // The prompt's 2 falls from 5 to 1.25; only generated tokens count for the frequency, so 3 falls
  // from 6 to 4.
  const auto a = MakeSequence({.prompt = {2}, .sampling = repetition});
  const auto b = MakeSequence(
      {.prompt = {2}, .generated = {3, 3}, .sampling = frequency, .stopping = {.max_tokens = 9}}
  );

  Select({0, 1, 5, 2, 3, 0, 1, 5, 6, 3}, {a.get(), b.get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 4);
  EXPECT_EQ(sampler_.Chosen(1).id, 2);
}

TEST_F(SamplerTest, GivesEachRowAsManyLogprobsAsItAskedFor) {
  SamplingParameters two = Greedy();
  two.top_logprobs = 2;
  SamplingParameters none = Greedy();
  none.top_logprobs = 0;
  const auto a = MakeSequence({.prompt = {0}, .sampling = none});
  const auto b = MakeSequence({.prompt = {0}, .sampling = two});
  const float third = std::log(0.25F);

  // exp: 1 1 2 and two that vanish.
  Select({0, 1, 5, 2, 3, 0, 0, std::log(2.0F), -1000, -1000}, {a.get(), b.get()});

  EXPECT_EQ(sampler_.Chosen(0).top.size(), 0);
  const Selection chosen = sampler_.Chosen(1);
  EXPECT_NEAR(chosen.logprob, std::log(0.5F), 1e-6);
  ASSERT_EQ(chosen.top.size(), 2);
  EXPECT_EQ(chosen.top[0].id, 2);
  EXPECT_NEAR(chosen.top[0].logprob, std::log(0.5F), 1e-6);
  EXPECT_EQ(chosen.top[1].id, 0);
  EXPECT_NEAR(chosen.top[1].logprob, third, 1e-6);
}

TEST_F(SamplerTest, AsksForNoMoreLogprobsThanThereAreTokens) {
  SamplingParameters sampling = Greedy();
  sampling.top_logprobs = 20;
  const auto sequence = MakeSequence({.prompt = {0}, .sampling = sampling});

  Select({0, 1, 5, 2, 3}, {sequence.get()});

  EXPECT_EQ(sampler_.Chosen(0).top.size(), 5);
}

TEST_F(SamplerTest, DrawsByLengthAndSeedAndNotByRow) {
  SequenceSpec spec{.prompt = {0, 0, 0}, .stopping = {.max_tokens = 99}};
  spec.sampling.seed = 42;
  const auto other = MakeSequence({.prompt = {0}});
  for (int32_t length = 0; length < 20; ++length) {
    const auto sequence = MakeSequence(spec);
    Select({0, 0, 0, 0, 0}, {sequence.get()});
    const int32_t alone = sampler_.Chosen(0).id;

    Select({3, 1, 5, 2, 3, 0, 0, 0, 0, 0}, {other.get(), sequence.get()});

    EXPECT_EQ(sampler_.Chosen(1).id, alone) << "after " << length << " tokens";
    spec.generated.push_back(alone);
  }
  EXPECT_THAT(spec.generated, ::testing::Contains(::testing::Ne(spec.generated[0])));
}

TEST_F(SamplerTest, HandsTypicalPOn) {
  // Probabilities 0.1, 0.4, 0.2, 0.3 and 0: nearest to the entropy is token 3, then 2.
  SequenceSpec spec{.prompt = {0}, .stopping = {.max_tokens = 99}};
  spec.sampling.typical_p = 0.25F;
  for (int32_t length = 0; length < 20; ++length) {
    Select({0, std::log(4.0F), std::log(2.0F), std::log(3.0F), -1000}, {MakeSequence(spec).get()});

    EXPECT_EQ(sampler_.Chosen(0).id, 3);
    spec.generated.push_back(0);
  }
}

TEST_F(SamplerTest, ForbidsATokenThatWouldRepeatAnNgramOfPromptAndCompletion) {
  SequenceSpec spec{
      .prompt = {0, 2},
      .generated = {3, 4, 0},
      .sampling = Greedy(),
      .stopping = {.max_tokens = 9}};
  spec.sampling.no_repeat_ngram_tokens = 2;
  const std::vector<float> logits = {0, 1, 5, 2, 3};

  // 0 2 is there already, at the start of the prompt.
  Select(logits, {MakeSequence(spec).get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 4);

  // With 0 4, 4 0 and 0 4 forbids 2 and 4 behind a third 0.
  spec.generated = {3, 4, 0, 4, 4, 0};
  Select(logits, {MakeSequence(spec).get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 3);

  spec.sampling.no_repeat_ngram_tokens = 3;
  Select(logits, {MakeSequence(spec).get()});

  EXPECT_EQ(sampler_.Chosen(0).id, 2) << "4 0 was followed by 4 only";
}

TEST_F(SamplerTest, ForbidsTheLastTokenOfABadWordWhereTheOthersStand) {
  SequenceSpec spec{
      .prompt = {4}, .generated = {3}, .sampling = Greedy(), .stopping = {.max_tokens = 9}};
  const std::vector<float> logits = {0, 1, 5, 2, 3};
  const auto chosen_with = [&](std::vector<std::vector<int32_t>> bad_words) {
    spec.sampling.bad_words = std::move(bad_words);
    Select(logits, {MakeSequence(spec).get()});
    return sampler_.Chosen(0).id;
  };

  EXPECT_EQ(chosen_with({{2}}), 4) << "a word of one token, always";
  EXPECT_EQ(chosen_with({{3, 2}}), 4);
  EXPECT_EQ(chosen_with({{4, 3, 2}}), 4) << "the prompt's 4 counts too";
  EXPECT_EQ(chosen_with({{4, 2}}), 2) << "4 is not the last token";
  EXPECT_EQ(chosen_with({{0, 4, 3, 2}}), 2) << "more tokens than there are";
  EXPECT_EQ(chosen_with({{0, 2}, {2}, {3, 4}}), 3);
}

TEST_F(SamplerTest, ChoosesOnlyAllowedTokensInTheRowThatSaysSo) {
  SamplingParameters sampling = Greedy();
  sampling.allowed_token_ids = {0, 3};
  const auto restricted = MakeSequence({.prompt = {0}, .sampling = sampling});
  const auto plain = MakeSequence({.prompt = {0}, .sampling = Greedy()});

  Select(
      {0, 1, 5, 2, 3, 0, 1, 5, 2, 3, 0, 1, 5, 2, 3},
      {restricted.get(), plain.get(), restricted.get()}
  );

  EXPECT_EQ(sampler_.Chosen(0).id, 3);
  EXPECT_EQ(sampler_.Chosen(1).id, 2);
  EXPECT_EQ(sampler_.Chosen(2).id, 3);
}

TEST_F(SamplerTest, TellsARowWithoutAnyTokenLeftFromOneThatIsNotFinite) {
  SamplingParameters sampling = Greedy();
  sampling.allowed_token_ids = {1, 3};
  sampling.bad_words = {{3}};
  // The only token left is the end of the sequence, which min_tokens holds back.
  const auto impossible = MakeSequence(
      {.prompt = {0}, .sampling = sampling, .stopping = {.max_tokens = 9, .min_tokens = 1}}
  );
  const auto possible = MakeSequence({.prompt = {0}, .sampling = sampling});

  Select({0, 1, 5, 2, 3, 0, 1, 5, 2, 3}, {impossible.get(), possible.get()});

  EXPECT_EQ(sampler_.Chosen(0).id, kEveryTokenForbidden);
  EXPECT_EQ(sampler_.Chosen(1).id, 1);
}

TEST_F(SamplerTest, MarksARowThatIsNotFiniteAndNoOther) {
  const auto a = MakeSequence({.prompt = {0}, .sampling = Greedy()});
  const auto b = MakeSequence({.prompt = {0}, .sampling = Greedy()});

  Select({0, kNan, 5, 2, 3, 0, 1, 5, 2, 3}, {a.get(), b.get()});

  EXPECT_EQ(sampler_.Chosen(0).id, kLogitsNotFinite);
  EXPECT_EQ(sampler_.Chosen(1).id, 2);
}

}  // namespace
}  // namespace switchyard
