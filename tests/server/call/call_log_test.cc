#include "server/call/call_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/running_server.h"
#include "tests/support/captured_log.h"

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTraceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

v1::GenerateRequest NamedRequest() {
  v1::GenerateRequest request;
  request.set_request_id("mine");
  request.set_prompt_text("secret");
  request.mutable_stopping()->set_max_tokens(3);
  return request;
}

ServerOptions OnLoopback() {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  return options;
}

TEST(CallLog, FollowsARequestFromAcceptanceToItsEnd) {
  CapturedLog log;
  log.Use(LogFormat::kJson);
  RunningServer server;
  server.SetReady({'a'});
  grpc::ClientContext context;
  context.AddMetadata("traceparent", kTraceparent);

  const auto reader = server.inference().Generate(&context, NamedRequest());
  ASSERT_TRUE(ReadStream(*reader).status.ok());

  const auto accepted = nlohmann::json::parse(log.WaitFor("\"event\":\"accepted\""));
  EXPECT_EQ(accepted["method"], "Generate");
  EXPECT_EQ(accepted["request_id"], "mine");
  EXPECT_EQ(accepted["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(accepted["parent_id"], "00f067aa0ba902b7");
  EXPECT_EQ(accepted["prompt_tokens"], 6);
  EXPECT_EQ(accepted["max_tokens"], 3);
  EXPECT_THAT(accepted["peer"], HasSubstr("127.0.0.1"));
  const auto finished = nlohmann::json::parse(log.WaitFor("\"event\":\"finished\""));
  EXPECT_EQ(finished["request_id"], "mine");
  EXPECT_EQ(finished["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(finished["code"], "OK");
  EXPECT_EQ(finished["reason"], "length");
  EXPECT_EQ(finished["completion_tokens"], 3);
  EXPECT_TRUE(finished["total_seconds"].is_number());
  EXPECT_THAT(log.Lines(), Each(Not(HasSubstr("secret"))));
}

TEST(CallLog, TellsTheClientItsTrace) {
  RunningServer server;
  server.SetReady({'a'});
  grpc::ClientContext traced;
  traced.AddMetadata("traceparent", kTraceparent);
  grpc::ClientContext untraced;
  grpc::ClientContext malformed;
  malformed.AddMetadata("traceparent", "00-xyz");
  v1::GetLoadResponse load;

  ReadStream(*server.inference().Generate(&traced, ShortRequest(1)));
  server.inference().GetLoad(&untraced, {}, &load);
  server.inference().GetLoad(&malformed, {}, &load);

  const auto answer = [](const grpc::ClientContext& context) {
    const auto& metadata = context.GetServerInitialMetadata();
    const auto found = metadata.find("traceparent");
    return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
  };
  EXPECT_THAT(answer(traced), HasSubstr("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
  EXPECT_THAT(answer(traced), Not(HasSubstr("00f067aa0ba902b7")));
  EXPECT_TRUE(ContinueTrace(answer(untraced)).has_value());
  EXPECT_TRUE(ContinueTrace(answer(malformed)).has_value());
}

TEST(CallLog, SaysWhyACallWasRefusedAndCannotBeForged) {
  CapturedLog log;
  RunningServer server;
  server.SetReady({'a'});
  v1::GenerateRequest request = ShortRequest(1);
  request.set_request_id("x\nevent=finished request_id=stolen");
  grpc::ClientContext context;
  v1::TokenizeResponse tokens;
  v1::TokenizeRequest unknown;
  unknown.set_model("no\nsuch");

  ASSERT_FALSE(Generate(server.inference(), request).status.ok());
  ASSERT_FALSE(server.inference().Tokenize(&context, unknown, &tokens).ok());

  EXPECT_THAT(
      log.WaitFor("method=Generate"),
      AllOf(
          HasSubstr("event=refused"),
          HasSubstr("request_id=\"x\\nevent=finished request_id=stolen\""),
          HasSubstr("code=INVALID_ARGUMENT")
      )
  );
  EXPECT_THAT(log.WaitFor("method=Tokenize"), HasSubstr("code=NOT_FOUND"));
  EXPECT_THAT(log.Lines(), Each(HasSubstr("Z level=")));
}

TEST(CallLog, TellsOfARequestThatItsClientCancelled) {
  CapturedLog log;
  RunningServer server;
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(3));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  context.TryCancel();
  ReadStream(*reader);
  engine.WaitUntilIdle();
  engine.Release();

  EXPECT_THAT(log.WaitFor("event=finished"), HasSubstr("code=CANCELLED"));
}

TEST(CallLog, HasTextsOnlyWhenTold) {
  CapturedLog log;
  ServerOptions options = OnLoopback();
  options.serving.log_prompts = true;
  RunningServer server(options);
  server.SetReady({'a'});

  ASSERT_TRUE(Generate(server.inference(), NamedRequest()).status.ok());

  EXPECT_THAT(log.WaitFor("event=prompt"), HasSubstr("request_id=mine text=secret"));
  EXPECT_THAT(log.WaitFor("event=completion"), HasSubstr("request_id=mine text=aaa"));
}

TEST(CallLog, IsSilentOfRequestsWhenTold) {
  CapturedLog log;
  ServerOptions options = OnLoopback();
  options.serving.log_requests = false;
  RunningServer server(options);
  server.SetReady({'a'});

  ASSERT_TRUE(Generate(server.inference(), ShortRequest(1)).status.ok());
  server.server().Shutdown(std::chrono::milliseconds(0));

  EXPECT_THAT(log.Lines(), ElementsAre(HasSubstr("event=drained")));
}

// What a program that exports spans would register.
class CountingObserver final : public CallObserver {
 public:
  void OnAccepted(const CallRecord& /*call*/) override { ++accepted; }
  void OnFinished(const CallRecord& call, const CallEnd& end) override {
    ++finished;
    traceparent = Traceparent(call.trace);
    tokens = end.completion_tokens;
  }
  void OnRefused(const CallRecord& /*call*/, const Status& /*status*/) override { ++refused; }

  std::atomic<int> accepted = 0;
  std::atomic<int> finished = 0;
  std::atomic<int> refused = 0;
  std::string traceparent;
  int64_t tokens = 0;
};

TEST(CallObserver, HearsOfEachRequestOnce) {
  const auto observer = std::make_shared<CountingObserver>();
  ServerOptions options = OnLoopback();
  options.serving.call_observer = observer;
  RunningServer server(options);
  server.SetReady({'a'});

  ASSERT_TRUE(Generate(server.inference(), ShortRequest(2)).status.ok());
  ASSERT_FALSE(Generate(server.inference(), ShortRequest(0)).status.ok());
  server.server().Shutdown(std::chrono::milliseconds(0));

  EXPECT_EQ(observer->accepted, 1);
  EXPECT_EQ(observer->finished, 1);
  EXPECT_EQ(observer->refused, 1);
  EXPECT_EQ(observer->tokens, 2);
  EXPECT_EQ(observer->traceparent.size(), 55U);
}

}  // namespace
}  // namespace switchyard
