#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "server/validation/request_validation.h"
#include "tests/server/running_server.h"

// How many completions, how they are found, and how the request is scheduled.

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Request = v1::GenerateRequest;

std::unique_ptr<LoadedModel> Model() {
  return MakeFakeModel({'x'}, {});
}

struct Refusal {
  const char* name;
  std::function<void(Request&)> spoil;
  const char* beginning;  // of the message: the field
  std::vector<const char*> message_parts;
};

class RefusedCompletions : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedCompletions, NamesFieldValueLimitAndRemedy) {
  Request request = ShortRequest(4);
  GetParam().spoil(request);

  const Status status = ValidateRequest(request, *Model()).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), StartsWith(GetParam().beginning));
  for (const char* part : GetParam().message_parts) {
    EXPECT_THAT(MessageOf(status), HasSubstr(part));
  }
}

v1::BeamSearch& Beams(Request& request, int32_t width) {
  request.mutable_beam_search()->set_width(width);
  return *request.mutable_beam_search();
}

const Refusal kRefusals[] = {
    {"NoCompletions", [](Request& r) { r.set_n(0); }, "n is 0;", {"[1, 16]", "on this server"}},
    {"NegativeCompletions", [](Request& r) { r.set_n(-3); }, "n is -3;", {"[1, 16]"}},
    {"TooManyCompletions", [](Request& r) { r.set_n(17); }, "n is 17;", {"[1, 16]"}},
    {"BestOfTooMany", [](Request& r) { r.set_best_of(17); }, "best_of is 17;", {"[1, 16]"}},
    {"BestOfFewerThanWanted",
     [](Request& r) {
       r.set_n(3);
       r.set_best_of(2);
     },
     "best_of is 2;",
     {"[3, 16]"}},
    {"BestOfZero", [](Request& r) { r.set_best_of(0); }, "best_of is 0;", {"[1, 16]"}},
    {"BeamsWithoutWidth",
     [](Request& r) { r.mutable_beam_search(); },
     "beam_search.width is 0;",
     {"[1, 16]"}},
    {"TooManyBeams", [](Request& r) { Beams(r, 17); }, "beam_search.width is 17;", {"[1, 16]"}},
    {"FewerBeamsThanCompletions",
     [](Request& r) {
       r.set_n(4);
       Beams(r, 3);
     },
     "beam_search.width is 3;",
     {"[4, 16]"}},
    {"LengthPenaltyNan",
     [](Request& r) { Beams(r, 2).set_length_penalty(std::numeric_limits<float>::quiet_NaN()); },
     "beam_search.length_penalty is nan;",
     {"[-10, 10]", "1 divides by the length"}},
    {"LengthPenaltyTooHigh",
     [](Request& r) { Beams(r, 2).set_length_penalty(10.5F); },
     "beam_search.length_penalty is 10.5;",
     {"[-10, 10]"}},
    {"BeamsAndBestOf",
     [](Request& r) {
       Beams(r, 2);
       r.set_best_of(2);
     },
     "best_of and beam_search are both set",
     {"n picks the best"}},
    {"BeamsAndStopStrings",
     [](Request& r) {
       Beams(r, 2);
       r.mutable_stopping()->add_stop_strings(std::string("a"));
     },
     "stopping.stop_strings and beam_search are both set",
     {"use stop_token_ids"}},
    {"BeamsAndTopLogprobs",
     [](Request& r) {
       Beams(r, 2);
       r.mutable_output()->set_top_logprobs(1);
     },
     "output.top_logprobs is over 0",
     {"0 gives the chosen tokens'"}},
    {"BeamsAndAnExplicitZeroOfSampling",
     [](Request& r) {
       Beams(r, 2);
       r.mutable_sampling()->set_temperature(0);
     },
     "sampling and beam_search are both set",
     {"does not sample"}},
    {"BeamsAndASeed",
     [](Request& r) {
       Beams(r, 2);
       r.mutable_sampling()->set_seed(0);
     },
     "sampling and beam_search are both set",
     {}},
    {"PromptTopLogprobsTooMany",
     [](Request& r) { r.mutable_output()->set_prompt_top_logprobs(21); },
     "output.prompt_top_logprobs is 21;",
     {"[0, 20]"}},
    {"PromptTopLogprobsNegative",
     [](Request& r) { r.mutable_output()->set_prompt_top_logprobs(-1); },
     "output.prompt_top_logprobs is -1;",
     {"[0, 20]"}},
    {"PriorityTooHigh",
     [](Request& r) { r.mutable_scheduling()->set_priority(101); },
     "scheduling.priority is 101;",
     {"[-100, 100]", "0 is normal"}},
    {"PriorityTooLow",
     [](Request& r) { r.mutable_scheduling()->set_priority(-101); },
     "scheduling.priority is -101;",
     {"[-100, 100]"}},
    {"LongCacheSalt",
     [](Request& r) { r.mutable_scheduling()->set_cache_salt(std::string(65, 's')); },
     "scheduling.cache_salt has 65 bytes;",
     {"at most 64", "send a hash of it"}},
};

