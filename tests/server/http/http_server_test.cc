#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "server/listen_address.h"
#include "tests/server/running_server.h"
#include "tests/server/two_routers.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ServerOptions WithHttp() {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.http.listen_address = "127.0.0.1:0";
  options.http.client_timeout = std::chrono::milliseconds(100);
  return options;
}

int ConnectTo(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return descriptor;
}

class HttpPages : public ::testing::Test {
 protected:
  FakeEngine& SetReady() {
    FakeEngine& engine = server_.SetReady({'x'});
    engine.SetStatistics(TwoRouters());
    return engine;
  }

  struct Answer {
    int status = 0;
    std::string body;
    std::string type;
  };
  Answer Get(const std::string& path) {
    httplib::Client client("127.0.0.1", *server_.server().http_port());
    const httplib::Result result = client.Get(path);
    if (!result) {
      return {};
    }
    return {result->status, result->body, result->get_header_value("Content-Type")};
  }

  RunningServer server_{WithHttp()};
};

TEST_F(HttpPages, TellAProcessThatLivesFromOneThatIsReady) {
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_THAT(Get("/readyz").body, HasSubstr("the model is loading"));
  EXPECT_EQ(Get("/v1/load").status, 503);
  EXPECT_EQ(Get("/metrics").status, 200);
  EXPECT_THAT(Get("/metrics").body, HasSubstr("switchyard_ready 0\n"));
  EXPECT_THAT(Get("/metrics").body, Not(HasSubstr("requests_running")));

  SetReady();

  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_THAT(Get("/metrics").body, HasSubstr("switchyard_ready{model=\"fake\"} 1\n"));
}

TEST_F(HttpPages, AnswerInfoAndLoadAsTheirRpcsDo) {
  SetReady();

  EXPECT_EQ(nlohmann::json::parse(Get("/v1/info").body)["model"], "fake");
  const auto load = nlohmann::json::parse(Get("/v1/load").body);
  EXPECT_EQ(load["running_requests"], 0);
  EXPECT_EQ(load["refusals_total"]["streams"], 0);
}

TEST_F(HttpPages, AnswerExpertsAsJsonAndCsv) {
  SetReady();

  const Answer json = Get("/v1/experts?layer=1&phase=decode");
  const Answer csv = Get("/v1/experts?format=csv&kind=attn");

  EXPECT_EQ(json.type, "application/json");
  const auto parsed = nlohmann::json::parse(json.body);
  EXPECT_EQ(parsed["routers"].size(), 1U);
  EXPECT_EQ(parsed["routers"][0]["stats"][3]["tokens"], 20);
  EXPECT_THAT(csv.type, HasSubstr("text/csv"));
  EXPECT_THAT(csv.body, HasSubstr("fake,life,12,0,attn,0,1,24,12,1.2972972972972974,0.5,\n"));
}

TEST_F(HttpPages, SayWhatIsWrongWithAQuery) {
  SetReady();

  EXPECT_EQ(Get("/v1/experts?layer=7").status, 400);
  EXPECT_THAT(
      nlohmann::json::parse(Get("/v1/experts?layer=7").body)["error"].get<std::string>(),
      HasSubstr("this model's layers with routers are 0, 1")
  );
  EXPECT_EQ(Get("/v1/experts?format=xml").status, 400);
  EXPECT_EQ(Get("/v1/experts?kind=%ff%00%22").status, 400);
  EXPECT_EQ(Get("/nothing").status, 404);
}

TEST_F(HttpPages, CountWhatRequestsDid) {
  SetReady();
  ASSERT_TRUE(Generate(server_.inference(), ShortRequest(5)).status.ok());
  v1::GenerateRequest bad = ShortRequest(5);
  bad.mutable_sampling()->set_temperature(-1);
  ASSERT_FALSE(Generate(server_.inference(), bad).status.ok());

  const std::string metrics = Get("/metrics").body;

  EXPECT_THAT(metrics, HasSubstr("switchyard_generation_tokens_total{model=\"fake\"} 5\n"));
  EXPECT_THAT(
      metrics, HasSubstr("switchyard_requests_total{model=\"fake\",outcome=\"length\"} 1\n")
  );
  EXPECT_THAT(
      metrics, HasSubstr("switchyard_rejections_total{model=\"fake\",reason=\"invalid\"} 1\n")
  );
  EXPECT_THAT(
      metrics,
      HasSubstr("switchyard_inter_token_latency_seconds_bucket{model=\"fake\",le=\"0.001\"}")
  );
}

TEST_F(HttpPages, ServeTheDashboardAsOneFileThatLoadsNothingElse) {
  const Answer page = Get("/");

  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.type, HasSubstr("text/html"));
  EXPECT_THAT(page.body, HasSubstr("</html>"));
  EXPECT_THAT(page.body, Not(HasSubstr("http://")));
  EXPECT_THAT(page.body, Not(HasSubstr("https://")));
  EXPECT_THAT(page.body, Not(HasSubstr("src=")));
}

TEST_F(HttpPages, RefuseABody) {
  httplib::Client client("127.0.0.1", *server_.server().http_port());

  const httplib::Result result = client.Post("/metrics", std::string(4096, 'x'), "text/plain");

  EXPECT_TRUE(!result || result->status >= 400);
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(HttpPages, AnswerOnceSilentConnectionsHaveRunOutOfTime) {
  // More than there are threads; each sends half a request and then nothing.
  std::vector<int> sockets;
  for (int i = 0; i < 9; ++i) {
    sockets.push_back(ConnectTo(*server_.server().http_port()));
    ASSERT_EQ(send(sockets.back(), "GET /he", 7, 0), 7);
  }

  httplib::Client client("127.0.0.1", *server_.server().http_port());
  client.set_read_timeout(60);
  const httplib::Result result = client.Get("/healthz");

  EXPECT_TRUE(result && result->status == 200);
  for (const int socket : sockets) {
    close(socket);
  }
}

TEST(HttpServer, RefusesAnAddressThatIsNoneOrTaken) {
  ServingState state;
  const auto first = HttpServer::Listen({.listen_address = "127.0.0.1:0"}, state);
  ASSERT_TRUE(first.ok()) << first.status();

  const auto taken =
      HttpServer::Listen({.listen_address = Concat("127.0.0.1:", (*first)->port())}, state);

  EXPECT_EQ(taken.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("another process has the port"));
  for (const char* address : {"127.0.0.1", ":80", "127.0.0.1:x", "127.0.0.1:65536", ""}) {
    EXPECT_EQ(
        HttpServer::Listen({.listen_address = address}, state).status().code(),
        StatusCode::kInvalidArgument
    ) << address;
  }
}

TEST(ParseHostAndPort, TakesTheBracketsOffAnIpv6Address) {
  const auto address = ParseHostAndPort("[::1]:8080");

  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->port, 8080);
}

}  // namespace
}  // namespace switchyard
