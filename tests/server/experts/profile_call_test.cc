#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "tests/server/generic_call.h"
#include "tests/server/running_server.h"

// ProfileExperts as an RPC, without a model: what reaches the engine, and how it ends.

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Answered {
  grpc::Status status;
  v1::ProfileExpertsResponse response;
};

class ProfileExperts : public ::testing::Test {
 protected:
  ProfileExperts() : admin_(server_.AdminExperts()), engine_(server_.SetReady({'x'})) {}

  Answered Profile(
      v1::ExpertService::Stub& stub, const std::string& text, grpc::ClientContext& context
  ) {
    v1::ProfileExpertsRequest request;
    request.set_text(text);
    Answered answered;
    answered.status = stub.ProfileExperts(&context, request, &answered.response);
    return answered;
  }

  Answered Profile(const std::string& text) {
    grpc::ClientContext context;
    return Profile(*admin_, text, context);
  }

  std::future<Answered> StartProfile(const std::string& text, grpc::ClientContext& context) {
    return std::async(std::launch::async, [this, text, &context] {
      return Profile(*admin_, text, context);
    });
  }

  v1::GetLoadResponse Load() {
    v1::GetLoadResponse load;
    grpc::ClientContext context;
    EXPECT_TRUE(server_.inference().GetLoad(&context, {}, &load).ok());
    return load;
  }

  void ExpectThatNothingIsLeft() {
    v1::GetLoadResponse load = Load();
    while (load.open_streams() != 0) {
      load = Load();
    }
    EXPECT_EQ(load.running_requests(), 0);
    EXPECT_EQ(load.queued_tokens(), 0);
  }

  RunningServer server_;
  std::unique_ptr<v1::ExpertService::Stub> admin_;
  FakeEngine& engine_;
};

// 130 tokens in a context of 64.
TEST_F(ProfileExperts, RoutesATextInSequencesOfTheContext) {
  const Answered answered = Profile(std::string(130, 'a'));

  ASSERT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_EQ(answered.response.model(), "fake");
  EXPECT_EQ(answered.response.tokens(), 130);
  EXPECT_EQ(answered.response.distinct_tokens(), 1);
  EXPECT_EQ(answered.response.sequence_tokens(), 64);
  engine_.WaitUntilSubmitted(3);
  ASSERT_THAT(engine_.LastRequest().continuations, SizeIs(1));
  EXPECT_THAT(engine_.LastRequest().continuations[0], SizeIs(1));
  ExpectThatNothingIsLeft();
}

TEST_F(ProfileExperts, GivesTheEngineRequestsThatComeLastAndAreNobodys) {
  ASSERT_TRUE(Profile(std::string(64, 'a')).status.ok());

  const GenerationRequest request = engine_.LastRequest();
  EXPECT_THAT(request.prompt, SizeIs(1));
  ASSERT_THAT(request.continuations, SizeIs(1));
  EXPECT_THAT(request.continuations[0], SizeIs(63));
  EXPECT_EQ(request.priority, -100);
  EXPECT_TRUE(request.trace_routing);
  EXPECT_TRUE(request.counts_as_warm_up);
  EXPECT_FALSE(request.prefix_sharing.enabled);
}

TEST_F(ProfileExperts, TakesATextThatLeavesASingleTokenForTheLastSequence) {
  const Answered answered = Profile(std::string(65, 'a'));

  ASSERT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_THAT(engine_.LastRequest().prompt, SizeIs(1));
  EXPECT_THAT(engine_.LastRequest().continuations, SizeIs(0));
}

TEST_F(ProfileExperts, IsAnsweredAtTheAdminAddressOnly) {
  grpc::ClientContext context;

  const grpc::Status status = Profile(server_.experts(), "text", context).status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("--admin-listen"));
}

