#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "tests/kernels/op_test.h"
#include "tests/kernels/test_attention.h"
#include "tests/kernels/test_routing.h"

// The order rule of kernels/ops.h: a row has the same bits alone, among seven, among 129, and with
// any number of threads.

namespace switchyard {
namespace {

constexpr int64_t kTokens = 129;
constexpr int64_t kNormDim = 163;
constexpr int64_t kHiddenDim = 53;
constexpr int64_t kExpertIn = 131;
constexpr int64_t kExpertOut = 43;
constexpr int64_t kVocabulary = 307;
using Rows = std::vector<std::vector<float>>;
using Tokens = std::vector<int64_t>;

// Runs a verb on a fresh backend for these of the 129 tokens and gives one output for each.
using RowRunner = std::function<Rows(Ops&, const Tokens&)>;

Tokens AllTokens() {
  Tokens tokens(kTokens);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<float> Gather(const std::vector<float>& all, const Tokens& tokens) {
  const auto width = static_cast<std::ptrdiff_t>(all.size()) / kTokens;
  std::vector<float> gathered;
  for (const int64_t token : tokens) {
    gathered.insert(gathered.end(), all.begin() + token * width, all.begin() + (token + 1) * width);
  }
  return gathered;
}

Rows Split(const std::vector<float>& flat, size_t rows) {
  const auto width = static_cast<std::ptrdiff_t>(flat.size() / rows);
  Rows split;
  for (auto begin = flat.begin(); begin != flat.end(); begin += width) {
    split.emplace_back(begin, begin + width);
  }
  return split;
}

void ExpectSameRows(const Rows& actual, const Rows& baseline, const Tokens& tokens) {
  ASSERT_EQ(actual.size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "token " << tokens[i] << " among " << tokens.size());
    ExpectIdentical(actual[i], baseline[static_cast<size_t>(tokens[i])]);
  }
}

class OrderRuleTest : public testing::TestWithParam<std::string> {
 protected:
  void ExpectOrderRule(const RowRunner& run) {
    const std::vector<Tokens> companies = {
        AllTokens(),
        {128, 3, 0, 64, 7, 31, 100},
        {0},
        {5},
        {64},
        {127},
        {128},
    };
    const Rows baseline = run(*MakeTestOps(GetParam(), 1), AllTokens());
    // The reference has one thread whatever it is given.
    const bool threaded = GetParam() != "reference";
    for (const int threads : threaded ? std::vector<int>{1, 2, 3} : std::vector<int>{1}) {
      SCOPED_TRACE(testing::Message() << threads << " threads");
      for (const Tokens& tokens : companies) {
        ExpectSameRows(run(*MakeTestOps(GetParam(), threads), tokens), baseline, tokens);
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(
    Backends, OrderRuleTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(OrderRuleTest, HoldsForEmbed) {
  const std::vector<int32_t> ids = RandomInts(kTokens, 50, 1);

  ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
    OpsMemory memory(ops);
    const Weight table = memory.AddWeight(
        {.role = WeightRole::kEmbedding,
         .dtype = DType::kBF16,
         .shape = {50, 37},
         .values = RandomFloats(int64_t{50} * 37, 2)}
    );
    std::vector<int32_t> chosen;
    for (const int64_t token : tokens) {
      chosen.push_back(ids[static_cast<size_t>(token)]);
    }
    const auto rows = static_cast<int64_t>(tokens.size());
    const TensorView out = memory.Zeros(DType::kF32, {rows, 37});
    ops.Embed(table, memory.Ints({rows}, chosen), 1.7F, out);
    return Split(memory.ReadFloats(out), tokens.size());
  });
}

TEST_P(OrderRuleTest, HoldsForNormalize) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
      OpsMemory memory(ops);
      const NormalizeArgs args = {
          .kind = kind, .weight = memory.AddVector(RandomFloats(kNormDim, 1)), .epsilon = 1e-5F};
      const auto rows = static_cast<int64_t>(tokens.size());
      const TensorView out = memory.Zeros(DType::kF32, {rows, kNormDim});
      const std::vector<float> input = Gather(RandomFloats(kTokens * kNormDim, 2), tokens);
      ops.Normalize(args, memory.Floats({rows, kNormDim}, input), out);
      return Split(memory.ReadFloats(out), tokens.size());
    });
  }
}

RowRunner MatMulRunner(const WeightForm& form, int64_t in_features, int64_t out_features) {
  const bool out_first = form.layout == WeightLayout::kOutIn;
  const TestWeight weight = {
      .layout = form.layout,
      .dtype = form.dtype,
      .shape = {out_first ? out_features : in_features, out_first ? in_features : out_features},
      .values = RandomFloats(in_features * out_features, 1),
  };
  const std::vector<float> all = RandomFloats(kTokens * in_features, 2);
  return [=](Ops& ops, const Tokens& tokens) {
    OpsMemory memory(ops);
    const MatMulArgs args = {
        .weight = memory.AddWeight(weight),
        .bias = memory.AddVector(RandomFloats(out_features, 3))};
    const auto rows = static_cast<int64_t>(tokens.size());
    const TensorView out = memory.Zeros(DType::kF32, {rows, out_features});
    ops.MatMul(args, memory.Floats({rows, in_features}, Gather(all, tokens)), out);
    return Split(memory.ReadFloats(out), tokens.size());
  };
}

TEST_P(OrderRuleTest, HoldsForMatMul) {
  for (const WeightForm& form : WeightForms()) {
    SCOPED_TRACE(NameOf(form.dtype));
    ExpectOrderRule(MatMulRunner(form, 131, 67));
  }
}

TEST_P(OrderRuleTest, HoldsForMatMulWithLongSums) {
  ExpectOrderRule(MatMulRunner({DType::kBF16, WeightLayout::kOutIn}, 1543, 67));
  ExpectOrderRule(MatMulRunner({DType::kF32, WeightLayout::kInOut}, 1543, 67));
}

TEST_P(OrderRuleTest, HoldsForMatMulWithManyOutputs) {
  ExpectOrderRule(MatMulRunner({DType::kBF16, WeightLayout::kOutIn}, 67, 1543));
  ExpectOrderRule(MatMulRunner({DType::kF16, WeightLayout::kInOut}, 67, 1543));
}

TEST_P(OrderRuleTest, HoldsForSelectExperts) {
  for (const GateKind gate :
       {GateKind::kSoftmaxAll, GateKind::kSoftmaxSelected, GateKind::kSigmoid}) {
    ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
      OpsMemory memory(ops);
      const auto rows = static_cast<int64_t>(tokens.size());
      const Routing routing = {
          .expert_ids = memory.Zeros(DType::kI32, {rows, 2, 3}),
          .gates = memory.Zeros(DType::kF32, {rows, 2, 3}),
          .experts = 11,
          .margins = memory.Zeros(DType::kF32, {rows, 2}),
      };
      const std::vector<float> scores = Gather(RandomFloats(kTokens * 22, 1), tokens);
      ops.SelectExperts(gate, memory.Floats({rows, 2, 11}, scores), routing);
      std::vector<float> chosen;
      for (const int32_t id : memory.ReadInts(routing.expert_ids)) {
        chosen.push_back(static_cast<float>(id));
      }
      Rows split = Split(memory.ReadFloats(routing.gates), tokens.size());
      const Rows ids = Split(chosen, tokens.size());
      const Rows margins = Split(memory.ReadFloats(routing.margins), tokens.size());
      for (size_t i = 0; i < split.size(); ++i) {
        split[i].insert(split[i].end(), ids[i].begin(), ids[i].end());
        split[i].insert(split[i].end(), margins[i].begin(), margins[i].end());
      }
      return split;
    });
  }
}

