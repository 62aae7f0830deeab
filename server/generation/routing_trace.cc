#include "server/generation/routing_trace.h"

namespace switchyard {
namespace {

bool GoesOn(const v1::RoutingTrace& last, const v1::RoutingTrace& next) {
  return last.completion() == next.completion() && last.cached() == next.cached() &&
         last.first_position() + last.tokens() == next.first_position() &&
         last.routers_size() == next.routers_size();
}

}  // namespace

v1::RoutingTrace DescribeRouting(const RoutingEvent& event) {
  v1::RoutingTrace trace;
  trace.set_completion(event.completion);
  trace.set_first_position(event.first_token);
  trace.set_tokens(event.tokens);
  trace.set_cached(event.cached);
  for (const RoutedTokens& router : event.routers) {
    v1::RouterTrace& described = *trace.add_routers();
    described.set_layer(router.layer);
    described.set_kind(NameOf(router.kind));
    described.set_heads(router.heads);
    described.set_top_k(router.top_k);
    described.mutable_expert_ids()->Add(router.expert_ids.begin(), router.expert_ids.end());
    described.mutable_weights()->Add(router.weights.begin(), router.weights.end());
  }
  return trace;
}

void AppendTrace(v1::RoutingTrace trace, RoutingTraces& traces) {
  if (traces.empty() || !GoesOn(*traces.rbegin(), trace)) {
    traces.Add()->Swap(&trace);
    return;
  }
  v1::RoutingTrace& last = *traces.rbegin();
  last.set_tokens(last.tokens() + trace.tokens());
  for (int i = 0; i < trace.routers_size(); ++i) {
    v1::RouterTrace& router = *last.mutable_routers(i);
    router.mutable_expert_ids()->MergeFrom(trace.routers(i).expert_ids());
    router.mutable_weights()->MergeFrom(trace.routers(i).weights());
  }
}

}  // namespace switchyard
