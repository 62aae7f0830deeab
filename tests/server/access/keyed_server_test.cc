#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "server/access/api_key.h"
#include "switchyard/v1/error_details.pb.h"
#include "tests/server/generic_call.h"
#include "tests/server/running_server.h"
#include "tests/support/captured_log.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kAnn = "sy_" + std::string(43, 'a');
const std::string kRoot = "sy_" + std::string(43, 'r');

std::string Entry(const std::string& name, const std::string& key, const std::string& more) {
  return "{\"name\": \"" + name + "\", \"sha256\": \"" + HexOf(HashKey(key)) + "\"" + more + "}";
}

class KeyedServer : public ::testing::Test {
 protected:
  // Ann may do what `fields` say; root is an administrator.
  void Serve(const std::string& fields, int32_t max_streams_per_peer = 0) {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.admin_address = "127.0.0.1:0";
    options.serving.max_streams_per_peer = max_streams_per_peer;
    options.api_keys = folder_.Write(
        "keys.json",
        "{\"keys\": [" + Entry("ann", kAnn, fields) + "," +
            Entry("root", kRoot, ", \"admin\": true") + "]}"
    );
    server_ = std::make_unique<RunningServer>(options);
    engine_ = &server_->SetReady({'a'});
  }

  Stream GenerateAs(const std::string& key, const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + key);
    return ReadStream(*server_->inference().Generate(&context, request));
  }

  TemporaryFolder folder_;
  std::unique_ptr<RunningServer> server_;
  FakeEngine* engine_ = nullptr;
};

TEST_F(KeyedServer, AnswersNoCallOfItsServicesWithoutAKey) {
  Serve("");

  for (const char* service : {"switchyard.v1.InferenceService", "switchyard.v1.ExpertService"}) {
    const auto* const described =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    ASSERT_NE(described, nullptr);
    for (int i = 0; i < described->method_count(); ++i) {
      const std::string method = Concat("/", service, "/", described->method(i)->name());
      const GenericAnswer answer = CallUnary(server_->channel(), method, "");
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
      EXPECT_THAT(answer.status.error_message(), HasSubstr("Bearer KEY")) << method;
    }
  }
  // Probes have no key.
  EXPECT_EQ(
      CallUnary(server_->channel(), "/grpc.health.v1.Health/Check", HealthRequest("")).bytes,
      kServing
  );
}

TEST_F(KeyedServer, KnowsItsClientsInTheLog) {
  CapturedLog log;
  Serve("");

  EXPECT_TRUE(GenerateAs(kAnn, ShortRequest(2)).status.ok());
  const grpc::Status stranger = GenerateAs("sy_" + std::string(43, 'x'), ShortRequest(2)).status;

  EXPECT_EQ(stranger.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(log.WaitFor("event=finished"), HasSubstr("key=ann"));
  for (const std::string& line : log.Lines()) {
    EXPECT_THAT(line, Not(HasSubstr("sy_")));
  }
}

TEST_F(KeyedServer, SaysWhenAClientMayComeAgain) {
  Serve(", \"requests_per_minute\": 1");
  ASSERT_TRUE(GenerateAs(kAnn, ShortRequest(1)).status.ok());

  const grpc::Status status = GenerateAs(kAnn, ShortRequest(1)).status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_THAT(details.details(0).type_url(), HasSubstr("google.rpc.RetryInfo"));
  EXPECT_TRUE(GenerateAs(kRoot, ShortRequest(1)).status.ok());
}

TEST_F(KeyedServer, ChargesTokensThatWereUsedAndNoOthers) {
  // A prompt of one token each.
  Serve(", \"tokens_per_minute\": 12");
  v1::GenerateRequest cut_short = ShortRequest(11);
  cut_short.mutable_stopping()->add_stop_token_ids('a');

  // Takes 12 and gives back 10.
  ASSERT_TRUE(GenerateAs(kAnn, cut_short).status.ok());
  // Refused for its content: gives back all.
  v1::GenerateRequest twin = ShortRequest(9);
  twin.set_model("another");
  ASSERT_FALSE(GenerateAs(kAnn, twin).status.ok());
  ASSERT_TRUE(GenerateAs(kAnn, ShortRequest(9)).status.ok());
  const grpc::Status over = GenerateAs(kAnn, ShortRequest(9)).status;
  const grpc::Status never = GenerateAs(kAnn, ShortRequest(12)).status;

  EXPECT_EQ(over.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(over.error_message(), HasSubstr("has used its 12 tokens a minute"));
  EXPECT_THAT(never.error_message(), HasSubstr("may take 13 tokens"));
}

TEST_F(KeyedServer, BoundsThePriorityThatAKeyMayAskFor) {
  Serve(", \"priority\": 5");
  v1::GenerateRequest request = ShortRequest(1);
  request.mutable_scheduling()->set_priority(6);

  const grpc::Status status = GenerateAs(kAnn, request).status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("API key \"ann\" may ask for at most 5"));
  request.mutable_scheduling()->set_priority(5);
  EXPECT_TRUE(GenerateAs(kAnn, request).status.ok());
  EXPECT_TRUE(GenerateAs(kAnn, ShortRequest(1)).status.ok());
}

TEST_F(KeyedServer, LetsOnlyAdministratorsThroughTheAdminDoor) {
  Serve("");
  const auto admin = server_->AdminExperts();
  const auto reset_as = [&admin](const std::string& key) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + key);
    v1::ResetExpertWindowResponse response;
    return admin->ResetExpertWindow(&context, {}, &response);
  };
  const auto profile_as = [&admin](const std::string& key) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + key);
    v1::ProfileExpertsRequest request;
    request.set_text("text");
    v1::ProfileExpertsResponse response;
    return admin->ProfileExperts(&context, request, &response);
  };

  EXPECT_EQ(reset_as(kAnn).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(profile_as(kAnn).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(reset_as(kRoot).ok());
  EXPECT_TRUE(profile_as(kRoot).ok());
}

TEST_F(KeyedServer, BoundsTheGenerationsOfOneClient) {
  Serve("", 1);
  engine_->HoldAfter(1);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + kAnn);
  const auto reader = server_->inference().Generate(&context, ShortRequest(3));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  const grpc::Status second = GenerateAs(kAnn, ShortRequest(1)).status;
  engine_->Release();
  EXPECT_TRUE(GenerateAs(kRoot, ShortRequest(1)).status.ok());
  EXPECT_TRUE(ReadStream(*reader).status.ok());

  EXPECT_EQ(second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(second.error_message(), HasSubstr("takes 1 of one client"));
}

}  // namespace
}  // namespace switchyard
