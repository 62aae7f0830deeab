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

}  // namespace

ServerCounters ReadServerCounters(const Client& client) {
  ServerCounters counters;
  AddComputedTokens(client, counters);
  return counters;
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
