#include "tests/cuda_host/report.h"

#include <mutex>
#include <utility>

#include "tests/cuda_host/block_runner.h"

namespace switchyard::cuda_host {
namespace {

struct Finding {
  std::mutex mutex;
  Fault fault = Fault::kNone;
  std::string message;
};

Finding& TheFinding() {
  static auto* finding = new Finding;
  return *finding;
}

}  // namespace

void Report(Fault fault, const std::string& message) {
  Finding& finding = TheFinding();
  const std::lock_guard lock(finding.mutex);
  if (finding.fault == Fault::kNone) {
    finding.fault = fault;
    finding.message = message;
  }
}

void ReportFromKernel(Fault fault, const std::string& message) {
  Report(fault, DescribeCurrentThread() + message);
  BlockRunner::Current()->runner->Abandon();
}

Fault CurrentFault() {
  Finding& finding = TheFinding();
  const std::lock_guard lock(finding.mutex);
  return finding.fault;
}

std::string CurrentMessage() {
  Finding& finding = TheFinding();
  const std::lock_guard lock(finding.mutex);
  return finding.message;
}

Fault TakeFault() {
  Finding& finding = TheFinding();
  const std::lock_guard lock(finding.mutex);
  finding.message.clear();
  return std::exchange(finding.fault, Fault::kNone);
}

}  // namespace switchyard::cuda_host