TEST_F(ProfileExperts, RefusesATextThatIsEmptyOrNoUtf8) {
  const grpc::Status empty = Profile("").status;
  // Field 2, three bytes.
  const grpc::Status broken = CallUnary(
                                  grpc::CreateChannel(
                                      Concat("127.0.0.1:", *server_.server().admin_port()),
                                      grpc::InsecureChannelCredentials()
                                  ),
                                  "/switchyard.v1.ExpertService/ProfileExperts",
                                  "\x12\x03 \xFF "
  )
                                  .status;

  EXPECT_EQ(empty.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(empty.error_message(), HasSubstr("text is empty"));
  EXPECT_EQ(broken.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(broken.error_message(), HasSubstr("text"));
}

TEST_F(ProfileExperts, ProfilesOneTextAtATime) {
  engine_.HoldAfter(0);
  grpc::ClientContext context;
  std::future<Answered> running = StartProfile(std::string(100, 'a'), context);
  engine_.WaitUntilSubmitted(1);

  const grpc::Status second = Profile("text").status;
  engine_.Release();

  EXPECT_EQ(second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(second.error_message(), HasSubstr("a text is being profiled"));
  EXPECT_TRUE(running.get().status.ok());
  ExpectThatNothingIsLeft();
  EXPECT_TRUE(Profile("text").status.ok());
}

TEST_F(ProfileExperts, LeavesNothingWhenTheClientCancels) {
  engine_.HoldAfter(0);
  grpc::ClientContext context;
  std::future<Answered> running = StartProfile(std::string(1000, 'a'), context);
  engine_.WaitUntilSubmitted(1);
  EXPECT_EQ(Load().queued_tokens(), 64);

  context.TryCancel();

  EXPECT_EQ(running.get().status.error_code(), grpc::StatusCode::CANCELLED);
  engine_.WaitUntilIdle();
  ExpectThatNothingIsLeft();
  engine_.Release();
  EXPECT_TRUE(Profile("text").status.ok());
}

TEST_F(ProfileExperts, IsRefusedWhenTheQueueIsFullAtItsBeginning) {
  engine_.RefuseWith(ResourceExhausted("256 requests are waiting"));

  const Answered answered = Profile("text");

  EXPECT_EQ(answered.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(answered.status.error_message(), HasSubstr("256 requests are waiting"));
  ExpectThatNothingIsLeft();
}

TEST_F(ProfileExperts, WaitsWhenTheQueueIsFullLater) {
  engine_.HoldAfter(0);
  grpc::ClientContext context;
  std::future<Answered> running = StartProfile(std::string(100, 'a'), context);
  engine_.WaitUntilSubmitted(1);
  engine_.RefuseWith(ResourceExhausted("256 requests are waiting"));
  engine_.Release();
  engine_.WaitUntilIdle();
  while (Load().queued_tokens() != 0) {
  }

  engine_.RefuseWith(OkStatus());
  server_.server().Tick();

  const Answered answered = running.get();
  EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_EQ(answered.response.tokens(), 100);
  ExpectThatNothingIsLeft();
}

TEST_F(ProfileExperts, LeavesNothingWhenItIsCancelledWhileItWaitsForRoom) {
  engine_.HoldAfter(0);
  grpc::ClientContext context;
  std::future<Answered> running = StartProfile(std::string(100, 'a'), context);
  engine_.WaitUntilSubmitted(1);
  engine_.RefuseWith(ResourceExhausted("256 requests are waiting"));
  engine_.Release();
  engine_.WaitUntilIdle();
  while (Load().queued_tokens() != 0) {
  }

  context.TryCancel();

  EXPECT_EQ(running.get().status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectThatNothingIsLeft();
}

TEST_F(ProfileExperts, EndsWithTheEnginesError) {
  engine_.FailAfter(0, Internal("the device failed in this step: broken"));

  const grpc::Status status = Profile("text").status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("the device failed"));
}

TEST_F(ProfileExperts, IsUnavailableWhenTheServerStopsBeforeItsEnd) {
  engine_.HoldAfter(0);
  grpc::ClientContext context;
  std::future<Answered> running = StartProfile(std::string(1000, 'a'), context);
  engine_.WaitUntilSubmitted(1);

  server_.server().Shutdown(std::chrono::milliseconds(0));

  EXPECT_EQ(running.get().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace switchyard
