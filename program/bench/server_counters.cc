#include "program/bench/server_counters.h"

#include <algorithm>
#include <array>

namespace switchyard {
namespace {

struct NamedPhase {
  v1::Phase phase;
  const char* name;
};
constexpr std::array<NamedPhase, 3> kNamedPhases = {
    {{v1::PHASE_PREFILL, "prefill_tokens_computed"},
     {v1::PHASE_DECODE, "decode_tokens_computed"},
     {v1::PHASE_RECOMPUTE, "recomputed_tokens"}}};

// Every router sees the same tokens, so the first one tells.
void AddComputedTokens(const Client& client, ServerCounters& counters) {
  for (const NamedPhase& named : kNamedPhases) {
    v1::GetExpertStatsRequest request;
    request.add_layers(0);
    request.add_phases(named.phase);
    const StatusOr<v1::GetExpertStatsResponse> stats = client.GetExpertStats(request);
    if (stats.ok() && !stats->routers().empty()) {
      counters.emplace_back(named.name, static_cast<double>(stats->routers(0).tokens_routed()));
    }
  }
}

constexpr const char* kSteps = "steps";
constexpr const char* kStepSeconds = "step_seconds";
constexpr const char* kSchedulingSeconds = "scheduling_seconds";

void AddSteps(const Client& client, ServerCounters& counters) {
  const StatusOr<v1::GetLoadResponse> load = client.GetLoad();
  if (load.ok()) {
    counters.emplace_back(kSteps, static_cast<double>(load->steps_total()));
    counters.emplace_back("preemptions", static_cast<double>(load->preemptions_total()));
    counters.emplace_back(kStepSeconds, load->step_seconds_total());
    counters.emplace_back(kSchedulingSeconds, load->scheduling_seconds_total());
  }
}

double ValueOf(const ServerCounters& counters, const std::string& name) {
  const auto found = std::find_if(counters.begin(), counters.end(), [&name](const auto& counter) {
    return counter.first == name;
  });
  return found == counters.end() ? 0 : found->second;
}

}  // namespace

ServerCounters ReadServerCounters(const Client& client) {
  ServerCounters counters;
  AddComputedTokens(client, counters);
  AddSteps(client, counters);
  return counters;
}

void AddStepRatios(ServerCounters& difference) {
  const double steps = ValueOf(difference, kSteps);
  const double step_seconds = ValueOf(difference, kStepSeconds);
  const double scheduling_seconds = ValueOf(difference, kSchedulingSeconds);
  if (steps > 0 && step_seconds > 0) {
    difference.emplace_back("milliseconds_per_step", 1e3 * step_seconds / steps);
    difference.emplace_back("scheduling_microseconds_per_step", 1e6 * scheduling_seconds / steps);
    difference.emplace_back("scheduling_percent_of_steps", 100 * scheduling_seconds / step_seconds);
  }
}

ServerCounters DifferenceOf(const ServerCounters& before, const ServerCounters& after) {
  ServerCounters difference;
  for (const auto& [name, value] : after) {
    const auto same_name = [&wanted = name](const auto& counter) {
      return counter.first == wanted;
    };
    const auto earlier = std::find_if(before.begin(), before.end(), same_name);
    if (earlier != before.end()) {
      difference.emplace_back(name, value - earlier->second);
    }
  }
  return difference;
}

}  // namespace switchyard
