#include "server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/server/generic_call.h"
#include "tests/server/hand_clock.h"
#include "tests/server/hostile/raw_connection.h"
#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kListServices[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr const char* kNames[] = {
    "", "switchyard.v1.InferenceService", "switchyard.v1.ExpertService"};

TEST(Server, IsNotServingUntilItHasAModel) {
  RunningServer server;
  for (const char* name : kNames) {
    EXPECT_EQ(CallUnary(server.channel(), kCheck, HealthRequest(name)).bytes, kNotServing) << name;
  }

  server.SetReady({'a'});

  for (const char* name : kNames) {
    EXPECT_EQ(CallUnary(server.channel(), kCheck, HealthRequest(name)).bytes, kServing) << name;
  }
}

TEST(Server, TellsAWatcherWhenItBeginsAndStopsServing) {
  RunningServer server;
  GenericStream watch(server.channel(), kWatch, HealthRequest("switchyard.v1.InferenceService"));

  EXPECT_EQ(watch.Read(), kNotServing);
  server.SetReady({'a'});
  EXPECT_EQ(watch.Read(), kServing);
  server.server().Shutdown(std::chrono::milliseconds(0));
  EXPECT_EQ(watch.Read(), kNotServing);
}

TEST(Server, DoesNotKnowTheHealthOfOtherServices) {
  RunningServer server;

  const GenericAnswer answer = CallUnary(server.channel(), kCheck, HealthRequest("other"));

  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(Server, ListsItsServicesThroughReflection) {
  RunningServer server;
  GenericStream reflection(server.channel(), kListServices, std::string("\x3A\x01*"));

  const std::string services = reflection.Read();

  EXPECT_THAT(services, HasSubstr("switchyard.v1.InferenceService"));
  EXPECT_THAT(services, HasSubstr("switchyard.v1.ExpertService"));
  EXPECT_THAT(services, HasSubstr("grpc.health.v1.Health"));
}

TEST(Server, RefusesWorkWhileTheModelLoads) {
  RunningServer server;

  const grpc::Status status = Generate(server.inference(), ShortRequest(1)).status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("the model is loading"));
}

TEST(Server, RefusesAMessageOverTheSizeLimitAndLivesOn) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.connections.max_receive_message_bytes = 1000;
  RunningServer server(options);
  server.SetReady({'a'});
  v1::GenerateRequest at_limit;
  at_limit.set_prompt_text(std::string(997, 'a'));  // and 3 bytes of tag and length
  ASSERT_EQ(at_limit.ByteSizeLong(), 1000);
  v1::GenerateRequest over_limit;
  over_limit.set_prompt_text(std::string(998, 'a'));

  const grpc::Status taken = Generate(server.inference(), at_limit).status;
  const grpc::Status refused = Generate(server.inference(), over_limit).status;

  EXPECT_THAT(taken.error_message(), HasSubstr("has 997 tokens"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Generate(server.inference(), ShortRequest(1)).status.ok());
}

TEST(Server, LetsRunningStreamsFinishAndRefusesNewOnesWhileItDrains) {
  RunningServer server;
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(3));
  engine.WaitUntilSubmitted(1);
  GenericStream watch(server.channel(), kWatch, HealthRequest(""));
  EXPECT_EQ(watch.Read(), kServing);

  std::thread shutdown([&server] { server.server().Shutdown(std::chrono::hours(1)); });
  EXPECT_EQ(watch.Read(), kNotServing);
  const grpc::Status refused = Generate(server.inference(), ShortRequest(1)).status;
  engine.Release();
  const Stream finished = ReadStream(*reader);
  shutdown.join();

  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("stopping"));
  EXPECT_TRUE(finished.status.ok()) << finished.status.error_message();
  EXPECT_EQ(finished.text, "aaa");
}

TEST(Server, EndsWhatIsLeftAsUnavailableWhenDrainingIsOver) {
  RunningServer server;
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(3));
  engine.WaitUntilSubmitted(1);

  std::thread shutdown([&server] { server.server().Shutdown(std::chrono::hours(1)); });
  server.server().StopDraining();
  const grpc::Status status = ReadStream(*reader).status;
  shutdown.join();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("the server is stopping"));
}

