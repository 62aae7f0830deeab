#include "program/route_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "kernels/backend.h"
#include "program/offline_runner.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

// 200 tokens: two sequences of the context of 96, and a rest.
std::vector<int32_t> SomeTokens() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 200; ++i) {
    tokens.push_back(3 + (i * i + i / 7) % 19);
  }
  return tokens;
}

class RouteTextOf : public ::testing::TestWithParam<TinyFamily> {};

// Against the traces of `logits`, sequence by sequence.
TEST_P(RouteTextOf, CountsWhatATraceShows) {
  const std::unique_ptr<Ops> ops = *MakeOps(BackendOptions{.device = "reference"});
  const auto model = LoadTinyModel(GetParam(), {}, *ops);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<int32_t> tokens = SomeTokens();
  int64_t routed = 0;

  const StatusOr<TextRouting> text =
      RouteText(**model, tokens, /*bos_id=*/1, [&routed](int64_t so_far) { routed = so_far; });

  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(routed, 200);
  EXPECT_EQ(text->tokens, 200);
  EXPECT_EQ(std::accumulate(text->occurrences.begin(), text->occurrences.end(), int64_t{0}), 200);
  std::map<std::string, std::map<std::pair<int32_t, int64_t>, int64_t>> expected;
  for (size_t begin = 0; begin < tokens.size(); begin += 95) {
    std::vector<int32_t> window = {1};
    const size_t end = std::min(begin + 95, tokens.size());
    window.insert(window.end(), tokens.begin() + begin, tokens.begin() + end);
    const std::vector<int64_t> chunks = {static_cast<int64_t>(window.size())};
    const StatusOr<ForwardTrace> trace = RunForward(**model, window, chunks);
    ASSERT_TRUE(trace.ok()) << trace.status();
    for (const auto& [name, routing] : trace->routing) {
      const auto width = static_cast<size_t>(routing.groups * routing.top_k);
      for (size_t i = width; i < routing.ids.size(); ++i) {  // behind the first token
        const auto head = static_cast<int64_t>(i % width) / routing.top_k;
        ++expected[name][{window[i / width], head * 4 + routing.ids[i]}];
      }
    }
  }
  ASSERT_EQ(text->routers.size(), expected.size());
  for (const RouterCounts& router : text->routers) {
    const auto& counts = expected[RouterName(router.layer, router.kind)];
    ASSERT_EQ(router.experts, 4);
    const auto columns = static_cast<size_t>(router.heads * router.experts);
    for (size_t cell = 0; cell < router.assignments.size(); ++cell) {
      const auto found =
          counts.find({text->token_ids[cell / columns], static_cast<int64_t>(cell % columns)});
      ASSERT_EQ(router.assignments[cell], found == counts.end() ? 0 : found->second);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, RouteTextOf, ::testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead)
);

TEST(RouteText, RefusesNothing) {
  const std::unique_ptr<Ops> ops = *MakeOps(BackendOptions{.device = "reference"});
  const auto model = LoadTinyModel(TinyFamily::kJetMoe, {}, *ops);
  ASSERT_TRUE(model.ok()) << model.status();

  const Status status = RouteText(**model, {}, std::nullopt, [](int64_t) {}).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace switchyard
