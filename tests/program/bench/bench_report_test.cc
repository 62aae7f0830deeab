#include "program/bench/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

// Two completed requests, one cancelled, one refused and one stalled and ended, in 4 seconds.
BenchReport SmallReport() {
  BenchReport report;
  report.server = "localhost:50051";
  report.model.set_model("small");
  report.model.set_family("MoA");
  report.shape.seed = 3;
  report.shape.output_tokens = LengthDistribution::Fixed(3);
  report.shape.cancel_share = 0.25;
  report.schedule.concurrency = 2;
  report.schedule.max_requests = 5;
  report.schedule.stall = milliseconds(1500);
  LoadResults& results = report.results;
  results.window_seconds = 4;
  results.started = 5;
  results.received_tokens_within_window = 7;
  for (const int milliseconds_to_first : {10, 30}) {
    RequestRecord record;
    record.has_finished = true;
    record.asked_tokens = record.received_tokens = 3;
    record.prompt_tokens = 128;
    record.cached_prompt_tokens = 16;
    record.server_queue = milliseconds(1);
    record.until_first_token = milliseconds(milliseconds_to_first);
    record.until_end = milliseconds(1000);
    record.within_window = true;
    record.gaps = {{.gap = milliseconds(4), .tokens = 2}};
    results.Add(std::move(record));
  }
  RequestRecord cancelled;
  cancelled.disturbance = Disturbance::kCancel;
  cancelled.status = Status(StatusCode::kCancelled, "");
  results.Add(cancelled);
  RequestRecord refused;
  refused.status = ResourceExhausted("the queue has 8 requests");
  refused.until_end = milliseconds(2);
  results.Add(refused);
  RequestRecord stalled;
  stalled.disturbance = Disturbance::kStall;
  stalled.received_tokens = 1;
  stalled.status = ResourceExhausted("too slow");
  results.Add(stalled);
  report.server_counters = {{"prefill_tokens_computed", 224}, {"step_seconds", 0.25}};
  return report;
}

TEST(ReportTable, ShowsWhatWasMeasured) {
  EXPECT_EQ(
      TableOf(SmallReport()),
      "small on localhost:50051: 2 streams at a time, 4.00 s\n"
      "prompts fixed:128, outputs fixed:3, seed 3\n"
      "\n"
      "                                 per second\n"
      "requests sent                 5\n"
      "  completed                   2       0.500\n"
      "  cancelled by this client    1\n"
      "  stalled, ended by server    1\n"
      "  failed                      1\n"
      "tokens generated              7        1.75\n"
      "prompt tokens               256        64.0\n"
      "  of these cached            32\n"
      "\n"
      "milliseconds         mean   p50   p90   p99   max\n"
      "time to first token  20.0  10.0  30.0  30.0  30.0\n"
      "between tokens       2.00  2.00  2.00  2.00  2.00\n"
      "between messages     4.00  4.00  4.00  4.00  4.00\n"
      "whole request        1000  1000  1000  1000  1000\n"
      "queue in the server  1.00  1.00  1.00  1.00  1.00\n"
      "\n"
      "counted by the server\n"
      "  prefill tokens computed       224\n"
      "  step seconds             0.250000\n"
      "\n"
      "1 failed with RESOURCE_EXHAUSTED, answered after 2.00 ms (p50), 2.00 ms at most; the "
      "first:\n"
      "  the queue has 8 requests\n"
  );
}

TEST(ReportTable, DescribesTheLoad) {
  BenchReport report = SmallReport();
  report.schedule.requests_per_second = 12.5;
  report.shape.shared_prefix_tokens = 512;
  report.shape.shared_prefix_share = 0.5;

  EXPECT_THAT(TableOf(report), HasSubstr("12.5 requests/s arriving at random, 4.00 s\n"));
  EXPECT_THAT(TableOf(report), HasSubstr("prompts fixed:128 after a common 512 in 50.0%, outputs"));
  report.prompts_path = "real.jsonl";
  report.shape.text_prompts.resize(7);
  EXPECT_THAT(TableOf(report), HasSubstr("7 prompts of real.jsonl, outputs"));
}

TEST(ReportTable, LeavesOutLatenciesThatNoRequestHas) {
  BenchReport report;

  EXPECT_THAT(TableOf(report), Not(HasSubstr("milliseconds")));
}

