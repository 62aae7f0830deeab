#include "engine/scheduler.h"

#include <algorithm>
#include <sstream>

namespace switchyard {
namespace {

int32_t PendingTokens(const ScheduledRequest& request) {
  return request.known_tokens - request.computed_tokens;
}

}  // namespace

int32_t BlocksFor(int32_t tokens, int32_t block_tokens) {
  return static_cast<int32_t>((int64_t{tokens} + block_tokens - 1) / block_tokens);
}

StepPlan Scheduler::Plan(const SchedulerState& state) const {
  StepPlan plan;
  Plan(state, plan);
  return plan;
}

void Scheduler::Plan(const SchedulerState& state, StepPlan& plan) const {
  plan.slices.clear();
  plan.admitted.clear();
  plan.preempted.clear();
  Remaining remaining{.tokens = limits_.max_step_tokens, .blocks = state.available_blocks};
  PlanRunning(state, remaining, plan);
  Admit(state, remaining, plan);
}

void Scheduler::PlanRunning(const SchedulerState& state, Remaining& remaining, StepPlan& plan)
    const {
  // Slices come in running order, so the decodes' share is put aside before the first prompt is
  // cut.
  const auto decodes =
      std::count_if(state.running.begin(), state.running.end(), [](const auto& request) {
        return PendingTokens(request) == 1;
      });
  int32_t decode_share = static_cast<int32_t>(std::min<int64_t>(decodes, remaining.tokens));
  int32_t prompt_share = remaining.tokens - decode_share;
  for (const ScheduledRequest& request : state.running) {
    int32_t& share = PendingTokens(request) == 1 ? decode_share : prompt_share;
    share -= AddSlice(request, share, remaining.blocks, plan);
  }
  remaining.tokens = decode_share + prompt_share;
}

void Scheduler::Admit(const SchedulerState& state, Remaining& remaining, StepPlan& plan) const {
  const int64_t max_running = std::min(limits_.max_running, limits_.max_step_tokens);
  auto running = static_cast<int64_t>(state.running.size());
  int64_t unreserved = int64_t{state.available_blocks} - ReservedBlocks(state.running);
  for (const ScheduledRequest& request : state.waiting) {
    const int64_t whole_length =
        BlocksFor(request.max_total_tokens, limits_.block_tokens) - request.blocks_held;
    if (running >= max_running || remaining.tokens <= 0 || whole_length > unreserved) {
      return;
    }
    plan.admitted.push_back(request.id);
    remaining.tokens -= AddSlice(request, remaining.tokens, remaining.blocks, plan);
    unreserved -= whole_length;
    ++running;
  }
}

int32_t Scheduler::AddSlice(
    const ScheduledRequest& request, int32_t tokens, int32_t& available_blocks, StepPlan& plan
) const {
  const int32_t pending = PendingTokens(request);
  const int32_t taken = std::min(pending, tokens);
  const int32_t blocks = BlocksFor(request.computed_tokens + taken, limits_.block_tokens);
  const int32_t new_blocks = std::max(0, blocks - request.blocks_held);
  if (taken <= 0 || new_blocks > available_blocks) {
    return 0;
  }
  plan.slices.push_back(
      {.id = request.id,
       .first_token = request.computed_tokens,
       .tokens = taken,
       .new_blocks = new_blocks,
       .samples = taken == pending}
  );
  available_blocks -= new_blocks;
  return taken;
}

int64_t Scheduler::ReservedBlocks(const std::vector<ScheduledRequest>& running) const {
  int64_t reserved = 0;
  for (const ScheduledRequest& request : running) {
    reserved += std::max(
        0, BlocksFor(request.max_total_tokens, limits_.block_tokens) - request.blocks_held
    );
  }
  return reserved;
}

std::string StepPlan::ToString() const {
  std::ostringstream text;
  const auto append_ids = [&text](const char* name, const std::vector<RequestId>& ids) {
    text << name << "=[";
    for (size_t i = 0; i < ids.size(); ++i) {
      text << (i == 0 ? "" : " ") << static_cast<uint64_t>(ids[i]);
    }
    text << "]";
  };
  text << "slices=[";
  for (size_t i = 0; i < slices.size(); ++i) {
    const PlannedSlice& slice = slices[i];
    text << (i == 0 ? "" : " ") << static_cast<uint64_t>(slice.id) << ":" << slice.first_token
         << "+" << slice.tokens;
    text << (slice.new_blocks > 0 ? " new_blocks=" + std::to_string(slice.new_blocks) : "");
    text << (slice.samples ? " samples" : "") << (i + 1 < slices.size() ? "," : "");
  }
  text << "] ";
  append_ids("admitted", admitted);
  text << " ";
  append_ids("preempted", preempted);
  return text.str();
}

}  // namespace switchyard