struct RowKinds {
  RowOf input = RowOf::kToken;
  RowOf output = RowOf::kAssignment;
};

int64_t RowsOfAToken(RowOf row_of, const TestRouting& routing) {
  switch (row_of) {
    case RowOf::kToken:
      return 1;
    case RowOf::kGroup:
      return routing.groups;
    case RowOf::kAssignment:
      return routing.groups * routing.top_k;
  }
  return 0;
}

RowRunner ExpertRunner(const RowKinds& kinds, const WeightForm& form) {
  const TestRouting routing = RandomRouting(kTokens, 2, 2, 5);
  const bool out_first = form.layout == WeightLayout::kOutIn;
  const TestWeight weight = {
      .role = WeightRole::kExpertStack,
      .layout = form.layout,
      .dtype = form.dtype,
      .shape = {10, out_first ? kExpertOut : kExpertIn, out_first ? kExpertIn : kExpertOut},
      .values = RandomFloats(10 * kExpertIn * kExpertOut, 1),
  };
  const int64_t input_rows = RowsOfAToken(kinds.input, routing);
  const std::vector<float> all = RandomFloats(kTokens * input_rows * kExpertIn, 2);
  return [=](Ops& ops, const Tokens& tokens) {
    OpsMemory memory(ops);
    const auto count = static_cast<int64_t>(tokens.size());
    const ExpertMatMulArgs args = {
        .weight = memory.AddWeight(weight),
        .bias = memory.AddVector(RandomFloats(kExpertOut, 3)),
        .grouped = Grouped(ops, memory, RowsOf(routing, tokens)),
        .input = memory.Floats({count * input_rows, kExpertIn}, Gather(all, tokens)),
        .input_rows = kinds.input,
        .output_rows = kinds.output,
        .gated = true,
    };
    const TensorView out =
        memory.Zeros(DType::kF32, {count * RowsOfAToken(kinds.output, routing), kExpertOut});
    ops.ExpertMatMul(args, out);
    return Split(memory.ReadFloats(out), tokens.size());
  };
}

