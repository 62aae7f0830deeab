#include "server/generation/forbidden_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "server/validation/request_validation.h"
#include "switchyard/v1/error_details.pb.h"
#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<LoadedModel> Model() {
  return MakeFakeModel({'x'}, {});
}

struct Refusal {
  const char* name;
  std::function<void(v1::SamplingParameters&)> spoil;
  const char* field;
  std::vector<const char*> message_parts;
};

class RefusedSampling : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedSampling, NamesFieldValueLimitAndRemedy) {
  v1::GenerateRequest request = ShortRequest(4);
  GetParam().spoil(*request.mutable_sampling());

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

using Sampling = v1::SamplingParameters;

void AddBadWordTokens(Sampling& sampling, int tokens) {
  v1::TokenIds& word = *sampling.add_bad_word_tokens();
  for (int i = 0; i < tokens; ++i) {
    word.add_ids('a');
  }
}

const Refusal kRefusals[] = {
    {"NgramSizeNegative",
     [](Sampling& s) { s.set_no_repeat_ngram_size(-1); },
     "sampling.no_repeat_ngram_size",
     {"is -1", "[0, 256]", "0 is off"}},
    {"NgramSizeTooLarge",
     [](Sampling& s) { s.set_no_repeat_ngram_size(257); },
     "sampling.no_repeat_ngram_size",
     {"is 257", "[0, 256]"}},
    {"BadWordEmpty",
     [](Sampling& s) {
       s.add_bad_words(std::string("a"));
       s.add_bad_words(std::string());
     },
     "sampling.bad_words[1]",
     {"has 0 bytes", "1 to 256", "leave it out"}},
    {"BadWordLong",
     [](Sampling& s) { s.add_bad_words(std::string(257, 'a')); },
     "sampling.bad_words[0]",
     {"has 257 bytes", "1 to 256", "shorten it"}},
    {"BadWordIsNoUtf8",
     [](Sampling& s) { s.add_bad_words(std::string("ab\xFF")); },
     "sampling.bad_words[0]",
     {"not valid UTF-8 at byte 2"}},
    {"TooManyBadWords",
     [](Sampling& s) {
       for (int i = 0; i < 257; ++i) {
         s.add_bad_words(std::string("a"));
       }
     },
     "sampling.bad_words",
     {"has 257 entries", "at most 256"}},
    {"BadWordWithoutTokens",
     [](Sampling& s) { AddBadWordTokens(s, 0); },
     "sampling.bad_word_tokens[0].ids",
     {"is empty", "at least one token id"}},
    {"BadWordOfTooManyTokens",
     [](Sampling& s) {
       AddBadWordTokens(s, 64);
       AddBadWordTokens(s, 65);
     },
     "sampling.bad_word_tokens[1].ids",
     {"has 65 entries", "at most 64"}},
    {"TooManyBadWordTokens",
     [](Sampling& s) {
       for (int i = 0; i < 257; ++i) {
         AddBadWordTokens(s, 1);
       }
     },
     "sampling.bad_word_tokens",
     {"has 257 entries", "at most 256"}},
    {"BadWordTokenAboveVocabulary",
     [](Sampling& s) {
       AddBadWordTokens(s, 2);
       s.mutable_bad_word_tokens(0)->set_ids(1, 300);
     },
     "sampling.bad_word_tokens[0].ids[1]",
     {"is 300", "[0, 300)"}},
    {"AllowedTokenNegative",
     [](Sampling& s) {
       s.add_allowed_token_ids(0);
       s.add_allowed_token_ids(-1);
     },
     "sampling.allowed_token_ids[1]",
     {"is -1", "[0, 300)"}},
    {"TooManyAllowedTokens",
     [](Sampling& s) {
       for (int i = 0; i < 16385; ++i) {
         s.add_allowed_token_ids(1);
       }
     },
     "sampling.allowed_token_ids",
     {"has 16385 entries", "at most 16384"}},
};

INSTANTIATE_TEST_SUITE_P(
    AllFields,
    RefusedSampling,
    ::testing::ValuesIn(kRefusals),
    [](const auto& refusal) { return std::string(refusal.param.name); }
);

SamplingParameters Validated(const v1::GenerateRequest& request) {
  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());
  EXPECT_TRUE(valid.ok()) << valid.status();
  return valid.ok() ? valid->generation.sampling : SamplingParameters();
}

