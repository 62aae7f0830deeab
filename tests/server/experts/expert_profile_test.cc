#include "server/experts/expert_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The fake model with a router of three experts, and in layer 1 one of two in each of two heads;
// what is a router of one expert has no choice.
std::unique_ptr<LoadedModel> ModelWithRouters() {
  std::unique_ptr<LoadedModel> model = MakeFakeModel({'x'}, {"\xFFpiece"});
  const auto add = [&model](int32_t layer, const char* kind, int32_t heads, int32_t experts) {
    v1::RouterInfo& router = *model->info.add_routers();
    router.set_layer(layer);
    router.set_kind(kind);
    router.set_heads(heads);
    router.set_experts(experts);
    router.set_top_k(1);
  };
  add(0, "attn", 1, 3);
  add(0, "ffn", 1, 1);
  add(1, "attn_v", 2, 2);
  return model;
}

v1::ProfileExpertsRequest RequestOf(const std::string& text) {
  v1::ProfileExpertsRequest request;
  request.set_text(text);
  return request;
}

TEST(ReadProfileRequest, MakesRoomForTheCountsOfEachRouterThatChooses) {
  const auto model = ModelWithRouters();

  const StatusOr<ProfiledText> text = ReadProfileRequest(RequestOf("abbc"), *model);

  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->tokens, ElementsAre('a', 'b', 'b', 'c'));
  EXPECT_THAT(text->places, ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(text->sequence_tokens, 64);
  EXPECT_EQ(text->lead, std::nullopt);
  EXPECT_EQ(text->options.min_occurrences, 10);
  EXPECT_EQ(text->options.most_tokens, 8);
  ASSERT_THAT(text->counts.routers, SizeIs(2));
  EXPECT_EQ(text->counts.routers[0].kind, RouterKind::kAttention);
  EXPECT_THAT(text->counts.routers[0].assignments, SizeIs(9));
  EXPECT_EQ(text->counts.routers[1].kind, RouterKind::kAttentionValue);
  EXPECT_EQ(text->counts.routers[1].layer, 1);
  EXPECT_THAT(text->counts.routers[1].assignments, SizeIs(12));
  EXPECT_THAT(text->counts.routers[1].assignments, Each(0));
}

TEST(ReadProfileRequest, CutsSequencesToWhatTheCacheHolds) {
  const auto model = ModelWithRouters();
  model->info.set_kv_tokens_total(48);

  EXPECT_EQ(ReadProfileRequest(RequestOf("abbc"), *model)->sequence_tokens, 48);
}

TEST(ReadProfileRequest, TakesTheNumbersThatAreAskedFor) {
  v1::ProfileExpertsRequest request = RequestOf("a");
  request.set_min_occurrences(3);
  request.set_most_tokens(1024);

  const StatusOr<ProfiledText> text = ReadProfileRequest(request, *ModelWithRouters());

  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->options.min_occurrences, 3);
  EXPECT_EQ(text->options.most_tokens, 1024);
}

TEST(ReadProfileRequest, RefusesNumbersOutOfRange) {
  v1::ProfileExpertsRequest few = RequestOf("a");
  few.set_min_occurrences(-1);
  v1::ProfileExpertsRequest many = RequestOf("a");
  many.set_most_tokens(1025);

  const Status negative = ReadProfileRequest(few, *ModelWithRouters()).status();
  const Status large = ReadProfileRequest(many, *ModelWithRouters()).status();

  EXPECT_EQ(negative.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(negative), HasSubstr("min_occurrences is -1; it must be at least 1"));
  EXPECT_EQ(large.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(large), HasSubstr("most_tokens is 1025; it must be in [1, 1024]"));
}

TEST(ReadProfileRequest, RefusesATextThatIsEmptyOrTooLarge) {
  const auto model = ModelWithRouters();
  const Status empty = ReadProfileRequest(RequestOf(""), *model).status();
  model->limits.max_profile_text_bytes = 3;
  const Status long_text = ReadProfileRequest(RequestOf("abba"), *model).status();
  model->limits.max_profile_text_bytes = 4;
  model->limits.max_profile_tokens = 3;
  const Status many_tokens = ReadProfileRequest(RequestOf("abba"), *model).status();
  // Two distinct tokens, seven experts, 8 bytes.
  model->limits.max_profile_tokens = 4;
  model->limits.max_profile_count_bytes = 111;
  const Status many_counts = ReadProfileRequest(RequestOf("abba"), *model).status();
  model->limits.max_profile_count_bytes = 112;

  EXPECT_TRUE(ReadProfileRequest(RequestOf("abba"), *model).ok());
  EXPECT_THAT(MessageOf(empty), HasSubstr("text is empty"));
  EXPECT_THAT(MessageOf(long_text), HasSubstr("text has 4 bytes; at most 3 are taken"));
  EXPECT_THAT(MessageOf(many_tokens), HasSubstr("text has 4 tokens; at most 3 are taken"));
  EXPECT_THAT(MessageOf(many_counts), HasSubstr("text has 2 distinct tokens"));
  EXPECT_THAT(MessageOf(many_counts), HasSubstr("takes 112 bytes of at most 111"));
  for (const Status& status : {empty, long_text, many_tokens, many_counts}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  }
}

// Token 'a' came 6 times, 258 5 times, 299 once; expert 0 got 5, 1 and 1 of them: 7 of 12 choices.
// 'a': log2((5 + 7/12) / 7 / (7/12)); 299: log2((1 + 7/12) / 2 / (7/12)).
TEST(DescribeProfile, TellsEachExpertsTokensByFallingInformation) {
  const auto model = ModelWithRouters();
  TextRouting counts{
      .tokens = 12, .token_ids = {'a', 258, 299}, .occurrences = {6, 5, 1}, .routers = {}};
  counts.routers.push_back(
      {.layer = 4, .experts = 3, .top_k = 1, .assignments = {5, 1, 0, 1, 4, 0, 1, 0, 0}}
  );

  const v1::ProfileExpertsResponse profile = DescribeProfile(
      counts,
      {.min_occurrences = 1, .most_tokens = 8},
      *model->tokenizer,
      {.model = "m", .device = "cpu", .dtype = "bf16", .sequence_tokens = 63}
  );

  EXPECT_EQ(profile.tokens(), 12);
  EXPECT_EQ(profile.distinct_tokens(), 3);
  EXPECT_EQ(profile.sequence_tokens(), 63);
  ASSERT_EQ(profile.routers_size(), 1);
  EXPECT_EQ(profile.routers(0).kind(), "attn");
  ASSERT_EQ(profile.routers(0).specialities_size(), 3);
  const v1::ExpertSpeciality& first = profile.routers(0).specialities(0);
  EXPECT_EQ(first.assignments(), 7);
  EXPECT_DOUBLE_EQ(first.share(), 7.0 / 12);
  ASSERT_EQ(first.tokens_size(), 2);
  EXPECT_EQ(first.tokens(0).piece(), "a");
  EXPECT_EQ(first.tokens(0).routed(), 5);
  EXPECT_EQ(first.tokens(0).occurrences(), 6);
  EXPECT_NEAR(first.tokens(0).information_bits(), 0.4514, 1e-4);
  // The vocabulary ends before it.
  EXPECT_EQ(first.tokens(1).piece(), "#299");
  // What is no UTF-8 would be no message.
  EXPECT_EQ(profile.routers(0).specialities(1).tokens(0).piece(), "\xEF\xBF\xBDpiece");
}

}  // namespace
}  // namespace switchyard
