#include "program/specialisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "kernels/backend.h"
#include "program/offline_runner.h"
#include "program/specialisation_report.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Half of all 64 tokens came to the expert. This one came 7 times, always to it: with one more
// time, half of it to the expert, 7.5 of 8: log2(0.9375 / 0.5).
TEST(PointwiseMutualInformation, IsTheLogarithmOfASmoothedRatio) {
  EXPECT_NEAR(
      PointwiseMutualInformation({.both = 7, .token = 7, .expert = 32, .all = 64}), 0.9068906, 1e-7
  );
  // 1.25 of 5 is the expert's share.
  EXPECT_DOUBLE_EQ(PointwiseMutualInformation({.both = 1, .token = 4, .expert = 16, .all = 64}), 0);
  // 0.125 of 4 instead of 1 in 8: a quarter.
  EXPECT_DOUBLE_EQ(PointwiseMutualInformation({.both = 0, .token = 3, .expert = 8, .all = 64}), -2);
}

// Token 10 occurs 6 times, token 20 5 times, token 30 once. Expert 0 got 5, 1 and 1 of them.
TextRouting ThreeTokens() {
  TextRouting text{
      .tokens = 12, .token_ids = {10, 20, 30}, .occurrences = {6, 5, 1}, .routers = {}};
  text.routers.push_back(
      {.layer = 4,
       .kind = RouterKind::kAttention,
       .heads = 1,
       .experts = 3,
       .top_k = 1,
       .assignments = {5, 1, 0, 1, 4, 0, 1, 0, 0}}
  );
  return text;
}

// Expert 0 has 7 of 12 choices, expert 1 5, expert 2 none. Token 10: log2((5 + 7/12) / 7 / (7/12))
// = 0.4514; token 20 to expert 1: log2((4 + 5/12) / 6 / (5/12)) = 0.8210; token 30 to expert 0:
// log2((1 + 7/12) / 2 / (7/12)) = 0.4406.
TEST(SpecialitiesOf, RankTokensByInformation) {
  const TextRouting text = ThreeTokens();

  const std::vector<ExpertSpeciality> experts =
      SpecialitiesOf(text, text.routers[0], {.min_occurrences = 1});

  ASSERT_EQ(experts.size(), 3);
  EXPECT_EQ(experts[0].assignments, 7);
  EXPECT_DOUBLE_EQ(experts[0].share, 7.0 / 12);
  ASSERT_EQ(experts[0].tokens.size(), 2);
  EXPECT_EQ(experts[0].tokens[0].token_id, 10);
  EXPECT_EQ(experts[0].tokens[0].routed, 5);
  EXPECT_EQ(experts[0].tokens[0].occurrences, 6);
  EXPECT_NEAR(experts[0].tokens[0].information_bits, 0.4514, 1e-4);
  EXPECT_EQ(experts[0].tokens[1].token_id, 30);
  EXPECT_NEAR(experts[0].tokens[1].information_bits, 0.4406, 1e-4);
  // Token 10 comes to expert 1, too, but less often than chance.
  ASSERT_EQ(experts[1].tokens.size(), 1);
  EXPECT_EQ(experts[1].tokens[0].token_id, 20);
  EXPECT_NEAR(experts[1].tokens[0].information_bits, 0.8210, 1e-4);
  EXPECT_TRUE(experts[2].tokens.empty());
  EXPECT_EQ(experts[2].share, 0);
}

// Two of three experts for each token: token 10 came 6 of 6 times to expert 0, to which 8 of 9
// tokens came: log2((6 + 8/9) / 7 / (8/9)) = 0.1468. Shares are of choices, 18.
TEST(SpecialitiesOf, CountTokensNotChoices) {
  TextRouting text{.tokens = 9, .token_ids = {10, 20}, .occurrences = {6, 3}, .routers = {}};
  text.routers.push_back({.experts = 3, .top_k = 2, .assignments = {6, 4, 2, 2, 1, 3}});

  const auto experts = SpecialitiesOf(text, text.routers[0], {.min_occurrences = 1});

  EXPECT_DOUBLE_EQ(experts[0].share, 8.0 / 18);
  EXPECT_EQ(experts[0].tokens[0].occurrences, 6);
  EXPECT_NEAR(experts[0].tokens[0].information_bits, 0.1468, 1e-4);
}

