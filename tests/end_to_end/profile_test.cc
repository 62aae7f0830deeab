#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"

// ProfileExperts through the engine that serves the bundled models; tests/program/test_experts.py
// compares it with the profile that `switchyard experts` makes without a server.

namespace switchyard {
namespace {

// Longer than the context of 512 tokens of either model.
std::string Text(size_t bytes) {
  std::ifstream file(std::string(SWITCHYARD_SOURCE_DIR) + "/models/held_out.txt");
  std::ostringstream contents;
  contents << file.rdbuf();
  return std::move(contents).str().substr(0, bytes);
}

class ProfileOverGrpc : public ::testing::TestWithParam<std::string> {
 protected:
  ProfileOverGrpc() { request_.set_text(Text(6000)); }

  v1::ProfileExpertsResponse Profile() {
    grpc::ClientContext context;
    v1::ProfileExpertsResponse response;
    const grpc::Status status =
        server_.admin_experts().ProfileExperts(&context, request_, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  int64_t RoutedTokens(std::vector<v1::Phase> phases) {
    v1::GetExpertStatsRequest request;
    request.mutable_phases()->Add(phases.begin(), phases.end());
    grpc::ClientContext context;
    v1::GetExpertStatsResponse response;
    EXPECT_TRUE(server_.experts().GetExpertStats(&context, request, &response).ok());
    return response.routers(0).tokens_routed();
  }

  v1::GetLoadResponse LoadWhen(const std::function<bool(const v1::GetLoadResponse&)>& is_reached) {
    v1::GetLoadResponse load;
    do {
      grpc::ClientContext context;
      EXPECT_TRUE(server_.inference().GetLoad(&context, {}, &load).ok());
    } while (!is_reached(load));
    return load;
  }

  ModelServer server_{GetParam()};
  v1::ProfileExpertsRequest request_;
};

TEST_P(ProfileOverGrpc, AccountsForEachChoiceOfEachToken) {
  const v1::ProfileExpertsResponse profile = Profile();

  EXPECT_GT(profile.tokens(), 2 * profile.sequence_tokens());
  ASSERT_GT(profile.routers_size(), 0);
  for (const v1::RouterSpecialities& router : profile.routers()) {
    int64_t choices = 0;
    int64_t affinities = 0;
    for (const v1::ExpertSpeciality& expert : router.specialities()) {
      choices += expert.assignments();
      affinities += expert.tokens_size();
    }
    EXPECT_EQ(choices, profile.tokens() * router.heads() * router.top_k());
    EXPECT_GT(affinities, 0);
  }
}

TEST_P(ProfileOverGrpc, CountsApartFromWhatClientsAskFor) {
  const int64_t warm_up = RoutedTokens({v1::PHASE_WARM_UP});

  const v1::ProfileExpertsResponse profile = Profile();

  const int64_t leads =
      (profile.tokens() + profile.sequence_tokens() - 1) / profile.sequence_tokens();
  const int64_t counted = RoutedTokens({v1::PHASE_WARM_UP}) - warm_up;
  EXPECT_GE(counted, profile.tokens());
  EXPECT_LE(counted, profile.tokens() + leads);
  EXPECT_EQ(RoutedTokens({v1::PHASE_PREFILL, v1::PHASE_DECODE, v1::PHASE_RECOMPUTE}), 0);
}

TEST_P(ProfileOverGrpc, IsTheSameWhileOthersAreServed) {
  const v1::ProfileExpertsResponse alone = Profile();
  v1::GenerateRequest generation = ShortRequest(200);
  generation.mutable_stopping()->set_ignore_eos(true);
  generation.mutable_sampling()->set_temperature(0);
  const std::vector<int32_t> without = Generate(server_.inference(), generation).token_ids;

  std::vector<std::future<Stream>> others;
  for (int i = 0; i < 6; ++i) {
    others.push_back(std::async(std::launch::async, [this, &generation] {
      return Generate(server_.inference(), generation);
    }));
  }
  const v1::ProfileExpertsResponse beside = Profile();

  EXPECT_EQ(beside.SerializeAsString(), alone.SerializeAsString());
  for (std::future<Stream>& other : others) {
    EXPECT_EQ(other.get().token_ids, without);
  }
}

TEST_P(ProfileOverGrpc, LeavesNothingWhenItIsCancelledMidway) {
  request_.set_text(Text(400'000));
  grpc::ClientContext context;
  v1::ProfileExpertsResponse response;
  std::future<grpc::Status> running = std::async(std::launch::async, [&] {
    return server_.admin_experts().ProfileExperts(&context, request_, &response);
  });
  // The first sequence has been routed, and another has not.
  LoadWhen([](const auto& load) { return load.kv_blocks_used() > 0; });
  while (RoutedTokens({v1::PHASE_WARM_UP}) < 600) {
  }

  context.TryCancel();

  EXPECT_EQ(running.get().error_code(), grpc::StatusCode::CANCELLED);
  const v1::GetLoadResponse load =
      LoadWhen([](const auto& now) { return now.open_streams() == 0; });
  EXPECT_EQ(load.kv_blocks_used(), 0);
  EXPECT_EQ(load.running_requests(), 0);
  EXPECT_EQ(load.waiting_requests(), 0);
  EXPECT_EQ(load.queued_tokens(), 0);
}

TEST_P(ProfileOverGrpc, EndsWithItsDeadline) {
  request_.set_text(Text(400'000));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  v1::ProfileExpertsResponse response;

  const grpc::Status status = server_.admin_experts().ProfileExperts(&context, request_, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  const v1::GetLoadResponse load =
      LoadWhen([](const auto& now) { return now.open_streams() == 0; });
  EXPECT_EQ(load.kv_blocks_used(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ProfileOverGrpc, ::testing::Values("bible-moa", "bible-switchhead")
);

}  // namespace
}  // namespace switchyard
