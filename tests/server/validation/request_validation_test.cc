#include "server/validation/request_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "switchyard/v1/error_details.pb.h"
#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::unique_ptr<LoadedModel> Model() {
  return MakeFakeModel({'x'}, {});
}

struct Refusal {
  const char* name;
  std::function<void(v1::GenerateRequest&)> spoil;
  const char* field;
  std::vector<const char*> message_parts;
};

class RefusedRequest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedRequest, NamesFieldValueLimitAndRemedy) {
  v1::GenerateRequest request = ShortRequest(4);
  GetParam().spoil(request);

  const Status status = ValidateRequest(request, *Model()).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  for (const char* part : GetParam().message_parts) {
    EXPECT_THAT(MessageOf(status), HasSubstr(part));
  }
  v1::BadRequest details;
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  ASSERT_TRUE(payload.has_value());
  ASSERT_TRUE(details.ParseFromString(std::string(*payload)));
  ASSERT_EQ(details.field_violations_size(), 1);
  EXPECT_EQ(details.field_violations(0).field(), GetParam().field);
}

void SetPromptTokens(v1::GenerateRequest& request, int tokens) {
  request.clear_prompt_text();
  request.mutable_prompt_tokens()->clear_ids();
  for (int i = 0; i < tokens; ++i) {
    request.mutable_prompt_tokens()->add_ids('p');
  }
}

void AddLogitBiases(v1::GenerateRequest& request, int entries) {
  for (int i = 0; i < entries; ++i) {
    (*request.mutable_sampling()->mutable_logit_bias())[i] = 1;
  }
}

using Request = v1::GenerateRequest;

