#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"

// What a request may ask of the choice of tokens, over gRPC with the trained models.

namespace switchyard {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class SamplingOptions : public ::testing::TestWithParam<std::string> {
 protected:
  static v1::GenerateRequest Request(int32_t max_tokens, float temperature) {
    v1::GenerateRequest request;
    request.set_prompt_text("And the LORD said unto Moses,");
    request.mutable_sampling()->set_temperature(temperature);
    request.mutable_sampling()->set_top_p(1);
    request.mutable_sampling()->set_seed(11);
    request.mutable_stopping()->set_max_tokens(max_tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_output()->set_echo_prompt_tokens(true);
    return request;
  }

  Stream Run(const v1::GenerateRequest& request) { return Generate(server_.inference(), request); }

  ModelServer server_{GetParam()};
};

TEST_P(SamplingOptions, OnlyAllowedTokensAreGenerated) {
  v1::GenerateRequest request = Request(50, 2);
  for (const int32_t id : {300, 40, 301, 302}) {
    request.mutable_sampling()->add_allowed_token_ids(id);
  }

  const Stream stream = Run(request);

  ASSERT_TRUE(stream.status.ok()) << stream.status.error_message();
  EXPECT_THAT(stream.token_ids, SizeIs(50));
  EXPECT_THAT(stream.token_ids, Each(AnyOf(40, 300, 301, 302)));
  EXPECT_GT(std::set<int32_t>(stream.token_ids.begin(), stream.token_ids.end()).size(), 1U);
}

// How many runs of three tokens occur a second time.
int RepeatedTriples(const std::vector<int32_t>& tokens) {
  std::set<std::vector<int32_t>> seen;
  int repeats = 0;
  for (size_t i = 0; i + 3 <= tokens.size(); ++i) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    repeats += seen.emplace(begin, begin + 3).second ? 0 : 1;
  }
  return repeats;
}

std::vector<int32_t> PromptAndCompletion(const Stream& stream) {
  const auto& prompt = stream.finished.at(0).prompt_token_ids();
  std::vector<int32_t> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), stream.token_ids.begin(), stream.token_ids.end());
  return tokens;
}

TEST_P(SamplingOptions, NoRunOfThreeTokensOccursTwice) {
  v1::GenerateRequest request = Request(200, 0.1F);
  const Stream free = Run(request);
  request.mutable_sampling()->set_no_repeat_ngram_size(3);
  const Stream restricted = Run(request);

  ASSERT_THAT(free.finished, SizeIs(1));
  ASSERT_THAT(restricted.finished, SizeIs(1));
  EXPECT_THAT(restricted.token_ids, SizeIs(200));
  EXPECT_GT(RepeatedTriples(PromptAndCompletion(free)), 0) << "the test shows nothing";
  EXPECT_EQ(RepeatedTriples(PromptAndCompletion(restricted)), 0);
}

TEST_P(SamplingOptions, BadWordsDoNotOccurInTheText) {
  v1::GenerateRequest request = Request(200, 0.1F);
  const std::string free = Run(request).text;
  ASSERT_THAT(free, HasSubstr("the LORD")) << "the test shows nothing";
  ASSERT_THAT(free, HasSubstr("unto"));
  request.mutable_sampling()->add_bad_words(std::string("the LORD"));
  request.mutable_sampling()->add_bad_words(std::string("unto"));

  const Stream restricted = Run(request);

  ASSERT_TRUE(restricted.status.ok()) << restricted.status.error_message();
  EXPECT_THAT(restricted.token_ids, SizeIs(200));
  EXPECT_THAT(restricted.text, Not(HasSubstr("the LORD")));
  EXPECT_THAT(restricted.text, Not(HasSubstr("unto")));
}

TEST_P(SamplingOptions, BadWordTokensDoNotOccurInARow) {
  v1::GenerateRequest request = Request(60, 0.1F);
  const Stream free = Run(request);
  ASSERT_THAT(free.token_ids, SizeIs(60));
  const std::vector<int32_t> word = {free.token_ids[3], free.token_ids[4]};
  request.mutable_sampling()->add_bad_word_tokens()->mutable_ids()->Add(word.begin(), word.end());

  const std::vector<int32_t> tokens = Run(request).token_ids;

  ASSERT_THAT(tokens, SizeIs(60));
  EXPECT_EQ(std::search(tokens.begin(), tokens.end(), word.begin(), word.end()), tokens.end());
}

TEST_P(SamplingOptions, SoSmallATypicalPThatOneTokenHasItLeavesNothingToChance) {
  v1::GenerateRequest request = Request(20, 1);
  request.mutable_sampling()->set_typical_p(1e-6F);
  std::set<std::vector<int32_t>> completions;

  for (const uint64_t seed : {1, 2, 3}) {
    request.mutable_sampling()->set_seed(seed);
    completions.insert(Run(request).token_ids);
  }

  EXPECT_THAT(completions, SizeIs(1));
  EXPECT_THAT(*completions.begin(), SizeIs(20));
}

TEST_P(SamplingOptions, ForbiddingEveryTokenEndsThatRequestAlone) {
  v1::GenerateRequest request = Request(20, 1);
  request.mutable_sampling()->add_allowed_token_ids(300);
  request.mutable_sampling()->add_bad_word_tokens()->add_ids(300);

  const Stream impossible = Run(request);

  EXPECT_EQ(impossible.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(
      impossible.status.error_message(), HasSubstr("no token is left to choose after 0 tokens")
  );
  EXPECT_THAT(Run(Request(5, 1)).token_ids, SizeIs(5));
  EXPECT_EQ(server_.engine().Load().not_finite_total, 0);
}

TEST_P(SamplingOptions, AModelSaysItsDefaults) {
  EXPECT_EQ(server_.info().default_sampling().typical_p(), 1);
  EXPECT_TRUE(server_.info().default_sampling().has_no_repeat_ngram_size());
  EXPECT_EQ(server_.info().default_sampling().no_repeat_ngram_size(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    SamplingOptions,
    ::testing::Values("bible-moa", "bible-switchhead"),
    [](const auto& model) {
      return std::string(model.param == "bible-moa" ? "BibleMoa" : "BibleSwitchHead");
    }
);

}  // namespace
}  // namespace switchyard
