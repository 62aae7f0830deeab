#include "server/experts/expert_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/experts/expert_report.h"
#include "tests/server/running_server.h"
#include "tests/server/two_routers.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

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

// Head 0 of layer 1 had 37 and 0 tokens, head 1 had 12 and 25.
TEST(SelectExpertStats, AddsTheFiguresOfEachHeadAndOfTheLayer) {
  const auto response = SelectExpertStats(TwoRouters(), {});

  ASSERT_TRUE(response.ok()) << response.status();
  const v1::RouterStats& value = response->routers(1);
  EXPECT_EQ(value.stats(0).utilization(), 2);
  EXPECT_EQ(value.stats(1).utilization(), 0);
  EXPECT_TRUE(value.stats(1).has_utilization());
  EXPECT_DOUBLE_EQ(value.stats(3).utilization(), 50.0 / 37);
  ASSERT_EQ(value.head_figures_size(), 2);
  EXPECT_EQ(value.head_figures(0).figures().effective_experts(), 1);
  EXPECT_EQ(value.head_figures(0).figures().dead_share(), 0.5);
  EXPECT_EQ(value.figures().dead_share(), 0.25);
  EXPECT_EQ(value.figures().max_over_mean(), 2);
  EXPECT_EQ(response->routers(0).head_figures_size(), 0);
}

// Layer 0: (1 + 0.5 + 4 + 13) / 37 tokens. Layer 1: 18.5 / 37 in head 0, 37 / 37 in head 1.
TEST(SelectExpertStats, TellsTheMeanMarginOfEachHeadAndOfTheLayer) {
  const auto response = SelectExpertStats(TwoRouters(), {});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_DOUBLE_EQ(response->routers(0).figures().margin(), 0.5);
  const v1::RouterStats& value = response->routers(1);
  EXPECT_DOUBLE_EQ(value.head_figures(0).figures().margin(), 0.5);
  EXPECT_DOUBLE_EQ(value.head_figures(1).figures().margin(), 1);
  EXPECT_DOUBLE_EQ(value.figures().margin(), 0.75);
  EXPECT_FALSE(value.figures().has_drift());
}

// Two experts for each token: 18.5 of margins over 37 assignments, which are 18.5 tokens.
TEST(SelectExpertStats, CountsAMarginOncePerToken) {
  ExpertStatistics statistics = TwoRouters();
  statistics.routers.resize(1);
  statistics.routers[0].experts = 3;
  statistics.routers[0].top_k = 2;
  statistics.routers[0].tokens = {20, 10, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  statistics.routers[0].gate_sum.assign(12, 0);
  statistics.routers[0].margin_sum = {18, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

  const auto response = SelectExpertStats(statistics, {});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_DOUBLE_EQ(response->routers(0).figures().margin(), 1);
}

TEST(SelectExpertStats, HasNoMarginWhereEveryExpertIsChosen) {
  ExpertStatistics statistics = TwoRouters();
  statistics.routers[0].top_k = 2;

  const auto response = SelectExpertStats(statistics, {});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(response->routers(0).has_figures());
  EXPECT_FALSE(response->routers(0).figures().has_margin());
  EXPECT_TRUE(response->routers(1).figures().has_margin());
}

// Layer 0 has the shares of the baseline in another total. In layer 1 head 0 had (1, 0) and has
// them still; head 1 had (1, 0) and now has 12 and 25 of 37: a divergence of 0.4682235.
TEST(SelectExpertStats, MeasuresDriftFromTheBaselineInEachHead) {
  ExpertBaseline baseline;
  baseline.routers.push_back({.kind = "attn", .experts = 2, .top_k = 1, .loads = {26, 48}});
  baseline.routers.push_back(
      {.layer = 1, .kind = "attn_v", .heads = 2, .experts = 2, .top_k = 1, .loads = {3, 0, 3, 0}}
  );
  v1::GetExpertStatsRequest only_second;
  only_second.add_layers(1);

  const auto both = SelectExpertStats(TwoRouters(), {}, &baseline);
  const auto second = SelectExpertStats(TwoRouters(), only_second, &baseline);

  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_NEAR(both->routers(0).figures().drift(), 0, 1e-12);
  EXPECT_NEAR(both->routers(1).head_figures(0).figures().drift(), 0, 1e-12);
  EXPECT_NEAR(both->routers(1).head_figures(1).figures().drift(), 0.4682235, 1e-7);
  EXPECT_NEAR(both->routers(1).figures().drift(), 0.4682235 / 2, 1e-7);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->routers(0).figures().drift(), both->routers(1).figures().drift());
}

TEST(SelectExpertStats, HasNoFiguresWithoutWork) {
  v1::GetExpertStatsRequest request;
  request.add_phases(v1::PHASE_RECOMPUTE);

  const auto response = SelectExpertStats(TwoRouters(), request);

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_FALSE(response->routers(0).has_figures());
  EXPECT_FALSE(response->routers(0).stats(0).has_utilization());
}

TEST(ExpertService, ResetsAtTheAdminAddressOnly) {
  RunningServer server;
  server.SetReady({'x'});
  grpc::ClientContext context;
  v1::ResetExpertWindowResponse reset;

  const grpc::Status status = server.experts().ResetExpertWindow(&context, {}, &reset);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("--admin-listen"));
}

