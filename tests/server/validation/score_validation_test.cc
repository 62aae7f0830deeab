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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Request = v1::ScoreRequest;

std::unique_ptr<LoadedModel> Model() {
  return MakeFakeModel({'x'}, {});
}

void AddTokens(v1::TokenIds& tokens, int count) {
  tokens.mutable_ids()->Resize(tokens.ids_size() + count, 'c');
}

// A prompt of two tokens and a continuation of one.
Request ShortScore() {
  Request request;
  AddTokens(*request.mutable_prompt_tokens(), 2);
  AddTokens(*request.add_continuation_tokens(), 1);
  return request;
}

struct Refusal {
  const char* name;
  std::function<void(Request&)> spoil;
  const char* beginning;  // of the message: the field
  std::vector<const char*> message_parts;
};

class RefusedScore : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedScore, NamesFieldValueLimitAndRemedy) {
  Request request = ShortScore();
  GetParam().spoil(request);

  const Status status = ValidateRequest(request, *Model()).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), StartsWith(GetParam().beginning));
  for (const char* part : GetParam().message_parts) {
    EXPECT_THAT(MessageOf(status), HasSubstr(part));
  }
}

const Refusal kRefusals[] = {
    {"NoPrompt",
     [](Request& r) { r.clear_prompt_tokens(); },
     "prompt_text and prompt_tokens are both missing",
     {"send one of them"}},
    {"BothPrompts",
     [](Request& r) { r.set_prompt_text("a"); },
     "prompt_tokens and prompt_text are both set",
     {}},
    {"NoContinuation",
     [](Request& r) { r.clear_continuation_tokens(); },
     "continuation_texts and continuation_tokens are both empty",
     {"at least one"}},
    {"BothKindsOfContinuations",
     [](Request& r) { r.add_continuation_texts(std::string("a")); },
     "continuation_texts and continuation_tokens are both set",
     {"send one of them"}},
    {"EmptyContinuation",
     [](Request& r) { r.add_continuation_tokens(); },
     "continuation_tokens[1].ids is empty",
     {"at least one token id"}},
    {"EmptyText",
     [](Request& r) {
       r.clear_continuation_tokens();
       r.add_continuation_texts(std::string());
     },
     "continuation_texts[0] is empty",
     {"at least one character"}},
    {"IdAboveVocabulary",
     [](Request& r) { r.mutable_continuation_tokens(0)->add_ids(300); },
     "continuation_tokens[0].ids[1] is 300;",
     {"[0, 300)"}},
    {"TooManyTexts",
     [](Request& r) {
       r.clear_continuation_tokens();
       for (int i = 0; i < 257; ++i) {
         r.add_continuation_texts(std::string("a"));
       }
     },
     "continuation_texts has 257 entries;",
     {"at most 256"}},
    {"TooManyTokenLists",
     [](Request& r) {
       for (int i = 1; i < 257; ++i) {
         AddTokens(*r.add_continuation_tokens(), 1);
       }
     },
     "continuation_tokens has 257 entries;",
     {"at most 256"}},
    {"OverContext",
     [](Request& r) { AddTokens(*r.mutable_continuation_tokens(0), 64); },
     "continuation_tokens[0] has 65 tokens and the prompt 2, together 67;",
     {"this model's context is 64", "shorten one of them by 3"}},
    {"TextOverContext",
     [](Request& r) {
       r.clear_continuation_tokens();
       r.add_continuation_texts(std::string("a"));
       r.add_continuation_texts(std::string(63, 'a'));
     },
     "continuation_texts[1] has 63 tokens and the prompt 2, together 65;",
     {"shorten one of them by 1"}},
    {"TopLogprobsTooMany",
     [](Request& r) { r.set_top_logprobs(21); },
     "top_logprobs is 21;",
     {"[0, 20]"}},
    {"RequestId",
     [](Request& r) { r.set_request_id(std::string(129, 'a')); },
     "request_id has 129 bytes;",
     {"at most 128"}},
    {"Priority",
     [](Request& r) { r.mutable_scheduling()->set_priority(-101); },
     "scheduling.priority is -101;",
     {"[-100, 100]"}},
};

INSTANTIATE_TEST_SUITE_P(
    Fields,
    RefusedScore,
    ::testing::ValuesIn(kRefusals),
    [](const auto& refusal) { return refusal.param.name; }
);

TEST(ScoreValidation, ScoresEveryContinuationFromItsFirstTokenOn) {
  Request request = ShortScore();
  AddTokens(*request.add_continuation_tokens(), 3);
  request.set_top_logprobs(2);
  request.set_request_id("mine");

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_THAT(
      valid->generation.continuations, ElementsAre(ElementsAre('c'), ElementsAre('c', 'c', 'c'))
  );
  EXPECT_EQ(valid->generation.scoring->first_token, 2);
  EXPECT_EQ(valid->generation.scoring->top_logprobs, 2);
  EXPECT_EQ(valid->prompt_top_logprobs, 2);
  EXPECT_EQ(valid->request_id, "mine");
}

TEST(ScoreValidation, AsksForTheLikeliestTokenToTellWhatIsGreedyButDoesNotShowIt) {
  const StatusOr<ValidatedRequest> valid = ValidateRequest(ShortScore(), *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.scoring->top_logprobs, 1);
  EXPECT_EQ(valid->prompt_top_logprobs, 0);
}

TEST(ScoreValidation, PutsTheBeginningTokenBeforeThePromptAlone) {
  Request request;
  request.set_prompt_text("ab");
  request.set_add_bos(true);
  request.add_continuation_texts(std::string("c"));

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_THAT(valid->generation.prompt, ElementsAre(FakeTokenizer::kBos, 'a', 'b'));
  EXPECT_THAT(valid->generation.continuations, ElementsAre(ElementsAre('c')));
}

TEST(ScoreValidation, TakesWhatJustFillsTheContext) {
  Request request = ShortScore();
  AddTokens(*request.mutable_continuation_tokens(0), 61);

  EXPECT_TRUE(ValidateRequest(request, *Model()).ok());
}

TEST(ScoreValidation, KeepsToTheLimitsOfTheServer) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->limits.max_continuations = 2;
  model->limits.max_prompt_tokens = 5;
  Request most = ShortScore();
  AddTokens(*most.add_continuation_tokens(), 3);
  Request many = most;
  AddTokens(*many.add_continuation_tokens(), 1);
  Request long_one = most;
  AddTokens(*long_one.mutable_continuation_tokens(1), 4);

  EXPECT_TRUE(ValidateRequest(most, *model).ok());
  EXPECT_THAT(
      MessageOf(ValidateRequest(many, *model).status()),
      HasSubstr("continuation_tokens has 3 entries; at most 2 are taken")
  );
  EXPECT_THAT(
      MessageOf(ValidateRequest(long_one, *model).status()),
      HasSubstr("continuation_tokens[1] has 7 tokens and the prompt 2, together 9; this server "
                "takes at most 5; shorten one of them by 4")
  );
}

TEST(ScoreValidation, TakesTextsOnlyForAModelWithATokenizer) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->tokenizer = nullptr;
  Request request = ShortScore();
  EXPECT_TRUE(ValidateRequest(request, *model).ok());
  request.clear_continuation_tokens();
  request.add_continuation_texts(std::string("a"));

  EXPECT_THAT(
      MessageOf(ValidateRequest(request, *model).status()),
      StartsWith("continuation_texts[0] needs a tokenizer")
  );
}

}  // namespace
}  // namespace switchyard