const Refusal kRefusals[] = {
    {"NoPrompt",
     [](Request& r) { r.clear_prompt_tokens(); },
     "prompt_text",
     {"prompt_text and prompt_tokens are both missing", "send one of them"}},
    {"BothPrompts",
     [](Request& r) { r.set_prompt_text("a"); },
     "prompt_tokens",
     {"prompt_tokens and prompt_text are both set", "send one of them"}},
    {"EmptyText",
     [](Request& r) {
       r.clear_prompt_tokens();
       r.set_prompt_text("");
     },
     "prompt_text",
     {"prompt_text is empty", "at least one character"}},
    {"EmptyIds",
     [](Request& r) { SetPromptTokens(r, 0); },
     "prompt_tokens.ids",
     {"is empty", "at least one token id"}},
    {"IdAboveVocabulary",
     [](Request& r) { r.mutable_prompt_tokens()->add_ids(300); },
     "prompt_tokens.ids[1]",
     {"is 300", "[0, 300)", "another tokenizer"}},
    {"NegativeId",
     [](Request& r) { r.mutable_prompt_tokens()->add_ids(-1); },
     "prompt_tokens.ids[1]",
     {"is -1", "[0, 300)"}},
    {"PromptFillsContext",
     [](Request& r) { SetPromptTokens(r, 64); },
     "prompt_tokens",
     {"has 64 tokens", "context is 64", "shorten the prompt by 1"}},
    {"PromptOverContext",
     [](Request& r) { SetPromptTokens(r, 100); },
     "prompt_tokens",
     {"has 100 tokens", "context is 64", "shorten the prompt by 37"}},
    {"TextOverContext",
     [](Request& r) {
       r.clear_prompt_tokens();
       r.set_prompt_text(std::string(70, 'a'));
     },
     "prompt_text",
     {"has 70 tokens", "context is 64", "shorten the prompt by 7"}},
    {"PromptAndMaxTokensOverContext",
     [](Request& r) {
       SetPromptTokens(r, 60);
       r.mutable_stopping()->set_max_tokens(10);
     },
     "stopping.max_tokens",
     {"is 10 and the prompt has 60 tokens, together 70",
      "context is 64",
      "lower it to 4",
      "shorten the prompt by 6"}},
    {"LargestMaxTokens",
     [](Request& r) { r.mutable_stopping()->set_max_tokens(INT32_MAX); },
     "stopping.max_tokens",
     {"is 2147483647", "together 2147483648", "lower it to 63"}},
    {"ZeroMaxTokens",
     [](Request& r) { r.mutable_stopping()->set_max_tokens(0); },
     "stopping.max_tokens",
     {"is 0", "at least 1", "leave it out"}},
    {"NegativeMinTokens",
     [](Request& r) { r.mutable_stopping()->set_min_tokens(-1); },
     "stopping.min_tokens",
     {"is -1", "[0, 4]"}},
    {"MinTokensOverMaxTokens",
     [](Request& r) { r.mutable_stopping()->set_min_tokens(5); },
     "stopping.min_tokens",
     {"is 5", "[0, 4]", "raise stopping.max_tokens"}},
    {"EmptyStopString",
     [](Request& r) { r.mutable_stopping()->add_stop_strings(std::string("")); },
     "stopping.stop_strings[0]",
     {"has 0 bytes", "1 to 256", "leave it out"}},
    {"LongStopString",
     [](Request& r) { r.mutable_stopping()->add_stop_strings(std::string(257, 'a')); },
     "stopping.stop_strings[0]",
     {"has 257 bytes", "1 to 256", "shorten it"}},
    {"StopStringIsNoUtf8",
     [](Request& r) { r.mutable_stopping()->add_stop_strings(std::string("ab\xFF")); },
     "stopping.stop_strings[0]",
     {"not valid UTF-8 at byte 2"}},
    {"TooManyStopStrings",
     [](Request& r) {
       for (int i = 0; i < 17; ++i) {
         r.mutable_stopping()->add_stop_strings(std::string("a"));
       }
     },
     "stopping.stop_strings",
     {"has 17 entries", "at most 16"}},
    {"TooManyStopTokens",
     [](Request& r) {
       for (int i = 0; i < 65; ++i) {
         r.mutable_stopping()->add_stop_token_ids(1);
       }
     },
     "stopping.stop_token_ids",
     {"has 65 entries", "at most 64"}},
    {"StopTokenAboveVocabulary",
     [](Request& r) { r.mutable_stopping()->add_stop_token_ids(300); },
     "stopping.stop_token_ids[0]",
     {"is 300", "[0, 300)"}},
    {"TemperatureNan",
     [](Request& r) { r.mutable_sampling()->set_temperature(kNan); },
     "sampling.temperature",
     {"is nan", "[0, 100]", "0 is greedy"}},
    {"TemperatureInfinite",
     [](Request& r) { r.mutable_sampling()->set_temperature(kInfinity); },
     "sampling.temperature",
     {"is inf", "[0, 100]"}},
    {"TemperatureNegative",
     [](Request& r) { r.mutable_sampling()->set_temperature(-0.5F); },
     "sampling.temperature",
     {"is -0.5", "[0, 100]"}},
    {"TopPZero",
     [](Request& r) { r.mutable_sampling()->set_top_p(0); },
     "sampling.top_p",
     {"is 0", "(0, 1]", "1 keeps every token"}},
    {"TopPAboveOne",
     [](Request& r) { r.mutable_sampling()->set_top_p(1.5F); },
     "sampling.top_p",
     {"is 1.5", "(0, 1]"}},
    {"TopPNan",
     [](Request& r) { r.mutable_sampling()->set_top_p(kNan); },
     "sampling.top_p",
     {"is nan"}},
    {"MinPAboveOne",
     [](Request& r) { r.mutable_sampling()->set_min_p(1.25F); },
     "sampling.min_p",
     {"is 1.25", "[0, 1]"}},
    {"TypicalPZero",
     [](Request& r) { r.mutable_sampling()->set_typical_p(0); },
     "sampling.typical_p",
     {"is 0", "(0, 1]", "1 keeps every token"}},
    {"TypicalPNan",
     [](Request& r) { r.mutable_sampling()->set_typical_p(kNan); },
     "sampling.typical_p",
     {"is nan", "(0, 1]"}},
    {"TopKNegative",
     [](Request& r) { r.mutable_sampling()->set_top_k(-1); },
     "sampling.top_k",
     {"is -1", "[0, 300]", "0 keeps every token"}},
    {"TopKAboveVocabulary",
     [](Request& r) { r.mutable_sampling()->set_top_k(301); },
     "sampling.top_k",
     {"is 301", "[0, 300]"}},
    {"RepetitionPenaltyZero",
     [](Request& r) { r.mutable_sampling()->set_repetition_penalty(0); },
     "sampling.repetition_penalty",
     {"is 0", "(0, 100]", "1 is none"}},
    {"PresencePenaltyTooLow",
     [](Request& r) { r.mutable_sampling()->set_presence_penalty(-101); },
     "sampling.presence_penalty",
     {"is -101", "[-100, 100]"}},
    {"FrequencyPenaltyInfinite",
     [](Request& r) { r.mutable_sampling()->set_frequency_penalty(-kInfinity); },
     "sampling.frequency_penalty",
     {"is -inf", "[-100, 100]"}},
    {"TooManyLogitBiases",
     [](Request& r) { AddLogitBiases(r, 1025); },
     "sampling.logit_bias",
     {"has 1025 entries", "at most 1024"}},
    {"LogitBiasOfNoToken",
     [](Request& r) { (*r.mutable_sampling()->mutable_logit_bias())[-7] = 1; },
     "sampling.logit_bias[-7]",
     {"for no token", "[0, 300)"}},
    {"LogitBiasNan",
     [](Request& r) { (*r.mutable_sampling()->mutable_logit_bias())[5] = kNan; },
     "sampling.logit_bias[5]",
     {"is nan", "[-100, 100]"}},
    {"TopLogprobsTooMany",
     [](Request& r) { r.mutable_output()->set_top_logprobs(21); },
     "output.top_logprobs",
     {"is 21", "[0, 20]"}},
    {"TopLogprobsNegative",
     [](Request& r) { r.mutable_output()->set_top_logprobs(-1); },
     "output.top_logprobs",
     {"is -1", "[0, 20]"}},
    {"LongRequestId",
     [](Request& r) { r.set_request_id(std::string(129, 'a')); },
     "request_id",
     {"has 129 bytes", "at most 128", "shorten it"}},
    {"RequestIdWithLineBreak",
     [](Request& r) { r.set_request_id("a\nevent=ready"); },
     "request_id",
     {"control character"}},
};

