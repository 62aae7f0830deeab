#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"
#include "tests/kernels/test_attention.h"

namespace switchyard {
namespace {

using testing::ElementsAre;

constexpr float kLog3 = 1.0986123F;

// One sequence, one head of one channel, blocks of two tokens in the order 1, 0, 2.
struct Keys {
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> queries;  // of the last tokens
};

class PagedAttentionTest : public OpTest {
 protected:
  // The six slots of three blocks from up to six positions.
  std::vector<float> Scattered(const std::vector<float>& by_position) {
    std::vector<float> slots(6, kNan);
    const std::vector<size_t> slot_of = {2, 3, 0, 1, 4, 5};
    for (size_t position = 0; position < by_position.size(); ++position) {
      slots[slot_of[position]] = by_position[position];
    }
    return slots;
  }

  PagedAttentionArgs Arguments(const Keys& keys, Weighting weighting = Weighting::kSoftmax) {
    const auto tokens = static_cast<int64_t>(keys.queries.size());
    return {
        .query = memory_.Floats({tokens, 1, 1, 1}, keys.queries),
        .key_cache = memory_.Floats({3, 2, 1, 1}, Scattered(keys.keys)),
        .value_cache = memory_.Floats({3, 2, 1, 1}, Scattered(keys.values)),
        .block_tables = memory_.Ints({1, 3}, {1, 0, 2}),
        .query_offsets = memory_.Ints({2}, {0, static_cast<int32_t>(tokens)}),
        .kv_lengths = memory_.Ints({1}, {static_cast<int32_t>(keys.keys.size())}),
        .scale = 1,
        .weighting = weighting,
    };
  }