TEST_P(OrderRuleTest, HoldsForExpertMatMulWithEveryKindOfRows) {
  const WeightForm form = {DType::kBF16, WeightLayout::kInOut};
  for (const RowKinds& kinds :
       {RowKinds{RowOf::kToken, RowOf::kAssignment},
        RowKinds{RowOf::kAssignment, RowOf::kToken},
        RowKinds{RowOf::kToken, RowOf::kGroup},
        RowKinds{RowOf::kGroup, RowOf::kToken}}) {
    ExpectOrderRule(ExpertRunner(kinds, form));
  }
}

TEST_P(OrderRuleTest, HoldsForExpertMatMulWithEveryFormOfWeight) {
  for (const WeightForm& form : WeightForms()) {
    SCOPED_TRACE(NameOf(form.dtype));
    ExpectOrderRule(ExpertRunner({RowOf::kToken, RowOf::kToken}, form));
  }
}

TEST_P(OrderRuleTest, HoldsForRope) {
  const std::vector<int32_t> positions = RandomInts(kTokens, 3000, 1);

  ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
    OpsMemory memory(ops);
    const auto rows = static_cast<int64_t>(tokens.size());
    std::vector<int32_t> chosen;
    for (const int64_t token : tokens) {
      chosen.push_back(positions[static_cast<size_t>(token)]);
    }
    const TensorView x =
        memory.Floats({rows, 3, 23}, Gather(RandomFloats(kTokens * 69, 2), tokens));
    ops.Rope({.positions = memory.Ints({rows}, chosen), .rotary_dims = 22}, x);
    return Split(memory.ReadFloats(x), tokens.size());
  });
}

// Token t is the last of a sequence of t + 1 tokens, decoded beside the sequences of the other
// tokens.
TEST_P(OrderRuleTest, HoldsForPagedAttention) {
  for (const Weighting weighting :
       {Weighting::kSoftmax, Weighting::kTransformerXl, Weighting::kStickBreaking}) {
    ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
      const AttentionShape shape = {
          .query_groups = 2,
          .kv_heads = 2,
          .key_dim = 19,
          .value_dim = 13,
          .block_tokens = 16,
          .scale = 0.25F,
          .weighting = weighting,
      };
      std::vector<TestSequence> sequences;
      for (const int64_t token : tokens) {
        sequences.push_back({.id = static_cast<uint64_t>(token), .kv_length = token + 1});
      }
      return Attend(ops, shape, sequences);
    });
  }
}

TEST_P(OrderRuleTest, HoldsForActivateAndAdd) {
  ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
    OpsMemory memory(ops);
    const auto rows = static_cast<int64_t>(tokens.size());
    const TensorView out = memory.Zeros(DType::kF32, {rows, kHiddenDim});
    const std::vector<float> input = Gather(RandomFloats(kTokens * 2 * kHiddenDim, 1), tokens);
    ops.Activate({.gated = true}, memory.Floats({rows, 2 * kHiddenDim}, input), out);
    ops.Add(
        out,
        memory.Floats({rows, kHiddenDim}, Gather(RandomFloats(kTokens * kHiddenDim, 2), tokens))
    );
    return Split(memory.ReadFloats(out), tokens.size());
  });
}

TEST_P(OrderRuleTest, HoldsForSelectTokens) {
  ExpectOrderRule([&](Ops& ops, const Tokens& tokens) {
    OpsMemory memory(ops);
    std::vector<SelectTokensRow> rows;
    for (const int64_t token : tokens) {
      rows.push_back(
          {.temperature = 0.9F,
           .top_k = static_cast<int32_t>(token % 50),
           .top_p = 0.95F,
           .seed = 3,
           .position = static_cast<uint64_t>(token)}
      );
    }
    const auto count = static_cast<int64_t>(tokens.size());
    const std::vector<float> logits = Gather(RandomFloats(kTokens * kVocabulary, 1), tokens);
    std::vector<int32_t> ids(tokens.size());
    std::vector<float> logprobs(tokens.size());
    ops.SelectTokens(
        {.logits = memory.Floats({count, kVocabulary}, logits), .rows = rows.data()},
        {.ids = ids.data(), .logprobs = logprobs.data()}
    );
    Rows chosen;
    for (size_t i = 0; i < tokens.size(); ++i) {
      chosen.push_back({static_cast<float>(ids[i]), logprobs[i]});
    }
    return chosen;
  });
}

}  // namespace
}  // namespace switchyard