INSTANTIATE_TEST_SUITE_P(
    AllFields,
    RefusedRequest,
    ::testing::ValuesIn(kRefusals),
    [](const auto& refusal) { return std::string(refusal.param.name); }
);

TEST(RequestValidation, NamesBothModelsWhenAskedForAnother) {
  v1::GenerateRequest request = ShortRequest(4);
  request.set_model("other");

  const Status status = ValidateRequest(request, *Model()).status();

  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("\"other\""));
  EXPECT_THAT(MessageOf(status), HasSubstr("\"fake\""));
}

TEST(RequestValidation, RefusesTextAndStopStringsWithoutATokenizer) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->tokenizer = nullptr;
  v1::GenerateRequest with_text;
  with_text.set_prompt_text("a");
  v1::GenerateRequest with_stop = ShortRequest(4);
  with_stop.mutable_stopping()->add_stop_strings(std::string("a"));

  EXPECT_THAT(
      MessageOf(ValidateRequest(with_text, *model).status()),
      HasSubstr("prompt_text needs a tokenizer, and this model's folder has none; send token ids")
  );
  EXPECT_THAT(
      MessageOf(ValidateRequest(with_stop, *model).status()),
      HasSubstr("stopping.stop_strings needs a tokenizer")
  );
}

TEST(RequestValidation, TakesAbsentFieldsFromTheModelsDefaults) {
  v1::GenerateRequest request;
  request.set_prompt_text("abc");

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.sampling.temperature, 0.75F);
  EXPECT_EQ(valid->generation.sampling.top_p, 1);
  EXPECT_EQ(valid->generation.stopping.max_tokens, 16);
  EXPECT_EQ(valid->generation.stopping.min_tokens, 0);
  EXPECT_FALSE(valid->has_seed);
  EXPECT_FALSE(valid->generation.sampling.top_logprobs.has_value());
  EXPECT_THAT(valid->generation.prompt, ElementsAre('a', 'b', 'c'));
}

