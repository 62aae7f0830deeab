#include "program/specialisation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Its pieces are what markup must not be mistaken for.
class SpecialisationReportOf : public ::testing::Test {
 protected:
  SpecialisationReportOf() {
    profile_.set_model("m");
    profile_.set_tokens(12);
    profile_.set_distinct_tokens(3);
    profile_.set_device("cpu");
    profile_.set_dtype("bf16");
    profile_.set_min_occurrences(1);
    v1::RouterSpecialities& router = *profile_.add_routers();
    router.set_layer(4);
    router.set_kind("attn");
    router.set_heads(1);
    router.set_experts(3);
    router.set_top_k(1);
    for (int32_t expert = 0; expert < 3; ++expert) {
      router.add_specialities()->set_expert(expert);
    }
    v1::ExpertSpeciality& first = *router.mutable_specialities(0);
    first.set_assignments(7);
    first.set_share(7.0 / 12);
    AddToken(10, "<b>&\"", {5, 6, 0.4514}, first);
    AddToken(30, "#30", {1, 1, 0.4406}, first);
    AddToken(20, "▁the\n", {4, 5, 0.8210}, *router.mutable_specialities(1));
  }

  struct Counts {
    int64_t routed;
    int64_t occurrences;
    double bits;
  };

  static void AddToken(
      int32_t id, const std::string& piece, const Counts& counts, v1::ExpertSpeciality& expert
  ) {
    v1::TokenAffinity& token = *expert.add_tokens();
    token.set_token_id(id);
    token.set_piece(piece);
    token.set_routed(counts.routed);
    token.set_occurrences(counts.occurrences);
    token.set_information_bits(counts.bits);
  }

  v1::ProfileExpertsResponse profile_;
  const SpecialisationReport report_ = {.text_name = "t<ext", .profile = profile_};
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
