#include "server/load_report.h"

namespace switchyard {
namespace {

void DescribeEngine(const EngineLoad& engine, v1::GetLoadResponse& load) {
  load.set_running_requests(engine.running_requests);
  load.set_waiting_requests(engine.waiting_requests);
  load.set_kv_blocks_total(engine.total_blocks);
  load.set_kv_blocks_used(engine.total_blocks - engine.available_blocks);
  load.set_kv_blocks_cached(engine.cached_blocks);
  load.set_kv_blocks_free(engine.available_blocks - engine.cached_blocks);
  load.set_steps_total(engine.steps_total);
  load.set_preemptions_total(engine.preempted_total);
  load.set_not_finite_total(engine.not_finite_total);
  load.set_step_seconds_total(engine.step_seconds_total);
  load.set_scheduling_seconds_total(engine.scheduling_seconds_total);
}

}  // namespace

v1::GetLoadResponse DescribeLoad(const EngineLoad& engine, ServingState& state) {
  v1::GetLoadResponse load;
  DescribeEngine(engine, load);
  load.set_queued_tokens(state.prompts().Tokens());
  load.set_open_streams(state.streams().Count());
  load.set_stalls_total(state.counters().Stalls());
  for (const RefusalReason reason : kRefusalReasons) {
    (*load.mutable_refusals_total())[NameOf(reason)] = state.counters().Refusals(reason);
  }
  return load;
}

}  // namespace switchyard