TEST(RequestValidation, TakesAnExplicitZeroAsAValue) {
  v1::GenerateRequest request = ShortRequest(4);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_seed(0);
  request.mutable_output()->set_top_logprobs(0);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.sampling.temperature, 0);
  EXPECT_TRUE(valid->has_seed);
  EXPECT_EQ(valid->generation.sampling.top_logprobs, 0);
}

TEST(RequestValidation, LowersTheDefaultOfMaxTokensToWhatTheContextHasLeft) {
  v1::GenerateRequest request = ShortRequest(1);
  request.clear_stopping();
  SetPromptTokens(request, 60);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.stopping.max_tokens, 4);
}

TEST(RequestValidation, TakesEveryLimitItself) {
  v1::GenerateRequest request = ShortRequest(1);
  SetPromptTokens(request, 63);
  AddLogitBiases(request, 300);
  v1::SamplingParameters& sampling = *request.mutable_sampling();
  sampling.set_temperature(100);
  sampling.set_top_k(300);
  sampling.set_top_p(1);
  sampling.set_min_p(1);
  sampling.set_typical_p(1);
  sampling.set_repetition_penalty(100);
  sampling.set_presence_penalty(-100);
  sampling.set_frequency_penalty(100);
  request.mutable_stopping()->set_min_tokens(1);
  request.mutable_stopping()->add_stop_strings(std::string(256, 'a'));
  request.mutable_output()->set_top_logprobs(20);
  request.set_request_id(std::string(128, 'a'));

  EXPECT_TRUE(ValidateRequest(request, *Model()).ok());
}

TEST(RequestValidation, SortsLogitBiasesByToken) {
  v1::GenerateRequest request = ShortRequest(1);
  (*request.mutable_sampling()->mutable_logit_bias())[9] = -1;
  (*request.mutable_sampling()->mutable_logit_bias())[2] = 0.5F;

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_THAT(valid->generation.sampling.logit_bias, ElementsAre(Pair(2, 0.5F), Pair(9, -1)));
}

TEST(RequestValidation, StopsAtExtraEndTokensUnlessTheyAreIgnored) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->extra_eos_token_ids = {299};
  v1::GenerateRequest request = ShortRequest(1);
  request.mutable_stopping()->add_stop_token_ids(5);
  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *model);
  request.mutable_stopping()->set_ignore_eos(true);
  const StatusOr<ValidatedRequest> ignoring = ValidateRequest(request, *model);

  ASSERT_TRUE(valid.ok() && ignoring.ok());
  EXPECT_THAT(valid->generation.stopping.stop_token_ids, ElementsAre(5, 299));
  EXPECT_THAT(ignoring->generation.stopping.stop_token_ids, ElementsAre(5));
}

TEST(RequestValidation, EncodesControlTokensAndTheBeginningTokenOnlyWhenAsked) {
  v1::GenerateRequest request;
  request.set_prompt_text("</s>");
  const StatusOr<ValidatedRequest> plain = ValidateRequest(request, *Model());
  request.set_parse_special_tokens(true);
  request.set_add_bos(true);
  const StatusOr<ValidatedRequest> special = ValidateRequest(request, *Model());

  ASSERT_TRUE(plain.ok() && special.ok());
  EXPECT_THAT(plain->generation.prompt, ElementsAre('<', '/', 's', '>'));
  EXPECT_THAT(special->generation.prompt, ElementsAre(FakeTokenizer::kBos, FakeTokenizer::kEos));
}

}  // namespace
}  // namespace switchyard