TEST(ExpertService, CountsAWindowFromItsReset) {
  RunningServer server;
  FakeEngine& engine = server.SetReady({'x'});
  engine.SetStatistics(TwoRouters());
  grpc::ClientContext reset_context;
  v1::ResetExpertWindowResponse reset;
  ASSERT_TRUE(server.AdminExperts()->ResetExpertWindow(&reset_context, {}, &reset).ok());
  ExpertStatistics later = TwoRouters();
  later.uptime_seconds = 15;
  later.routers[0].tokens[0] += 6;
  engine.SetStatistics(later);

  v1::GetExpertStatsRequest request;
  request.set_window(v1::WINDOW_SINCE_RESET);
  grpc::ClientContext context;
  v1::GetExpertStatsResponse response;
  ASSERT_TRUE(server.experts().GetExpertStats(&context, request, &response).ok());

  EXPECT_EQ(response.window(), v1::WINDOW_SINCE_RESET);
  EXPECT_EQ(response.window_seconds(), 3);
  EXPECT_EQ(response.routers(0).stats(0).tokens(), 6);
  EXPECT_EQ(response.routers(0).stats(1).tokens(), 0);
}

TEST(ExpertService, RefusesAWindowThatThereIsNot) {
  RunningServer server;
  server.SetReady({'x'});
  v1::GetExpertStatsRequest request;
  request.set_window(static_cast<v1::Window>(9));
  grpc::ClientContext context;
  v1::GetExpertStatsResponse response;

  const grpc::Status status = server.experts().GetExpertStats(&context, request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("window is 9, which is no window"));
}

class ExpertStream : public ::testing::Test {
 protected:
  ExpertStream() { server_.SetReady({'x'}).SetStatistics(TwoRouters()); }

  std::unique_ptr<grpc::ClientReader<v1::GetExpertStatsResponse>> Open(int32_t interval_ms) {
    v1::StreamExpertStatsRequest request;
    request.set_interval_ms(interval_ms);
    request.mutable_stats()->add_kinds("attn");
    return server_.experts().StreamExpertStats(&context_, request);
  }

  RunningServer server_;
  grpc::ClientContext context_;
};

TEST_F(ExpertStream, AnswersAgainAndAgainUntilTheClientCancels) {
  const auto reader = Open(100);
  v1::GetExpertStatsResponse response;

  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.model(), "fake");
    EXPECT_EQ(response.routers_size(), 1);
  }
  context_.TryCancel();
  while (reader->Read(&response)) {
  }

  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ExpertStream, LeavesItsPlaceToOthersWhenItEnds) {
  // More than may be open at once, one after the other; each in the pause after its first answer.
  for (int i = 0; i < 70; ++i) {
    grpc::ClientContext context;
    const auto reader = server_.experts().StreamExpertStats(&context, {});
    v1::GetExpertStatsResponse response;
    ASSERT_TRUE(reader->Read(&response)) << i;
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(ExpertStream, RefusesAnIntervalOutOfRange) {
  const auto reader = Open(99);
  v1::GetExpertStatsResponse response;

  EXPECT_FALSE(reader->Read(&response));

  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("interval_ms is 99; it must be in [100, 60000]"));
}

TEST_F(ExpertStream, EndsWithTheServer) {
  const auto reader = Open(60'000);
  v1::GetExpertStatsResponse response;
  ASSERT_TRUE(reader->Read(&response));

  server_.server().Shutdown(std::chrono::milliseconds(0));

  EXPECT_FALSE(reader->Read(&response));
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace switchyard