TEST(Server, ShutsDownAClientThatDoesNotRead) {
  RunningServer server;
  server.SetReady({258}, {std::string(1 << 20, 'a')});
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(40));

  server.server().Shutdown(std::chrono::milliseconds(0));

  SUCCEED() << "a write that stays in flight holds nobody up";
}

TEST(Server, IsNotServingWhileAStepTakesTooLong) {
  HandClock clock;
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.serving.step_timeout = std::chrono::seconds(60);
  options.serving.stall_timeout = std::chrono::hours(1);
  options.serving.now = [&clock] { return clock.Now(); };
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({'a'});
  GenericStream watch(server.channel(), kWatch, HealthRequest("switchyard.v1.InferenceService"));
  EXPECT_EQ(watch.Read(), kServing);
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(3));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  server.server().Tick();
  clock.Advance(std::chrono::seconds(60));
  server.server().Tick();
  EXPECT_EQ(watch.Read(), kNotServing);

  engine.Release();
  EXPECT_TRUE(ReadStream(*reader).status.ok());
  server.server().Tick();
  EXPECT_EQ(watch.Read(), kServing);
}

TEST(Server, StaysNotServingWhenTheEngineMovesAgainWhileItDrains) {
  HandClock clock;
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.serving.step_timeout = std::chrono::seconds(60);
  options.serving.stall_timeout = std::chrono::hours(1);
  options.serving.now = [&clock] { return clock.Now(); };
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(3));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));
  server.server().Tick();
  clock.Advance(std::chrono::seconds(60));
  server.server().Tick();

  std::thread shutdown([&server] { server.server().Shutdown(std::chrono::hours(1)); });
  while (Generate(server.inference(), ShortRequest(0)).status.error_code() !=
         grpc::StatusCode::UNAVAILABLE) {
    std::this_thread::yield();
  }
  clock.Advance(std::chrono::seconds(60));
  server.server().Tick();
  EXPECT_EQ(CallUnary(server.channel(), kCheck, HealthRequest("")).bytes, kNotServing);
  engine.Release();
  ReadStream(*reader);
  shutdown.join();
}

// A channel whose client pings as often as gRPC lets it, once a second, however quiet the
// connection is.
std::shared_ptr<grpc::Channel> PingingChannel(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(
      Concat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments
  );
}

TEST(Server, LetsClientsPingWhileTheirRequestsWait) {
  RunningServer server;
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(0);
  const auto stub = v1::InferenceService::NewStub(PingingChannel(server.server().port()));
  grpc::ClientContext waits;
  const auto waiting = stub->Generate(&waits, ShortRequest(1));
  // As long as the connection of the next test lives, and some pings more.
  grpc::ClientContext beside_it;
  beside_it.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(6));
  const Stream passed = ReadStream(*stub->Generate(&beside_it, ShortRequest(1)));
  engine.Release();

  EXPECT_EQ(passed.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(ReadStream(*waiting).status.ok());
}

TEST(Server, CutsTheConnectionOfAClientThatPingsTooOften) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.connections.min_ping_interval = std::chrono::minutes(5);
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(0);
  const auto stub = v1::InferenceService::NewStub(PingingChannel(server.server().port()));
  grpc::ClientContext context;
  const auto waiting = stub->Generate(&context, ShortRequest(1));

  EXPECT_EQ(ReadStream(*waiting).status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Not taken on by the system for a server that will never look at them.
TEST(Server, RefusesConnectionsOnceItHasShutDown) {
  RunningServer server;
  const int port = server.server().port();
  ASSERT_TRUE(RawConnection(port).IsOpen());

  server.server().Shutdown(std::chrono::milliseconds(0));

  EXPECT_FALSE(RawConnection(port).IsOpen());
}

TEST(Server, CannotListenOnAPortThatIsTaken) {
  RunningServer server;
  ServerOptions options;
  options.listen_address = Concat("127.0.0.1:", server.server().port());

  const Status status = Server::Listen(options).status();

  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr(options.listen_address));
}

TEST(Server, NamesAnAddressThatIsNone) {
  for (const char* address : {"", "localhost", "127.0.0.1:", ":5", "a:70000", "a:1x", "unix:"}) {
    ServerOptions options;
    options.listen_address = address;

    const Status status = Server::Listen(options).status();

    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(MessageOf(status), HasSubstr(Concat("\"", address, "\""))) << address;
  }
}

}  // namespace
}  // namespace switchyard
