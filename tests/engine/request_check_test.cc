#include "engine/request_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using ::testing::HasSubstr;

constexpr RequestBounds kBounds{
    .vocabulary_size = 61, .context_tokens = 40, .total_blocks = 5, .block_tokens = 4};

GenerationRequest Request(size_t prompt_tokens, int32_t max_tokens) {
  GenerationRequest request;
  request.prompt.assign(prompt_tokens, 7);
  request.stopping.max_tokens = max_tokens;
  return request;
}

std::string Refusal(const GenerationRequest& request, const RequestBounds& bounds = kBounds) {
  const Status status = CheckRequest(request, bounds);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return MessageOf(status);
}

TEST(RequestCheck, TakesARequestThatJustFillsTheCache) {
  EXPECT_TRUE(CheckRequest(Request(15, 5), kBounds).ok());
}

TEST(RequestCheck, RefusesARequestThatCouldNeverFitTheCache) {
  EXPECT_THAT(
      Refusal(Request(15, 6)), HasSubstr("21 tokens together; the KV cache holds 20; ask for fewer")
  );
}

TEST(RequestCheck, CountsNoTokensBeyondTheEndOfTheContext) {
  RequestBounds bounds = kBounds;
  bounds.context_tokens = 20;

  EXPECT_TRUE(CheckRequest(Request(15, 2147483647), bounds).ok());
}

TEST(RequestCheck, RefusesAnEmptyPrompt) {
  EXPECT_THAT(Refusal(Request(0, 5)), HasSubstr("the prompt has no tokens; send at least 1"));
}

TEST(RequestCheck, RefusesAPromptThatFillsTheContext) {
  EXPECT_THAT(
      Refusal(Request(41, 1)),
      HasSubstr("the prompt has 41 tokens; a context of 40 leaves no room for a completion; "
                "shorten it by 2")
  );
}

TEST(RequestCheck, RefusesToGenerateNothing) {
  EXPECT_THAT(Refusal(Request(3, 0)), HasSubstr("max_tokens is 0; ask for at least 1"));
}

TEST(RequestCheck, RefusesTokensOutOfTheVocabularyWhereverTheyStand) {
  GenerationRequest prompt = Request(3, 1);
  prompt.prompt[1] = 61;
  GenerationRequest stop = Request(3, 1);
  stop.stopping.stop_token_ids = {0, -1};
  GenerationRequest bias = Request(3, 1);
  bias.sampling.logit_bias = {{60, 1.0F}, {99, 1.0F}};
  GenerationRequest bad_word = Request(3, 1);
  bad_word.sampling.bad_words = {{60, 0}, {0, 61}};
  GenerationRequest allowed = Request(3, 1);
  allowed.sampling.allowed_token_ids = {-1, 60};

  EXPECT_THAT(
      Refusal(prompt), HasSubstr("prompt token id 61 is not in the vocabulary; use 0 to 60")
  );
  EXPECT_THAT(Refusal(stop), HasSubstr("stop token id -1"));
  EXPECT_THAT(Refusal(bias), HasSubstr("logit bias token id 99"));
  EXPECT_THAT(Refusal(bad_word), HasSubstr("bad word token id 61"));
  EXPECT_THAT(Refusal(allowed), HasSubstr("allowed token id -1"));
}

TEST(RequestCheck, RefusesListsThatTheSamplerCannotUse) {
  GenerationRequest empty_word = Request(3, 1);
  empty_word.sampling.bad_words = {{1}, {}};
  GenerationRequest falling = Request(3, 1);
  falling.sampling.allowed_token_ids = {2, 1};
  GenerationRequest repeated = Request(3, 1);
  repeated.sampling.allowed_token_ids = {1, 1};

  EXPECT_THAT(Refusal(empty_word), HasSubstr("a bad word has no tokens"));
  EXPECT_THAT(Refusal(falling), HasSubstr("must ascend"));
  EXPECT_THAT(Refusal(repeated), HasSubstr("must ascend"));
}

}  // namespace
}  // namespace switchyard