  std::vector<float> Run(const PagedAttentionArgs& args) {
    const TensorView out = memory_.Zeros(DType::kF32, {args.query.dim(0), 1, 1, 1});
    ops_->PagedAttention(args, out);
    return memory_.ReadFloats(out);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Backends, PagedAttentionTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(PagedAttentionTest, WeighsValuesByTheSoftmaxOfTheLogits) {
  // Weights 1/4 and 3/4.
  const Keys keys = {.keys = {0, kLog3}, .values = {4, 8}, .queries = {1}};

  ExpectClose(Run(Arguments(keys)), {7}, 1e-6F);
}

TEST_P(PagedAttentionTest, ScalesTheLogits) {
  const Keys keys = {.keys = {0, 2 * kLog3}, .values = {4, 8}, .queries = {1}};
  PagedAttentionArgs args = Arguments(keys);
  args.scale = 0.5F;

  ExpectClose(Run(args), {7}, 1e-6F);
}

TEST_P(PagedAttentionTest, LetsATokenSeeOnlyWhatIsNotAfterIt) {
  const Keys keys = {.keys = {0, kLog3, 50}, .values = {4, 8, 1000}, .queries = {1, 1, 1}};

  ExpectClose(Run(Arguments(keys)), {4, 7, 1000}, 1e-5F);
}

TEST_P(PagedAttentionTest, FollowsTheBlockTable) {
  const Keys keys = {.keys = {0, 0, 0, 0, 0}, .values = {1, 2, 3, 4, 40}, .queries = {1, 1}};

  ExpectClose(Run(Arguments(keys)), {2.5F, 10}, 1e-6F);
}

TEST_P(PagedAttentionTest, GivesTheOnlyKeyTheWholeWeight) {
  const Keys keys = {.keys = {-30}, .values = {5}, .queries = {3}};

  EXPECT_THAT(Run(Arguments(keys)), ElementsAre(5));
}

TEST_P(PagedAttentionTest, DoesNotOverflowOnLargeLogits) {
  const Keys keys = {.keys = {1000, 1000, -1000}, .values = {2, 4, 99}, .queries = {1}};

  ExpectClose(Run(Arguments(keys)), {3}, 1e-6F);
}

TEST_P(PagedAttentionTest, TilesTheQueryGroupsOverTheKvHeads) {
  // Two groups over two heads; each head has one key, so its value comes through whatever the query
  // is.
  const PagedAttentionArgs args = {
      .query = memory_.Zeros(DType::kF32, {1, 2, 2, 1}),
      .key_cache = memory_.Zeros(DType::kF32, {1, 1, 2, 1}),
      .value_cache = memory_.Floats({1, 1, 2, 2}, {1, 2, 3, 4}),
      .block_tables = memory_.Ints({1, 1}, {0}),
      .query_offsets = memory_.Ints({2}, {0, 1}),
      .kv_lengths = memory_.Ints({1}, {1}),
      .scale = 1,
  };
  const TensorView out = memory_.Zeros(DType::kF32, {1, 2, 2, 2});

  ops_->PagedAttention(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
}

TEST_P(PagedAttentionTest, KeepsSequencesApartAndSkipsOneWithoutTokens) {
  const PagedAttentionArgs args = {
      .query = memory_.Floats({2, 1, 1, 1}, {1, 1}),
      .key_cache = memory_.Zeros(DType::kF32, {3, 1, 1, 1}),
      .value_cache = memory_.Floats({3, 1, 1, 1}, {1, 10, 100}),
      .block_tables = memory_.Ints({3, 2}, {2, -1, -1, -1, 1, 0}),
      .query_offsets = memory_.Ints({4}, {0, 1, 1, 2}),
      .kv_lengths = memory_.Ints({3}, {1, 0, 2}),
      .scale = 1,
  };

  ExpectClose(Run(args), {100, 5.5F}, 1e-6F);
}

TEST_P(PagedAttentionTest, AddsTheKeyOfTheDistanceInTransformerXl) {
  // Keys of zero; one token back counts three times as much as the token itself.
  const Keys keys = {.keys = {0, 0}, .values = {4, 8}, .queries = {1, 1}};
  PagedAttentionArgs args = Arguments(keys, Weighting::kTransformerXl);
  args.distance_keys = memory_.Floats({2, 1, 1}, {0, kLog3});

  ExpectClose(Run(args), {4, 5}, 1e-6F);
}

TEST_P(PagedAttentionTest, ScalesTheDistanceTermToo) {
  const Keys keys = {.keys = {0, kLog3}, .values = {4, 8}, .queries = {2}};
  PagedAttentionArgs args = Arguments(keys, Weighting::kTransformerXl);
  args.distance_keys = memory_.Floats({2, 1, 1}, {0, 2 * kLog3});
  args.scale = 0.5F;

  // Logits 2 log 3 for the older key and log 3 for the newer: weights 3/4 and 1/4.
  ExpectClose(Run(args), {5}, 1e-6F);
}

TEST_P(PagedAttentionTest, BreaksTheStickFromTheNewestKey) {
  // Sigmoids 1/4 (oldest), 1/2 and 3/4 (newest): weights 1/4 * 1/2 * 1/4, 1/2 * 1/4 and 3/4.
  const Keys keys = {.keys = {-kLog3, 0, kLog3}, .values = {320, 80, 4}, .queries = {1}};

  ExpectClose(Run(Arguments(keys, Weighting::kStickBreaking)), {10 + 10 + 3}, 1e-5F);
}

TEST_P(PagedAttentionTest, LeavesTheRestOfTheStickUnused) {
  const Keys keys = {.keys = {0}, .values = {8}, .queries = {1}};

  ExpectClose(Run(Arguments(keys, Weighting::kStickBreaking)), {4}, 1e-6F);
}

TEST_P(PagedAttentionTest, BreaksTheStickWithoutOverflow) {
  const Keys keys = {.keys = {0, 500, -500, -500}, .values = {99, 3, 50, 60}, .queries = {1}};

  ExpectClose(Run(Arguments(keys, Weighting::kStickBreaking)), {3}, 1e-6F);
}

TEST_P(PagedAttentionTest, KeepsThePrecisionOfALongStick) {
  // Logits of -6 everywhere: sigmoid s, so the weights sum to 1 - (1 - s)^1000.
  const PagedAttentionArgs args = {
      .query = memory_.Floats({1, 1, 1, 1}, {1}),
      .key_cache = memory_.Floats({1, 1000, 1, 1}, std::vector<float>(1000, -6)),
      .value_cache = memory_.Floats({1, 1000, 1, 1}, std::vector<float>(1000, 1)),
      .block_tables = memory_.Ints({1, 1}, {0}),
      .query_offsets = memory_.Ints({2}, {0, 1}),
      .kv_lengths = memory_.Ints({1}, {1000}),
      .scale = 1,
      .weighting = Weighting::kStickBreaking,
  };

  const double sigmoid = 1 / (1 + std::exp(6.0));
  ExpectClose(Run(args), {static_cast<float>(1 - std::pow(1 - sigmoid, 1000))}, 2e-6F);
}

TEST_P(PagedAttentionTest, GivesTheSameBitsForPrefillChunksAndDecode) {
  for (const Weighting weighting :
       {Weighting::kSoftmax, Weighting::kTransformerXl, Weighting::kStickBreaking}) {
    const AttentionShape shape = {
        .query_groups = 2,
        .kv_heads = 3,
        .key_dim = 40,
        .value_dim = 24,
        .block_tokens = 16,
        .scale = 0.3F,
        .weighting = weighting,
    };
    const auto whole = Attend(*ops_, shape, {{.id = 5, .query_tokens = 67, .kv_length = 67}});

    const auto chunk = Attend(*ops_, shape, {{.id = 5, .query_tokens = 7, .kv_length = 50}});
    const auto decode = Attend(*ops_, shape, {{.id = 5, .query_tokens = 1, .kv_length = 67}});

    for (size_t i = 0; i < 7; ++i) {
      ExpectIdentical(chunk[i], whole[43 + i]);
    }
    ExpectIdentical(decode[0], whole[66]);
  }
}

using PagedAttentionDeathTest = PagedAttentionTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, PagedAttentionDeathTest, testing::ValuesIn(HostBackendNames()), BackendTestName
);

TEST_P(PagedAttentionDeathTest, RefusesMoreTokensThanTheTableHolds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  PagedAttentionArgs args = Arguments({.keys = {0, 0}, .values = {1, 2}, .queries = {1}});
  args.kv_lengths = memory_.Ints({1}, {7});

  EXPECT_DEATH(Run(args), "kv length 7");
}

class PagedAttentionAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends,
    PagedAttentionAgainstReferenceTest,
    testing::ValuesIn(FastBackendNames()),
    BackendTestName
);

TEST_P(PagedAttentionAgainstReferenceTest, AgreesForMixedStepsOfOddSizes) {
  const std::vector<TestSequence> sequences = {
      {.id = 1, .query_tokens = 1, .kv_length = 1},
      {.id = 2, .query_tokens = 1, .kv_length = 129},
      {.id = 3, .query_tokens = 7, .kv_length = 7},
      {.id = 4, .query_tokens = 33, .kv_length = 70},
      {.id = 5, .query_tokens = 0, .kv_length = 9},
      {.id = 6, .query_tokens = 129, .kv_length = 129},
  };
  for (const Weighting weighting :
       {Weighting::kSoftmax, Weighting::kTransformerXl, Weighting::kStickBreaking}) {
    for (const int64_t key_dim : OddDims()) {
      const AttentionShape shape = {
          .query_groups = 1 + key_dim % 3,
          .kv_heads = 2,
          .key_dim = key_dim,
          .value_dim = key_dim == 40 ? 17 : key_dim,
          .block_tokens = key_dim == 16 ? 5 : 16,
          .scale = 0.7F,
          .weighting = weighting,
      };
      const auto expected = Attend(*reference_, shape, sequences);

      const auto actual = Attend(*ops_, shape, sequences);

      ASSERT_EQ(actual.size(), expected.size());
      for (size_t token = 0; token < actual.size(); ++token) {
        SCOPED_TRACE(
            testing::Message() << static_cast<int>(weighting) << " " << key_dim << " " << token
        );
        ExpectClose(actual[token], expected[token]);
      }
    }
  }
}

}  // namespace
}  // namespace switchyard
