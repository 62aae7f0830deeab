#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "server/experts/expert_metrics.h"
#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"
#include "tests/support/temporary_folder.h"

// What people and monitors read of a server that runs a real model.

namespace switchyard {
namespace {

using ::testing::HasSubstr;

class HttpOf : public ::testing::TestWithParam<std::string> {
 protected:
  HttpOf() : server_(GetParam()) {
    v1::GenerateRequest request = ShortRequest(9);
    request.mutable_prompt_tokens()->clear_ids();
    for (int id = 3; id < 16; ++id) {
      request.mutable_prompt_tokens()->add_ids(id);
    }
    request.mutable_stopping()->set_ignore_eos(true);
    EXPECT_TRUE(Generate(server_.inference(), request).status.ok());
    grpc::ClientContext context;
    EXPECT_TRUE(server_.experts().GetExpertStats(&context, {}, &stats_).ok());
  }

  std::string Get(const std::string& path) {
    httplib::Client client("127.0.0.1", server_.http_port());
    const httplib::Result result = client.Get(path);
    return result && result->status == 200 ? result->body : "";
  }

  ModelServer server_;
  v1::GetExpertStatsResponse stats_;  // of prefill and decode, by gRPC
};

// The value of the series with all these labels, in the order in which the server writes them.
int64_t ValueOf(const std::string& metrics, const std::string& series) {
  const size_t place = metrics.find("\n" + series + " ");
  EXPECT_NE(place, std::string::npos) << series;
  return place == std::string::npos ? -1 : std::atoll(metrics.c_str() + place + series.size() + 2);
}

TEST_P(HttpOf, ThreeDoorsTellTheSameCountsOfEveryExpert) {
  const auto json = nlohmann::json::parse(Get("/v1/experts"));
  const std::string csv = Get("/v1/experts?format=csv");
  const std::string metrics = Get("/metrics");

  ASSERT_EQ(json["routers"].size(), static_cast<size_t>(stats_.routers_size()));
  ASSERT_GT(stats_.routers_size(), 0);
  for (int i = 0; i < stats_.routers_size(); ++i) {
    const v1::RouterStats& router = stats_.routers(i);
    // 13 of the prompt, and 8 of the 9 tokens: the last is not computed.
    EXPECT_EQ(router.tokens_routed(), 21);
    EXPECT_EQ(
        json["routers"][i]["figures"]["effective_experts"], router.figures().effective_experts()
    );
    int64_t assignments = 0;
    for (int j = 0; j < router.stats_size(); ++j) {
      const v1::ExpertStats& expert = router.stats(j);
      assignments += expert.tokens();
      EXPECT_EQ(json["routers"][i]["stats"][j]["tokens"], expert.tokens());
      const std::string place = Concat(
          ",", router.layer(), ",", router.kind(), ",", expert.head(), ",", expert.expert(), ","
      );
      EXPECT_THAT(csv, HasSubstr(Concat(place, expert.tokens(), ",")));
      const std::string series = Concat(
          "switchyard_expert_tokens_total{model=\"",
          GetParam(),
          "\",layer=\"",
          router.layer(),
          "\",kind=\"",
          router.kind(),
          "\",head=\"",
          expert.head(),
          "\",expert=\"",
          expert.expert(),
          "\",phase=\""
      );
      EXPECT_EQ(
          ValueOf(metrics, series + "prefill\"}") + ValueOf(metrics, series + "decode\"}"),
          expert.tokens()
      );
    }
    EXPECT_EQ(assignments, router.tokens_routed() * router.top_k() * router.heads());
  }
}

TEST_P(HttpOf, PromptTokensAreComputedOrFoundInTheCache) {
  const std::string metrics = Get("/metrics");
  const std::string series =
      Concat("switchyard_prompt_tokens_total{model=\"", GetParam(), "\",source=\"");

  EXPECT_EQ(ValueOf(metrics, series + "computed\"}"), 13);
  EXPECT_EQ(ValueOf(metrics, series + "cached\"}"), 0);
}

TEST_P(HttpOf, MetricsHaveAsManyExpertSeriesAsTheBudgetCounts) {
  std::istringstream lines(Get("/metrics"));
  int64_t series = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_of_experts =
        line.rfind("switchyard_expert_", 0) == 0 || line.rfind("switchyard_router_", 0) == 0;
    series += is_of_experts ? 1 : 0;
  }

  EXPECT_EQ(series, CountExpertSeries(server_.info(), ExpertMetricsLevel::kFull));
}

// 8 routers of 4 experts: each has 3 phases and 5 figures x 3 windows, each expert 2 sums x 2
// phases.
TEST(HttpMetrics, OfTheBundledModelHaveSoManySeries) {
  ModelServer server("bible-moa");
  EXPECT_TRUE(Generate(server.inference(), ShortRequest(5)).status.ok());
  httplib::Client client("127.0.0.1", server.http_port());

  const httplib::Result page = client.Get("/metrics");

  ASSERT_TRUE(page);
  std::istringstream lines(page->body);
  int64_t all = 0;
  int64_t of_experts = 0;
  for (std::string line; std::getline(lines, line);) {
    all += line[0] != '#' ? 1 : 0;
    of_experts += line.rfind("switchyard_expert_", 0) == 0 ? 1 : 0;
    of_experts += line.rfind("switchyard_router_", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(of_experts, 8 * (3 + 5 * 3 + 4 * 4));
  EXPECT_LT(all, 1000);
}

TEST_P(HttpOf, MetricsPassPromtool) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "no promtool here; tools/install_dependencies.sh test installs it";
  }
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "metrics") << Get("/metrics");

  const std::string command =
      Concat("promtool check metrics <", (folder.path() / "metrics").string(), " 2>&1");
  FILE* const promtool = popen(command.c_str(), "r");
  ASSERT_NE(promtool, nullptr);
  std::string said;
  for (int letter = fgetc(promtool); letter != EOF; letter = fgetc(promtool)) {
    said += static_cast<char>(letter);
  }

  EXPECT_EQ(pclose(promtool), 0) << said;
  EXPECT_EQ(said, "");
}

INSTANTIATE_TEST_SUITE_P(Models, HttpOf, ::testing::ValuesIn(ModelNames()), [](const auto& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace switchyard