TEST(SpecialitiesOf, LeaveOutRareTokensAndWhatIsOverTheNumber) {
  const TextRouting text = ThreeTokens();

  const auto frequent = SpecialitiesOf(text, text.routers[0], {.min_occurrences = 5});
  const auto one = SpecialitiesOf(text, text.routers[0], {.min_occurrences = 1, .most_tokens = 1});

  ASSERT_EQ(frequent[0].tokens.size(), 1);
  EXPECT_EQ(frequent[0].tokens[0].token_id, 10);
  EXPECT_EQ(one[0].tokens.size(), 1);
}

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

// Its pieces are what markup must not be mistaken for.
class Pieces final : public Tokenizer {
 public:
  StatusOr<std::vector<int32_t>> Encode(std::string_view, const EncodeOptions&) const override {
    return std::vector<int32_t>();
  }
  StatusOr<std::string> Decode(std::span<const int32_t>) const override { return std::string(); }
  std::string_view TokenBytes(int32_t id) const override { return TokenPiece(id); }
  std::string_view TokenPiece(int32_t id) const override { return id == 10 ? "<b>&\"" : "▁the\n"; }
  bool IsControl(int32_t) const override { return false; }
  int32_t VocabularySize() const override { return 30; }
  bool AddsBos() const override { return false; }
  std::optional<int32_t> BosId() const override { return std::nullopt; }
  std::optional<int32_t> EosId() const override { return std::nullopt; }
};

class SpecialisationReportOf : public ::testing::Test {
 protected:
  const Pieces pieces_;
  const TextRouting text_ = ThreeTokens();
  const SpecialisationReport report_ = {
      .model = "m",
      .text_name = "t<ext",
      .device = "cpu",
      .dtype = "bf16",
      .options = {.min_occurrences = 1, .most_tokens = 8},
      .text = text_,
      .tokenizer = pieces_};
};

TEST_F(SpecialisationReportOf, IsATable) {
  const std::string table = ToTable(report_);

  EXPECT_THAT(table, HasSubstr("m: 12 tokens of t<ext, cpu, bf16\n"));
  EXPECT_THAT(table, HasSubstr("\nlayer 4 attn, 1 of 3\n"));
  EXPECT_THAT(table, HasSubstr("   0   58.3%  <b>&\" 0.45 (5/6)  #30 0.44 (1/1)\n"));
  EXPECT_THAT(table, HasSubstr("   2    0.0%\n"));
}

TEST_F(SpecialisationReportOf, IsJson) {
  const nlohmann::ordered_json json = ToJson(report_);

  EXPECT_EQ(json["distinct_tokens"], 3);
  const nlohmann::ordered_json& router = json["routers"][0];
  EXPECT_EQ(router["kind"], "attn");
  EXPECT_EQ(router["specialities"][0]["assignments"], 7);
  EXPECT_EQ(router["specialities"][0]["tokens"][1]["piece"], "#30");
  EXPECT_EQ(router["specialities"][1]["tokens"][0]["token_id"], 20);
  EXPECT_EQ(router["specialities"][1]["tokens"][0]["occurrences"], 5);
}

TEST_F(SpecialisationReportOf, IsAPageOfItsOwnWhereNothingIsMarkup) {
  const std::string page = ToHtml(report_);

  EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;&quot;</span>"));
  EXPECT_THAT(page, HasSubstr("of t&lt;ext; routed on cpu with bf16 weights"));
  EXPECT_THAT(page, HasSubstr("title=\"0.45 bits; 5 of 6 times\""));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("the\n")));
}

}  // namespace
}  // namespace switchyard