INSTANTIATE_TEST_SUITE_P(
    Fields,
    RefusedCompletions,
    ::testing::ValuesIn(kRefusals),
    [](const auto& refusal) { return refusal.param.name; }
);

TEST(CompletionsValidation, TakesEveryLimitItself) {
  const std::unique_ptr<LoadedModel> model = Model();
  Request many = ShortRequest(1);
  many.set_n(16);
  many.set_best_of(16);
  many.mutable_scheduling()->set_priority(-100);
  many.mutable_scheduling()->set_cache_salt(std::string(64, 's'));
  many.mutable_output()->set_prompt_top_logprobs(20);
  Request beams = ShortRequest(1);
  beams.set_n(16);
  Beams(beams, 16).set_length_penalty(-10);
  beams.mutable_output()->set_top_logprobs(0);
  beams.mutable_scheduling()->set_priority(100);

  for (const Request& request : {many, beams}) {
    const Status status = ValidateRequest(request, *model).status();
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(CompletionsValidation, MakesOneCompletionUnlessAskedForMore) {
  const StatusOr<ValidatedRequest> valid = ValidateRequest(ShortRequest(1), *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.completions, 1);
  EXPECT_EQ(valid->best, std::nullopt);
  EXPECT_FALSE(valid->generation.beam_search.has_value());
  EXPECT_FALSE(valid->generation.scoring.has_value());
  EXPECT_EQ(valid->generation.priority, 0);
  EXPECT_TRUE(valid->generation.prefix_sharing.enabled);
}

TEST(CompletionsValidation, MakesAsManyAsTheBestAreChosenFrom) {
  Request request = ShortRequest(1);
  request.set_n(2);
  request.set_best_of(5);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.completions, 5);
  EXPECT_EQ(valid->best, 2);
}

TEST(CompletionsValidation, SearchesWithoutTheModelsDefaultsForSampling) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->defaults.sampling.repetition_penalty = 1.5F;
  Request request = ShortRequest(1);
  request.set_n(2);
  Beams(request, 3);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *model);

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.completions, 2);
  EXPECT_EQ(valid->generation.beam_search->width, 3);
  EXPECT_EQ(valid->generation.beam_search->length_penalty, 1);
  EXPECT_EQ(valid->generation.sampling.repetition_penalty, 1);
  EXPECT_EQ(valid->generation.sampling.temperature, 1);
}

TEST(CompletionsValidation, TakesAnExplicitZeroOfTheLengthPenaltyAsAValue) {
  Request request = ShortRequest(1);
  Beams(request, 2).set_length_penalty(0);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.beam_search->length_penalty, 0);
}

TEST(CompletionsValidation, AllowsNoMoreBeamsThanTheServerRunsAtOnce) {
  const std::unique_ptr<LoadedModel> model = Model();
  model->engine_limits.max_running = 3;
  Request wide = ShortRequest(1);
  Beams(wide, 4);
  Request many = ShortRequest(1);
  many.set_n(4);
  Beams(many, 4);

  EXPECT_THAT(
      MessageOf(ValidateRequest(wide, *model).status()),
      StartsWith("beam_search.width is 4; it must be in [1, 3]")
  );
  EXPECT_THAT(
      MessageOf(ValidateRequest(many, *model).status()), StartsWith("n is 4; it must be in [1, 3]")
  );
}

TEST(CompletionsValidation, ScoresThePromptWhenAskedForNoneOfTheLikeliestToo) {
  Request request = ShortRequest(1);
  request.mutable_output()->set_prompt_top_logprobs(0);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  ASSERT_TRUE(valid->generation.scoring.has_value());
  EXPECT_EQ(valid->generation.scoring->first_token, 1);
  EXPECT_EQ(valid->generation.scoring->top_logprobs, 0);
}

TEST(CompletionsValidation, HandsSchedulingToTheEngine) {
  Request request = ShortRequest(1);
  request.mutable_scheduling()->set_priority(-7);
  request.mutable_scheduling()->set_cache_salt("tenant");
  request.mutable_scheduling()->set_bypass_prefix_cache(true);

  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, *Model());

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->generation.priority, -7);
  EXPECT_EQ(valid->generation.prefix_sharing.salt, "tenant");
  EXPECT_FALSE(valid->generation.prefix_sharing.enabled);
}

}  // namespace
}  // namespace switchyard
