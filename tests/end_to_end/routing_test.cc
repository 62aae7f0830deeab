#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "program/offline_runner.h"
#include "server/generation/routing_trace.h"
#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"
#include "tests/support/tiny_model.h"

// Which experts worked on each token of a request, over gRPC, against the same tokens run through
// the reference backend without a server.

namespace switchyard {
namespace {

using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int kPromptTokens = 29;
constexpr int kMaxTokens = 6;

class RoutingOverGrpc : public ::testing::TestWithParam<std::string> {
 protected:
  static v1::GenerateRequest Request() {
    v1::GenerateRequest request;
    for (int i = 0; i < kPromptTokens; ++i) {
      request.mutable_prompt_tokens()->add_ids(3 + i * 7 % 50);
    }
    request.mutable_sampling()->set_temperature(0);
    request.mutable_stopping()->set_max_tokens(kMaxTokens);
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_output()->set_routing(true);
    return request;
  }

  struct Traced {
    RoutingTraces traces;
    std::vector<int32_t> token_ids;
  };

  // The runs, joined where they go on.
  Traced Streamed(const v1::GenerateRequest& request) {
    Traced traced;
    grpc::ClientContext context;
    const auto reader = server_.inference().Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      if (response.has_routing()) {
        AppendTrace(response.routing(), traced.traces);
      }
      const auto& ids = response.delta().token_ids();
      traced.token_ids.insert(traced.token_ids.end(), ids.begin(), ids.end());
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return traced;
  }

  // What the reference backend chooses for all tokens but the last.
  static ForwardTrace Reference(const v1::GenerateRequest& request, const Traced& traced) {
    const bool is_jetmoe = GetParam().find("jetmoe") != std::string::npos;
    const std::unique_ptr<Ops> ops = *MakeOps(BackendOptions{.device = "reference"});
    const auto model = LoadTinyModel(
        is_jetmoe ? TinyFamily::kJetMoe : TinyFamily::kSwitchHead, {.context_tokens = 4096}, *ops
    );
    EXPECT_TRUE(model.ok()) << model.status();
    const auto& prompt = request.prompt_tokens().ids();
    std::vector<int32_t> tokens(prompt.begin(), prompt.end());
    tokens.insert(tokens.end(), traced.token_ids.begin(), traced.token_ids.end() - 1);
    const std::vector<int64_t> chunks = {static_cast<int64_t>(tokens.size())};
    return *RunForward(**model, tokens, chunks);
  }

  // `trace` is of the reference's tokens from its first position on.
  static void ExpectRouting(const v1::RoutingTrace& trace, const ForwardTrace& reference) {
    ASSERT_EQ(static_cast<size_t>(trace.routers_size()), reference.routing.size());
    for (const v1::RouterTrace& router : trace.routers()) {
      const std::string name = Concat("layer", router.layer(), ".", router.kind());
      ASSERT_TRUE(reference.routing.contains(name)) << name;
      const RoutingTrace& expected = reference.routing.at(name);
      ASSERT_EQ(router.heads(), expected.groups) << name;
      ASSERT_EQ(router.top_k(), expected.top_k) << name;
      const int64_t width = expected.groups * expected.top_k;
      const int64_t begin = trace.first_position() * width;
      const int64_t end = begin + trace.tokens() * width;
      EXPECT_THAT(
          router.expert_ids(),
          ElementsAreArray(expected.ids.begin() + begin, expected.ids.begin() + end)
      ) << name;
      EXPECT_THAT(
          router.weights(),
          Pointwise(
              FloatNear(1e-5F),
              std::vector<float>(expected.weights.begin() + begin, expected.weights.begin() + end)
          )
      ) << name;
    }
  }

  ModelServer server_{GetParam()};
};

TEST_P(RoutingOverGrpc, IsThatOfTheReferenceForEveryTokenButTheLast) {
  const v1::GenerateRequest request = Request();

  const Traced traced = Streamed(request);

  ASSERT_EQ(traced.token_ids.size(), kMaxTokens);
  ASSERT_EQ(traced.traces.size(), 1);
  EXPECT_EQ(traced.traces[0].first_position(), 0);
  EXPECT_EQ(traced.traces[0].tokens(), kPromptTokens + kMaxTokens - 1);
  EXPECT_FALSE(traced.traces[0].cached());
  ExpectRouting(traced.traces[0], Reference(request, traced));
}

TEST_P(RoutingOverGrpc, MarksTheTokensThatWereCached) {
  const v1::GenerateRequest request = Request();
  Streamed(request);

  const Traced again = Streamed(request);

  // Three full blocks of 8 tokens.
  ASSERT_EQ(again.traces.size(), 2);
  EXPECT_TRUE(again.traces[0].cached());
  EXPECT_EQ(again.traces[0].tokens(), 24);
  EXPECT_EQ(again.traces[0].routers_size(), 0);
  EXPECT_EQ(again.traces[1].first_position(), 24);
  EXPECT_EQ(again.traces[1].tokens(), kPromptTokens + kMaxTokens - 1 - 24);
  ExpectRouting(again.traces[1], Reference(request, again));
}

TEST_P(RoutingOverGrpc, ComesInOneAnswerAsItIsStreamed) {
  v1::GenerateRequest request = Request();
  request.mutable_scheduling()->set_bypass_prefix_cache(true);
  const Traced streamed = Streamed(request);
  grpc::ClientContext context;
  v1::GenerateOnceResponse response;

  const grpc::Status status = server_.inference().GenerateOnce(&context, request, &response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.routing_size(), 1);
  EXPECT_EQ(response.routing(0).SerializeAsString(), streamed.traces[0].SerializeAsString());
}

TEST_P(RoutingOverGrpc, OfSeveralCompletionsSaysWhoseItIs) {
  v1::GenerateRequest request = Request();
  request.set_n(2);
  request.set_best_of(3);
  request.mutable_sampling()->set_temperature(1.5);
  request.mutable_sampling()->set_seed(11);
  grpc::ClientContext context;
  v1::GenerateOnceResponse response;

  const grpc::Status status = server_.inference().GenerateOnce(&context, request, &response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  std::vector<int> traced_tokens(2, 0);
  for (const v1::RoutingTrace& trace : response.routing()) {
    ASSERT_LT(trace.completion(), 2);
    EXPECT_EQ(trace.first_position(), traced_tokens[static_cast<size_t>(trace.completion())]);
    traced_tokens[static_cast<size_t>(trace.completion())] += trace.tokens();
    if (!trace.cached()) {
      const auto& ids = trace.completion() == 0 ? response.token_ids()
                                                : response.further_completions(0).token_ids();
      const Traced own{.traces = {}, .token_ids = {ids.begin(), ids.end()}};
      ExpectRouting(trace, Reference(request, own));
    }
  }
  EXPECT_THAT(traced_tokens, ::testing::Each(kPromptTokens + kMaxTokens - 1));
}

TEST_P(RoutingOverGrpc, IsNotToldUnlessAskedFor) {
  v1::GenerateRequest request = Request();
  request.mutable_output()->set_routing(false);

  EXPECT_EQ(Streamed(request).traces.size(), 0);
}

std::vector<std::string> TinyModelNames() {
  std::vector<std::string> names = ModelNames();
  std::erase_if(names, [](const std::string& name) {
    return name.find("tiny") == std::string::npos;
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, RoutingOverGrpc, ::testing::ValuesIn(TinyModelNames()));

}  // namespace
}  // namespace switchyard
