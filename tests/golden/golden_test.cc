#include "tests/golden/golden_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "program/offline_runner.h"
#include "tests/support/test_devices.h"

namespace switchyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::UnorderedElementsAreArray;

constexpr double kLogitTolerance = 2e-4;
constexpr double kGateTolerance = 2e-5;

constexpr const char* kModels[] = {
    "jetmoe",
    "jetmoe_bf16_sharded",
    "moa_lm",
    "moa_lm_my",
    "moduleformer",
    "moduleformer_gates",
    "moeut",
    "moeut_att1",
    "moeut_train",
    "moeut_train_postln",
    "moeut_train_preln",
    "molm_identity_kv",
    "switchall_options",
    "switchall_rope",
    "switchall_xl",
    "switchhead_rope",
    "switchhead_xl",
    "switchhead_xl_qkvo",
};

// How a prompt is cut into chunks: all at once (no cached token is read), one by one, or in odd
// pieces.
struct Chunking {
  const char* name;
  std::vector<int64_t> repeated;  // sizes, over and over; empty: all at once
};

std::vector<int64_t> ChunksOf(const Chunking& chunking, int64_t tokens) {
  std::vector<int64_t> chunks;
  for (size_t next = 0; tokens > 0; ++next) {
    const int64_t size =
        chunking.repeated.empty() ? tokens : chunking.repeated[next % chunking.repeated.size()];
    chunks.push_back(std::min(size, tokens));
    tokens -= chunks.back();
  }
  return chunks;
}

double LargestDifference(const std::vector<float>& left, const std::vector<float>& right) {
  EXPECT_EQ(left.size(), right.size());
  double largest = left.size() == right.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const double difference = std::abs(double{left[i]} - double{right[i]});
    largest = difference <= largest ? largest : difference;  // a NaN becomes the largest
  }
  return largest;
}

class Golden : public testing::TestWithParam<std::tuple<const char*, std::string, Chunking>> {
 protected:
  Golden() : set_(std::get<0>(GetParam()), std::get<1>(GetParam())) {}

  ForwardTrace Run(int prompt) {
    const std::vector<int32_t> tokens = set_.Tokens(prompt);
    StatusOr<ForwardTrace> trace = RunForward(
        set_.model(), tokens, ChunksOf(std::get<2>(GetParam()), static_cast<int64_t>(tokens.size()))
    );
    EXPECT_TRUE(trace.ok()) << MessageOf(trace.status());
    return trace.ok() ? *std::move(trace) : ForwardTrace();
  }

  GoldenSet set_;
};

TEST_P(Golden, LogitsEqualTheReference) {
  for (int prompt = 0; prompt < GoldenSet::kPrompts; ++prompt) {
    const ForwardTrace trace = Run(prompt);

    EXPECT_LE(LargestDifference(trace.logits, set_.Floats(prompt, "logits")), kLogitTolerance);
  }
}

TEST_P(Golden, HiddenStatesEqualTheReferenceAfterEveryLayer) {
  for (int prompt = 0; prompt < GoldenSet::kPrompts; ++prompt) {
    const ForwardTrace trace = Run(prompt);

    EXPECT_LE(LargestDifference(trace.embedding, set_.Floats(prompt, "embed")), kLogitTolerance);
    ASSERT_EQ(static_cast<int64_t>(trace.hidden.size()), set_.model().config().layers);
    for (size_t layer = 0; layer < trace.hidden.size(); ++layer) {
      EXPECT_LE(
          LargestDifference(trace.hidden[layer], set_.Floats(prompt, Concat("hidden.", layer))),
          kLogitTolerance
      );
    }
  }
}

TEST_P(Golden, RoutingEqualsTheReferenceExactly) {
  for (int prompt = 0; prompt < GoldenSet::kPrompts; ++prompt) {
    const ForwardTrace trace = Run(prompt);

    std::vector<std::string> routers;
    for (const auto& [name, routing] : trace.routing) {
      routers.push_back(name);
      EXPECT_THAT(routing.ids, ElementsAreArray(set_.Int32s(prompt, name + ".ids"))) << name;
      EXPECT_LE(
          LargestDifference(routing.weights, set_.Floats(prompt, name + ".weights")), kGateTolerance
      ) << name;
    }
    EXPECT_THAT(routers, UnorderedElementsAreArray(set_.Routers(prompt)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sets,
    Golden,
    testing::Combine(
        testing::ValuesIn(kModels),
        testing::ValuesIn(BackendNames()),
        testing::Values(
            Chunking{"AllAtOnce", {}}, Chunking{"OneByOne", {1}}, Chunking{"OddChunks", {3, 1, 5}}
        )
    ),
    [](const testing::TestParamInfo<Golden::ParamType>& test) {
      return Concat(
          std::get<0>(test.param), "_", std::get<1>(test.param), "_", std::get<2>(test.param).name
      );
    }
);

class GoldenGreedy : public testing::TestWithParam<std::tuple<const char*, std::string>> {};

TEST_P(GoldenGreedy, ContinuationEqualsTheReferenceExactly) {
  const GoldenSet set(std::get<0>(GetParam()), std::get<1>(GetParam()));
  for (int prompt = 0; prompt < GoldenSet::kPrompts; ++prompt) {
    const std::vector<int32_t> expected = set.Greedy(prompt);

    const StatusOr<std::vector<int32_t>> greedy =
        GreedyContinuation(set.model(), set.Tokens(prompt), static_cast<int64_t>(expected.size()));

    ASSERT_TRUE(greedy.ok()) << MessageOf(greedy.status());
    EXPECT_THAT(*greedy, ElementsAreArray(expected));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sets,
    GoldenGreedy,
    testing::Combine(testing::ValuesIn(kModels), testing::ValuesIn(BackendNames())),
    [](const testing::TestParamInfo<GoldenGreedy::ParamType>& test) {
      return Concat(std::get<0>(test.param), "_", std::get<1>(test.param));
    }
);

}  // namespace
}  // namespace switchyard