TEST(ForbiddenTokens, AreNoneUnlessAskedFor) {
  const SamplingParameters sampling = Validated(ShortRequest(4));

  EXPECT_EQ(sampling.no_repeat_ngram_tokens, 0);
  EXPECT_THAT(sampling.bad_words, IsEmpty());
  EXPECT_THAT(sampling.allowed_token_ids, IsEmpty());
}

TEST(ForbiddenTokens, HoldEachBadWordWithAndWithoutASpaceInFront) {
  v1::GenerateRequest request = ShortRequest(4);
  request.mutable_sampling()->add_bad_words(std::string("ab"));
  request.mutable_sampling()->add_bad_words(std::string(" c"));

  EXPECT_THAT(
      Validated(request).bad_words,
      ElementsAre(ElementsAre(' ', 'a', 'b'), ElementsAre(' ', 'c'), ElementsAre('a', 'b'))
  );
}

TEST(ForbiddenTokens, HoldBadWordsGivenAsTokensWithoutRepeats) {
  v1::GenerateRequest request = ShortRequest(4);
  request.mutable_sampling()->add_bad_words(std::string("a"));
  AddBadWordTokens(*request.mutable_sampling(), 1);
  AddBadWordTokens(*request.mutable_sampling(), 2);

  EXPECT_THAT(
      Validated(request).bad_words,
      ElementsAre(ElementsAre(' ', 'a'), ElementsAre('a'), ElementsAre('a', 'a'))
  );
}

TEST(ForbiddenTokens, SortAllowedTokensAndDropRepeats) {
  v1::GenerateRequest request = ShortRequest(4);
  for (const int32_t id : {7, 2, 299, 7, 0}) {
    request.mutable_sampling()->add_allowed_token_ids(id);
  }

  EXPECT_THAT(Validated(request).allowed_token_ids, ElementsAre(0, 2, 7, 299));
}

TEST(ForbiddenTokens, TakeEveryLimitItself) {
  v1::GenerateRequest request = ShortRequest(4);
  v1::SamplingParameters& sampling = *request.mutable_sampling();
  sampling.set_no_repeat_ngram_size(256);
  for (int i = 0; i < 256; ++i) {
    sampling.add_bad_words(std::string(256, 'a'));
    AddBadWordTokens(sampling, 64);
  }
  for (int i = 0; i < 16384; ++i) {
    sampling.add_allowed_token_ids(i % 300);
  }

  EXPECT_EQ(Validated(request).no_repeat_ngram_tokens, 256);
}

TEST(ForbiddenTokens, TakeAnExplicitZeroOverTheModelsDefault) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->defaults.sampling.no_repeat_ngram_tokens = 3;
  v1::GenerateRequest request = ShortRequest(4);
  const auto by_default = ValidateRequest(request, *model);
  request.mutable_sampling()->set_no_repeat_ngram_size(0);
  const auto explicitly = ValidateRequest(request, *model);

  ASSERT_TRUE(by_default.ok() && explicitly.ok());
  EXPECT_EQ(by_default->generation.sampling.no_repeat_ngram_tokens, 3);
  EXPECT_EQ(explicitly->generation.sampling.no_repeat_ngram_tokens, 0);
}

TEST(ForbiddenTokens, NeedATokenizerForBadWordsButNotForTheirTokens) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->tokenizer = nullptr;
  v1::GenerateRequest with_text = ShortRequest(4);
  with_text.mutable_sampling()->add_bad_words(std::string("a"));
  v1::GenerateRequest with_tokens = ShortRequest(4);
  AddBadWordTokens(*with_tokens.mutable_sampling(), 2);

  EXPECT_THAT(
      MessageOf(ValidateRequest(with_text, *model).status()),
      HasSubstr("sampling.bad_words needs a tokenizer")
  );
  EXPECT_TRUE(ValidateRequest(with_tokens, *model).ok());
}

}  // namespace
}  // namespace switchyard
