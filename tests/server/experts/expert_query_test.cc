#include "server/experts/expert_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseExpertQuery, ReadsEveryParameter) {
  const auto request = ParseExpertQuery(
      {{"window", "10m"},
       {"layer", "0"},
       {"layer", "3"},
       {"kind", "attn_v"},
       {"phase", "warm_up"},
       {"format", "csv"}}
  );

  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->window(), v1::WINDOW_10_MINUTES);
  EXPECT_THAT(request->layers(), ElementsAre(0, 3));
  EXPECT_THAT(request->kinds(), ElementsAre("attn_v"));
  EXPECT_THAT(request->phases(), ElementsAre(v1::PHASE_WARM_UP));
}

TEST(ParseExpertQuery, SaysWhatThereIsInsteadOfWhatIsUnknown) {
  EXPECT_THAT(
      MessageOf(ParseExpertQuery({{"window", "1h"}}).status()),
      HasSubstr("window is \"1h\"; use one of life, 10s, 1m, 10m, reset")
  );
  EXPECT_THAT(MessageOf(ParseExpertQuery({{"phase", ""}}).status()), HasSubstr("prefill, decode"));
  for (const char* layer : {"", "x", "1x", "99999999999", " 1"}) {
    EXPECT_EQ(ParseExpertQuery({{"layer", layer}}).status().code(), StatusCode::kInvalidArgument)
        << layer;
  }
  EXPECT_THAT(
      MessageOf(ParseExpertQuery({{"layers", "1"}}).status()),
      HasSubstr("there is no parameter \"layers\"")
  );
}

TEST(ExpertCsv, HasALineForEachExpertAndLeavesOutWhatIsNotKnown) {
  v1::GetExpertStatsResponse response;
  response.set_model("a \"b\", c");
  response.set_window(v1::WINDOW_1_MINUTE);
  response.set_window_seconds(61.5);
  v1::RouterStats& router = *response.add_routers();
  router.set_layer(2);
  router.set_kind("attn_o");
  for (int head = 0; head < 2; ++head) {
    v1::ExpertStats& expert = *router.add_stats();
    expert.set_head(head);
    expert.set_expert(5);
    expert.set_tokens(3 * head);
    expert.set_gate_weight_sum(0.25 * head);
  }
  router.mutable_stats(1)->set_utilization(1.5);
  router.set_heads(2);
  router.mutable_figures()->set_margin(9);
  v1::HeadFigures& own = *router.add_head_figures();
  own.set_head(1);
  own.mutable_figures()->set_margin(0.125);
  own.mutable_figures()->set_drift(0.5);

  EXPECT_EQ(
      ExpertCsv(response),
      "model,window,window_seconds,layer,kind,head,expert,tokens,gate_weight_sum,utilization,"
      "margin,drift\n"
      "\"a \"\"b\"\", c\",1m,61.5,2,attn_o,0,5,0,0,,,\n"
      "\"a \"\"b\"\", c\",1m,61.5,2,attn_o,1,5,3,0.25,1.5,0.125,0.5\n"
  );
}

}  // namespace
}  // namespace switchyard
