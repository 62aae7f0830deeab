#include "program/offline_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/backend.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

const std::vector<int32_t> kTokens = {1, 17, 42, 42, 5, 60, 8, 33, 0, 21, 9};

// A tiny model on the reference backend: 61 token ids, width 24, 2 layers, 2 heads, context 96.
class OfflineRunner : public ::testing::TestWithParam<TinyFamily> {
 protected:
  void SetUp() override {
    ops_ = *MakeOps(BackendOptions{.device = "reference"});
    StatusOr<std::unique_ptr<Model>> model = LoadTinyModel(GetParam(), {}, *ops_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  ForwardTrace Run(const std::vector<int64_t>& chunks) {
    StatusOr<ForwardTrace> trace = RunForward(*model_, kTokens, chunks);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return *std::move(trace);
  }

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
};

TEST_P(OfflineRunner, GivesTheSameBitsWhateverTheChunks) {
  const ForwardTrace whole = Run({11});
  const ForwardTrace chunked = Run({3, 1, 1, 4, 2});

  EXPECT_EQ(whole.logits, chunked.logits);
  EXPECT_EQ(whole.hidden, chunked.hidden);
  EXPECT_EQ(whole.embedding, chunked.embedding);
  for (const auto& [name, routing] : whole.routing) {
    EXPECT_EQ(routing.ids, chunked.routing.at(name).ids) << name;
    EXPECT_EQ(routing.weights, chunked.routing.at(name).weights) << name;
  }
}

TEST_P(OfflineRunner, TracesEveryLayerInItsShape) {
  const ForwardTrace trace = Run({11});

  EXPECT_EQ(trace.tokens, 11);
  EXPECT_EQ(trace.logits.size(), 11U * 61);
  EXPECT_EQ(trace.embedding.size(), 11U * 24);
  ASSERT_EQ(trace.hidden.size(), 2U);
  EXPECT_EQ(trace.hidden[1].size(), 11U * 24);
  for (const auto& [name, routing] : trace.routing) {
    EXPECT_EQ(routing.ids.size(), static_cast<size_t>(11 * routing.groups * routing.top_k)) << name;
    EXPECT_EQ(routing.weights.size(), routing.ids.size()) << name;
  }
}

TEST_P(OfflineRunner, ContinuesGreedilyAsRepeatedForwardsDo) {
  const StatusOr<std::vector<int32_t>> greedy = GreedyContinuation(*model_, kTokens, 5);
  ASSERT_TRUE(greedy.ok()) << greedy.status();

  std::vector<int32_t> tokens = kTokens;
  for (const int32_t token : *greedy) {
    const auto count = static_cast<int64_t>(tokens.size());
    const StatusOr<ForwardTrace> trace = RunForward(*model_, tokens, std::vector<int64_t>{count});
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto last_row = trace->logits.end() - 61;
    EXPECT_EQ(token, std::max_element(last_row, trace->logits.end()) - last_row);
    tokens.push_back(token);
  }
  EXPECT_EQ(greedy->size(), 5U);
}

TEST_P(OfflineRunner, StartsAfreshAfterReset) {
  const auto sequence = *OfflineSequence::Create(*model_, 11, 11);
  const auto first = *sequence->Feed(kTokens, LogitRows::kLast, nullptr);
  const std::vector<float> logits(first.begin(), first.end());

  sequence->Reset();
  const auto again = *sequence->Feed(kTokens, LogitRows::kLast, nullptr);

  EXPECT_EQ(logits.size(), 61U);
  EXPECT_EQ(std::vector<float>(again.begin(), again.end()), logits);
  EXPECT_EQ(sequence->tokens(), 11);
}

TEST_P(OfflineRunner, RefusesTokensOutsideTheVocabulary) {
  const std::vector<int32_t> tokens = {1, 2, 61};

  const Status status = RunForward(*model_, tokens, std::vector<int64_t>{2, 1}).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("token 2 has id 61; this model's ids are 0 to 60"));
}

TEST_P(OfflineRunner, RefusesMoreThanTheContext) {
  const std::vector<int32_t> tokens(90, 1);

  const Status status = GreedyContinuation(*model_, tokens, 7).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("97 tokens; this model takes 1 to 96"));
}

TEST_P(OfflineRunner, RefusesChunksThatDoNotAddUp) {
  EXPECT_EQ(
      RunForward(*model_, kTokens, std::vector<int64_t>{5, 5}).status().code(),
      StatusCode::kInvalidArgument
  );
  EXPECT_EQ(
      RunForward(*model_, kTokens, std::vector<int64_t>{12, -1}).status().code(),
      StatusCode::kInvalidArgument
  );
  EXPECT_EQ(
      RunForward(*model_, kTokens, std::vector<int64_t>{}).status().code(),
      StatusCode::kInvalidArgument
  );
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    OfflineRunner,
    ::testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead),
    [](const auto& family) { return family.param == TinyFamily::kJetMoe ? "JetMoe" : "SwitchHead"; }
);

TEST(RouterNames, AreThoseOfTheReferenceOutputs) {
  EXPECT_EQ(RouterName(0, RouterKind::kAttention), "layer0.attn");
  EXPECT_EQ(RouterName(3, RouterKind::kAttentionValue), "layer3.attn_v");
  EXPECT_EQ(RouterName(11, RouterKind::kFeedForward), "layer11.ffn");
}

TEST(GreedyContinuations, ReportLogitsThatAreNotNumbers) {
  const std::unique_ptr<Ops> ops = *MakeOps(BackendOptions{.device = "reference"});
  TinyModelOptions options;
  options.nan_token = 7;
  const std::unique_ptr<Model> model = *LoadTinyModel(TinyFamily::kJetMoe, options, *ops);

  const Status status = GreedyContinuation(*model, std::vector<int32_t>{1, 7}, 1).status();

  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status), HasSubstr("is nan"));
}

}  // namespace
}  // namespace switchyard
