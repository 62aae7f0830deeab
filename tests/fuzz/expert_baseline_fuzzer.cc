#include <numeric>
#include <string_view>

#include "server/experts/expert_baseline.h"
#include "server/experts/expert_report.h"
#include "tests/fuzz/input_files.h"
#include "tests/server/two_routers.h"

// The file of --expert-baseline. What is read has loads to divide by and is the same when written
// and read again; what fits a model gives each of its routers a drift.

namespace switchyard {
namespace {

void ExpectSound(const ExpertBaseline& baseline) {
  for (const RouterBaseline& router : baseline.routers) {
    Expect(
        router.loads.size() ==
            static_cast<size_t>(router.heads) * static_cast<size_t>(router.experts),
        Concat(router.loads.size(), " loads")
    );
    const int64_t sum = std::accumulate(router.loads.begin(), router.loads.end(), int64_t{0});
    Expect(sum > 0, Concat("loads that come to ", sum));
  }
}

void ExpectTheSameAgain(const ExpertBaseline& baseline) {
  const auto path = EmptyInputFolder().path() / "again.json";
  Expect(WriteExpertBaseline(path, baseline).ok(), "it cannot be written");
  const StatusOr<ExpertBaseline> again = ReadExpertBaseline(path);
  Expect(again.ok(), "what was written cannot be read");
  Expect(again->model == baseline.model, "of another model");
  Expect(again->routers.size() == baseline.routers.size(), "of other routers");
  for (size_t i = 0; i < baseline.routers.size(); ++i) {
    Expect(again->routers[i].kind == baseline.routers[i].kind, "of another kind");
    Expect(again->routers[i].loads == baseline.routers[i].loads, "of other loads");
  }
}

void ExpectDrift(const ExpertBaseline& baseline) {
  static const ExpertStatistics statistics = TwoRouters();
  static const v1::GetModelInfoResponse info = TwoRoutersInfo();
  if (!CheckBaselineFits(baseline, info).ok()) {
    return;
  }
  const StatusOr<v1::GetExpertStatsResponse> stats = SelectExpertStats(statistics, {}, &baseline);
  Expect(stats.ok(), "no statistics");
  for (const v1::RouterStats& router : stats->routers()) {
    const double drift = router.figures().drift();
    Expect(0 <= drift && drift <= 1 + 1e-9, Concat("a drift of ", drift));
  }
}

void ReadOne(std::string_view text) {
  const auto path = EmptyInputFolder().Write("baseline.json", text);
  const StatusOr<ExpertBaseline> baseline = ReadExpertBaseline(path);
  if (!baseline.ok()) {
    return;
  }
  ExpectSound(*baseline);
  ExpectDrift(*baseline);
  ExpectTheSameAgain(*baseline);
}

}  // namespace
}  // namespace switchyard

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  switchyard::ReadOne({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
