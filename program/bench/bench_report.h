#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/status.h"
#include "program/bench/load_driver.h"
#include "program/bench/load_plan.h"
#include "program/bench/load_results.h"
#include "program/bench/server_counters.h"
#include "program/bench/verification.h"

namespace switchyard {

// What a load was and what it measured.
struct BenchReport {
  std::string server;  // its address
  v1::GetModelInfoResponse model;
  LoadShape shape;
  LoadSchedule schedule;
  std::string prompts_path;  // empty: drawn prompts
  int32_t connections = 1;
  int64_t warm_up_requests = 0;
  LoadResults results;
  ServerCounters server_counters;  // the load's own part
  std::optional<Verification> verification;
};

// Times in seconds, rates per second, counts of requests and tokens; "schema" is raised when a name
// or a meaning changes.
nlohmann::ordered_json JsonOf(const BenchReport& report);

// For people: at most 80 columns but for messages of errors. Ends with a newline.
std::string TableOf(const BenchReport& report);

// An error when the command must say so with its exit status: the server went away, no request
// completed, or a request gave other tokens alone than under load.
Status VerdictOn(const BenchReport& report);

// "; the first: " and a message of the failed requests; empty when none failed.
std::string FirstFailureOf(const LoadResults& results);

// A file that is there as a whole or not at all: written beside its place, then renamed.
class ReportFile {
 public:
  // Finds out whether the place can be written to, before a long load. An error names the path.
  static StatusOr<ReportFile> Open(const std::string& path);
  Status Write(const std::string& text) const;

 private:
  explicit ReportFile(std::string path) : path_(std::move(path)) {}
  std::string PartialPath() const { return path_ + ".partial"; }

  std::string path_;
};

}  // namespace switchyard
