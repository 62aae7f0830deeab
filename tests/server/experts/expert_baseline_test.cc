#include "server/experts/expert_baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "server/experts/expert_report.h"
#include "tests/server/two_routers.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExpertBaselineFile : public ::testing::Test {
 protected:
  Status ReadingOf(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadExpertBaseline(path_).status();
  }

  // A baseline whose one router is this.
  static std::string With(const std::string& router) {
    return R"({"format": "switchyard-expert-baseline", "version": 1, "routers": [)" + router + "]}";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "baseline.json";
};

TEST_F(ExpertBaselineFile, IsReadAsItWasWritten) {
  const auto stats = SelectExpertStats(TwoRouters(), {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  const StatusOr<ExpertBaseline> made = BaselineOf(*stats);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(WriteExpertBaseline(path_, *made).ok());

  const StatusOr<ExpertBaseline> read = ReadExpertBaseline(path_);

  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->routers.size(), 2);
  EXPECT_EQ(read->routers[1].layer, 1);
  EXPECT_EQ(read->routers[1].kind, "attn_v");
  EXPECT_EQ(read->routers[1].heads, 2);
  EXPECT_EQ(read->routers[1].top_k, 1);
  EXPECT_THAT(read->routers[0].loads, ElementsAre(13, 24));
  EXPECT_THAT(read->routers[1].loads, ElementsAre(37, 0, 12, 25));
  EXPECT_TRUE(CheckBaselineFits(*read, TwoRoutersInfo()).ok());
}

TEST_F(ExpertBaselineFile, IsNotMadeOfRoutersWithoutWork) {
  v1::GetExpertStatsRequest request;
  request.add_phases(v1::PHASE_RECOMPUTE);
  const auto stats = SelectExpertStats(TwoRouters(), request);
  ASSERT_TRUE(stats.ok()) << stats.status();

  EXPECT_EQ(BaselineOf(*stats).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ExpertBaselineFile, ThatIsMissingIsNotFound) {
  const Status status = ReadExpertBaseline(folder_.path() / "none").status();

  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("none: cannot be read"));
}

TEST_F(ExpertBaselineFile, ThatIsSomethingElseIsRefused) {
  for (const char* text : {"", "{", "[]", "{}", R"({"format": "x"})", "\xff", "{\"format\": 1}"}) {
    const Status status = ReadingOf(text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr("baseline.json: is no expert baseline")) << text;
  }
}

TEST_F(ExpertBaselineFile, OfAnotherVersionIsRefused) {
  EXPECT_THAT(
      MessageOf(ReadingOf(R"({"format": "switchyard-expert-baseline", "version": 2})")),
      HasSubstr("version is 2; this program reads version 1")
  );
  EXPECT_THAT(
      MessageOf(ReadingOf(R"({"format": "switchyard-expert-baseline", "version": [[1]]})")),
      HasSubstr("version is of type array")
  );
}

TEST_F(ExpertBaselineFile, NamesTheFieldThatIsWrong) {
  struct Case {
    const char* router;
    const char* message;
  };
  for (const Case& wrong : {
           Case{"7", "routers[0] must be an object"},
           Case{R"({"layer": 0})", "routers[0].kind is missing"},
           Case{R"({"kind": "attn"})", "routers[0].layer is missing"},
           Case{
               R"({"kind": "attn", "layer": -1})", "routers[0].layer is -1; it must be an integer"},
           Case{
               R"({"kind": "a", "layer": 0, "heads": 1, "experts": 1e9, "top_k": 1})",
               "routers[0].experts is 1000000000.0"},
           Case{
               R"({"kind": "a", "layer": 0, "heads": 1, "experts": 9999999, "top_k": 1})",
               "[0, 1048576]"},
           Case{
               R"({"kind": "a", "layer": 0, "heads": 2, "experts": 2, "top_k": 1, "loads": [1]})",
               "routers[0].loads must be a list of heads * experts = 4 integers"},
           Case{
               R"({"kind": "a", "layer": 0, "heads": 1, "experts": 2, "top_k": 1,
                   "loads": [1, "2"]})",
               "routers[0].loads[1] is of type string"},
           Case{
               R"({"kind": "a", "layer": 0, "heads": 1, "experts": 2, "top_k": 1,
                   "loads": [0, 0]})",
               "routers[0].loads are all 0"},
       }) {
    const Status status = ReadingOf(With(wrong.router));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong.router;
    EXPECT_THAT(MessageOf(status), HasSubstr(wrong.message));
  }
}

TEST_F(ExpertBaselineFile, NestedAsDeepAsItLikesIsRefused) {
  const std::string deep(100'000, '[');

  EXPECT_EQ(ReadingOf(deep).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadingOf(With(deep + std::string(100'000, ']'))).code(), StatusCode::kInvalidArgument);
}

TEST(ExpertBaseline, OfOtherRoutersDoesNotFit) {
  const auto stats = SelectExpertStats(TwoRouters(), {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  const StatusOr<ExpertBaseline> baseline = BaselineOf(*stats);
  ASSERT_TRUE(baseline.ok()) << baseline.status();
  v1::GetModelInfoResponse fewer = TwoRoutersInfo();
  fewer.mutable_routers()->RemoveLast();
  v1::GetModelInfoResponse other = TwoRoutersInfo();
  other.mutable_routers(1)->set_experts(3);

  EXPECT_THAT(
      MessageOf(CheckBaselineFits(*baseline, fewer)), HasSubstr("of 2 routers (model \"\"); this")
  );
  EXPECT_THAT(
      MessageOf(CheckBaselineFits(*baseline, other)),
      HasSubstr("router 1 of the expert baseline is layer 1 attn_v with 2 x 2 experts, top 1; this "
                "model's is layer 1 attn_v with 2 x 3 experts, top 1")
  );
}

}  // namespace
}  // namespace switchyard
