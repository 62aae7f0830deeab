#include "server/expert_service.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "server/field_violation.h"
#include "server/grpc_status.h"
#include "server/unary_call.h"

namespace switchyard {
namespace {

// Longer than any step; past it something is wrong with the engine.
constexpr std::chrono::milliseconds kSnapshotTimeout{5000};

StatusOr<Phase> PhaseOf(const std::string& field, int phase) {
  switch (phase) {
    case v1::PHASE_PREFILL:
      return Phase::kPrefill;
    case v1::PHASE_DECODE:
      return Phase::kDecode;
    case v1::PHASE_RECOMPUTE:
      return Phase::kRecompute;
    case v1::PHASE_WARM_UP:
      return Phase::kWarmUp;
    default:
      return FieldViolation(
          field,
          Concat("is ", phase, ", which is no phase; use PREFILL, DECODE, RECOMPUTE or WARM_UP")
      );
  }
}

// A set: a phase that is named twice counts once.
StatusOr<std::set<Phase>> PhasesOf(const v1::GetExpertStatsRequest& request) {
  if (request.phases().empty()) {
    return std::set<Phase>{Phase::kPrefill, Phase::kDecode};
  }
  std::set<Phase> phases;
  for (int i = 0; i < request.phases_size(); ++i) {
    ASSIGN_OR_RETURN(const Phase phase, PhaseOf(Concat("phases[", i, "]"), request.phases(i)));
    phases.insert(phase);
  }
  return phases;
}

template <typename Values>
std::string Join(const Values& values) {
  std::string joined;
  for (const auto& value : values) {
    joined += joined.empty() ? Concat(value) : Concat(", ", value);
  }
  return joined;
}

Status CheckFilters(const ExpertStatistics& statistics, const v1::GetExpertStatsRequest& request) {
  std::set<int64_t> layers;
  std::set<std::string> kinds;
  for (const RouterStatistics& router : statistics.routers) {
    layers.insert(router.layer);
    kinds.insert(NameOf(router.kind));
  }
  for (int i = 0; i < request.layers_size(); ++i) {
    if (layers.count(request.layers(i)) == 0) {
      return FieldViolation(
          Concat("layers[", i, "]"),
          Concat("is ", request.layers(i), "; this model's layers with routers are ", Join(layers))
      );
    }
  }
  for (int i = 0; i < request.kinds_size(); ++i) {
    if (kinds.count(request.kinds(i)) == 0) {
      return FieldViolation(
          Concat("kinds[", i, "]"),
          Concat("is \"", request.kinds(i), "\"; this model's kinds of routers are ", Join(kinds))
      );
    }
  }
  return OkStatus();
}

template <typename Values, typename Value>
bool IsAsked(const Values& filter, const Value& value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

void AddRouter(
    const RouterStatistics& router, const std::set<Phase>& phases, v1::RouterStats& out
) {
  out.set_layer(static_cast<int32_t>(router.layer));
  out.set_kind(NameOf(router.kind));
  out.set_heads(static_cast<int32_t>(router.heads));
  out.set_experts(static_cast<int32_t>(router.experts));
  out.set_top_k(static_cast<int32_t>(router.top_k));

  const int64_t columns = router.heads * router.experts;
  int64_t assignments = 0;
  for (int64_t column = 0; column < columns; ++column) {
    v1::ExpertStats* const expert = out.add_stats();
    expert->set_head(static_cast<int32_t>(column / router.experts));
    expert->set_expert(static_cast<int32_t>(column % router.experts));
    int64_t tokens = 0;
    double gate_sum = 0;
    for (const Phase phase : phases) {
      const auto index = static_cast<size_t>(static_cast<int64_t>(phase) * columns + column);
      tokens += router.tokens[index];
      gate_sum += router.gate_sum[index];
    }
    expert->set_tokens(tokens);
    expert->set_gate_weight_sum(gate_sum);
    assignments += tokens;
  }
  // Every token is assigned top_k experts of each head.
  out.set_tokens_routed(assignments / (router.top_k * router.heads));
}

}  // namespace

grpc::ServerUnaryReactor* ExpertService::GetExpertStats(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  // gRPC keeps context, request and response until Finish.
  state_.inquiries().Post([this, reactor, request, response] {
    const auto answer = [this](const auto& asked, auto& answered) {
      return Answer(asked, answered);
    };
    reactor->Finish(ToGrpcStatus(AnswerBytes<v1::GetExpertStatsRequest, v1::GetExpertStatsResponse>(
        *request, *response, answer
    )));
  });
  return reactor;
}

Status ExpertService::Answer(
    const v1::GetExpertStatsRequest& request, v1::GetExpertStatsResponse& response
) const {
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  ASSIGN_OR_RETURN(
      const ExpertStatistics statistics, model->engine->SnapshotExpertStatistics(kSnapshotTimeout)
  );
  ASSIGN_OR_RETURN(response, SelectExpertStats(statistics, request));
  response.set_model(model->name);
  return OkStatus();
}

StatusOr<v1::GetExpertStatsResponse> SelectExpertStats(
    const ExpertStatistics& statistics, const v1::GetExpertStatsRequest& request
) {
  ASSIGN_OR_RETURN(const std::set<Phase> phases, PhasesOf(request));
  RETURN_IF_ERROR(CheckFilters(statistics, request));
  v1::GetExpertStatsResponse response;
  response.set_uptime_seconds(statistics.uptime_seconds);
  for (const RouterStatistics& router : statistics.routers) {
    if (IsAsked(request.layers(), router.layer) && IsAsked(request.kinds(), NameOf(router.kind))) {
      AddRouter(router, phases, *response.add_routers());
    }
  }
  return response;
}

}  // namespace switchyard