TEST(ReportTable, StaysWithinEightyColumns) {
  std::istringstream lines(TableOf(SmallReport()));
  std::string line;
  while (std::getline(lines, line) && line.find("failed with") == std::string::npos) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(ReportTable, ShowsTheFirstMismatches) {
  BenchReport report = SmallReport();
  report.verification.emplace();
  report.verification->checked = 9;
  EXPECT_THAT(TableOf(report), HasSubstr("9 requests run again alone: all gave the same tokens\n"));

  for (uint64_t i = 0; i < 7; ++i) {
    report.verification->mismatches.push_back(
        {.index = i, .position = 2, .under_load = 17, .alone = -1}
    );
  }
  EXPECT_THAT(TableOf(report), HasSubstr("9 requests run again alone: 7 gave other tokens\n"));
  EXPECT_THAT(TableOf(report), HasSubstr("  request 4, token 2: 17 under load, -1 alone\n"));
  EXPECT_THAT(TableOf(report), Not(HasSubstr("request 5")));
}

TEST(ReportJson, HasEveryNumberUnderItsName) {
  BenchReport report = SmallReport();
  report.verification.emplace();
  report.verification->checked = 1;
  report.verification->mismatches = {
      {.index = 6, .position = 2, .under_load = 17, .alone = 18, .prompt_tokens = 128}};

  const nlohmann::ordered_json json = JsonOf(report);

  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["server"], "localhost:50051");
  EXPECT_EQ(json["model"]["name"], "small");
  EXPECT_EQ(json["load"]["concurrency"], 2);
  EXPECT_TRUE(json["load"]["request_rate"].is_null());
  EXPECT_EQ(json["load"]["stall_seconds"], 1.5);
  EXPECT_EQ(json["load"]["output_tokens"], "fixed:3");
  EXPECT_EQ(json["measured_seconds"], 4);
  EXPECT_EQ(
      json["requests"].dump(),
      "{\"started\":5,\"completed\":2,\"completed_per_second\":0.5,\"cancelled\":1,"
      "\"past_deadline\":0,\"stalled\":1,\"stall_ended\":1,\"failed\":1}"
  );
  EXPECT_EQ(
      json["tokens"].dump(),
      "{\"generated\":7,\"generated_per_second\":1.75,\"prompt\":256,\"prompt_per_second\":64.0,"
      "\"cached_prompt\":32}"
  );
  EXPECT_EQ(json["latency_seconds"]["time_to_first_token"]["count"], 2);
  EXPECT_EQ(json["latency_seconds"]["time_to_first_token"]["max"], 0.03);
  EXPECT_EQ(json["failures"]["RESOURCE_EXHAUSTED"]["count"], 1);
  EXPECT_EQ(json["failures"]["RESOURCE_EXHAUSTED"]["first_message"], "the queue has 8 requests");
  EXPECT_EQ(json["server_counters"]["step_seconds"], 0.25);
  EXPECT_EQ(
      json["verification"].dump(),
      "{\"checked\":1,\"mismatches\":[{\"request\":6,\"prompt_tokens\":128,\"position\":2,"
      "\"token_under_load\":17,\"token_alone\":18}]}"
  );
}

TEST(VerdictOn, IsAnErrorWhenNothingCompletedOrTokensDiffer) {
  BenchReport report = SmallReport();
  EXPECT_TRUE(VerdictOn(report).ok());

  report.verification.emplace();
  report.verification->checked = 8;
  EXPECT_TRUE(VerdictOn(report).ok());
  report.verification->mismatches.resize(2);
  EXPECT_THAT(MessageOf(VerdictOn(report)), HasSubstr("2 of 8 requests gave other tokens"));

  report.results.started = 1;
  EXPECT_THAT(
      MessageOf(VerdictOn(report)), HasSubstr("no request completed; the first: the queue has 8")
  );
  report.results.gave_up = true;
  EXPECT_EQ(VerdictOn(report).code(), StatusCode::kUnavailable);
}

TEST(ReportFile, ReplacesTheFileAsAWhole) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.Write("report.json", "old");
  const StatusOr<ReportFile> file = ReportFile::Open(path.string());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ReadWholeFile(path), "old");

  ASSERT_TRUE(file->Write("new").ok());

  EXPECT_EQ(ReadWholeFile(path), "new");
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

TEST(ReportFile, FindsOutBeforehandThatItCannotBeWritten) {
  const TemporaryFolder folder;

  EXPECT_THAT(
      MessageOf(ReportFile::Open(folder.path() / "absent" / "report.json").status()),
      HasSubstr("absent/report.json: cannot write beside it")
  );
  EXPECT_THAT(MessageOf(ReportFile::Open(folder.path()).status()), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace switchyard
