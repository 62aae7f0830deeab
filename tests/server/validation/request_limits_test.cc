#include "server/validation/request_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/validation/request_validation.h"
#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<LoadedModel> Model() {
  return MakeFakeModel({'x'}, {});
}

void SetPromptTokens(v1::GenerateRequest& request, int tokens) {
  request.mutable_prompt_tokens()->mutable_ids()->Resize(tokens, 'p');
}

void AddLogitBiases(v1::GenerateRequest& request, int entries) {
  for (int i = 0; i < entries; ++i) {
    (*request.mutable_sampling()->mutable_logit_bias())[i] = 1;
  }
}

struct LimitCase {
  const char* name;
  RequestLimits limits;
  std::function<void(v1::GenerateRequest&)> reach;  // the limit
  std::function<void(v1::GenerateRequest&)> pass;
  std::vector<const char*> message_parts;
};

class LimitedRequest : public ::testing::TestWithParam<LimitCase> {};

TEST_P(LimitedRequest, IsTakenAtTheServersLimitAndRefusedAboveIt) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->limits = GetParam().limits;
  v1::GenerateRequest at_limit = ShortRequest(4);
  GetParam().reach(at_limit);
  v1::GenerateRequest above = ShortRequest(4);
  GetParam().pass(above);

  const Status taken = ValidateRequest(at_limit, *model).status();
  const Status refused = ValidateRequest(above, *model).status();

  EXPECT_TRUE(taken.ok()) << taken;
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  for (const char* part : GetParam().message_parts) {
    EXPECT_THAT(MessageOf(refused), HasSubstr(part));
  }
}

const LimitCase kLimitCases[] = {
    {"PromptTokens",
     {.max_prompt_tokens = 5},
     [](auto& r) { SetPromptTokens(r, 5); },
     [](auto& r) { SetPromptTokens(r, 8); },
     {"prompt_tokens has 8 tokens", "at most 5", "shorten the prompt by 3"}},
    {"MaxTokens",
     {.max_tokens = 9},
     [](auto& r) { r.mutable_stopping()->set_max_tokens(9); },
     [](auto& r) { r.mutable_stopping()->set_max_tokens(10); },
     {"stopping.max_tokens is 10", "at most 9"}},
    {"StopStrings",
     {.max_stop_strings = 1},
     [](auto& r) { r.mutable_stopping()->add_stop_strings(std::string("a")); },
     [](auto& r) {
       r.mutable_stopping()->add_stop_strings(std::string("a"));
       r.mutable_stopping()->add_stop_strings(std::string("b"));
     },
     {"stopping.stop_strings has 2 entries", "at most 1"}},
    {"LogitBias",
     {.max_logit_bias = 3},
     [](auto& r) { AddLogitBiases(r, 3); },
     [](auto& r) { AddLogitBiases(r, 4); },
     {"sampling.logit_bias has 4 entries", "at most 3"}},
    {"TopLogprobs",
     {.max_top_logprobs = 2},
     [](auto& r) { r.mutable_output()->set_top_logprobs(2); },
     [](auto& r) { r.mutable_output()->set_top_logprobs(3); },
     {"output.top_logprobs is 3", "[0, 2]"}},
};

INSTANTIATE_TEST_SUITE_P(
    Limits,
    LimitedRequest,
    ::testing::ValuesIn(kLimitCases),
    [](const auto& limit) { return limit.param.name; }
);

TEST(RequestLimits, DerivesNoMoreTokensThanTheServerGenerates) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->limits.max_tokens = 6;
  v1::GenerateRequest request = ShortRequest(1);
  request.clear_stopping();

  const auto valid = ValidateRequest(request, *model);

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.stopping.max_tokens, 6);
}

}  // namespace
}  // namespace switchyard
