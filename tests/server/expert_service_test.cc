#include "server/expert_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

// Layer 0: one MoA router, 2 experts, top 1. Layer 1: a value router of 2 heads with 2 experts
// each, top 1. Phases in the order prefill, decode, recompute, warm-up.
ExpertStatistics TwoRouters() {
  ExpertStatistics statistics;
  statistics.uptime_seconds = 12;
  statistics.routers.push_back(
      {.layer = 0,
       .kind = RouterKind::kAttention,
       .heads = 1,
       .experts = 2,
       .top_k = 1,
       .tokens = {3, 4, 10, 20, 0, 0, 1, 1},
       .gate_sum = {1.5, 2, 5, 10, 0, 0, 0.5, 0.5}}
  );
  statistics.routers.push_back(
      {.layer = 1,
       .kind = RouterKind::kAttentionValue,
       .heads = 2,
       .experts = 2,
       .top_k = 1,
       .tokens = {7, 0, 2, 5, 30, 0, 10, 20, 0, 0, 0, 0, 2, 0, 0, 2},
       .gate_sum = std::vector<double>(16, 0.25)}
  );
  return statistics;
}

TEST(SelectExpertStats, CountsPrefillAndDecodeOfAllRoutersByDefault) {
  const auto response = SelectExpertStats(TwoRouters(), {});

  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->routers_size(), 2);
  EXPECT_EQ(response->uptime_seconds(), 12);
  const v1::RouterStats& moa = response->routers(0);
  EXPECT_EQ(moa.kind(), "attn");
  EXPECT_EQ(moa.tokens_routed(), 37);
  EXPECT_EQ(moa.stats(0).tokens(), 13);
  EXPECT_EQ(moa.stats(1).tokens(), 24);
  EXPECT_EQ(moa.stats(1).gate_weight_sum(), 12);
  const v1::RouterStats& value = response->routers(1);
  EXPECT_EQ(value.kind(), "attn_v");
  EXPECT_EQ(value.tokens_routed(), 37);
  ASSERT_EQ(value.stats_size(), 4);
  EXPECT_EQ(value.stats(3).head(), 1);
  EXPECT_EQ(value.stats(3).expert(), 1);
  EXPECT_EQ(value.stats(3).tokens(), 25);
}

TEST(SelectExpertStats, KeepsToTheAskedLayersKindsAndPhases) {
  v1::GetExpertStatsRequest request;
  request.add_layers(1);
  request.add_kinds("attn_v");
  request.add_phases(v1::PHASE_WARM_UP);
  request.add_phases(v1::PHASE_WARM_UP);

  const auto response = SelectExpertStats(TwoRouters(), request);

  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->routers_size(), 1);
  EXPECT_EQ(response->routers(0).layer(), 1);
  EXPECT_EQ(response->routers(0).tokens_routed(), 2);
}

TEST(SelectExpertStats, IsEmptyForAPairOfLayerAndKindThatDoesNotMeet) {
  v1::GetExpertStatsRequest request;
  request.add_layers(0);
  request.add_kinds("attn_v");

  const auto response = SelectExpertStats(TwoRouters(), request);

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->routers_size(), 0);
}

TEST(SelectExpertStats, NamesWhatThereIsInsteadOfAnUnknownFilter) {
  v1::GetExpertStatsRequest layer;
  layer.add_layers(2);
  v1::GetExpertStatsRequest kind;
  kind.add_kinds("ffn");
  v1::GetExpertStatsRequest phase;
  phase.add_phases(v1::PHASE_UNSPECIFIED);

  const Status bad_layer = SelectExpertStats(TwoRouters(), layer).status();
  const Status bad_kind = SelectExpertStats(TwoRouters(), kind).status();
  const Status bad_phase = SelectExpertStats(TwoRouters(), phase).status();

  EXPECT_EQ(bad_layer.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(bad_layer), HasSubstr("layers[0] is 2; this model's layers with routers are 0, 1")
  );
  EXPECT_THAT(
      MessageOf(bad_kind),
      HasSubstr("kinds[0] is \"ffn\"; this model's kinds of routers are attn, attn_v")
  );
  EXPECT_THAT(MessageOf(bad_phase), HasSubstr("phases[0] is 0, which is no phase"));
}

TEST(ExpertService, AnswersOverTheWire) {
  RunningServer server;
  server.SetReady({'x'}).SetStatistics(TwoRouters());
  grpc::ClientContext context;
  v1::GetExpertStatsResponse response;

  const grpc::Status status = server.experts().GetExpertStats(&context, {}, &response);

  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.model(), "fake");
  EXPECT_EQ(response.routers_size(), 2);
}

TEST(ExpertService, IsUnavailableWhileTheModelLoads) {
  RunningServer server;
  grpc::ClientContext context;
  v1::GetExpertStatsResponse response;

  const grpc::Status status = server.experts().GetExpertStats(&context, {}, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace switchyard
