#include "program/bench/bench_report.h"

namespace switchyard {

std::string FirstFailureOf(const LoadResults& results) {
  return results.failures.empty()
             ? ""
             : "; the first: " + results.failures.begin()->second.first_message;
}

Status VerdictOn(const BenchReport& report) {
  const LoadResults& results = report.results;
  if (results.gave_up) {
    return Unavailable(
        "gave up after ",
        results.started,
        " requests: the server went away",
        FirstFailureOf(results)
    );
  }
  if (results.started > 0 && results.failed == results.started) {
    return FailedPrecondition("no request completed", FirstFailureOf(results));
  }
  if (report.verification.has_value() && !report.verification->mismatches.empty()) {
    return DataLoss(
        report.verification->mismatches.size(),
        " of ",
        report.verification->checked,
        " requests gave other tokens under load than alone"
    );
  }
  return OkStatus();
}

}  // namespace switchyard
