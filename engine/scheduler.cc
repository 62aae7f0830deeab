#include "engine/scheduler.h"

#include <algorithm>
#include <sstream>

namespace switchyard {
namespace {

int32_t PendingTokens(const ScheduledRequest& request) {
  return request.known_tokens - request.computed_tokens;
}

bool IsDecode(const ScheduledRequest& request) {
  return PendingTokens(request) == 1;
}

size_t IndexOfOldest(const std::vector<ScheduledRequest>& running) {
  const auto oldest =
      std::min_element(running.begin(), running.end(), [](const auto& a, const auto& b) {
        return a.arrival < b.arrival;
      });
  return static_cast<size_t>(oldest - running.begin());
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
  Remaining remaining = Shares(state);
  if (!state.running.empty()) {
    PlanRunning(state, IndexOfOldest(state.running), remaining, plan);
  }
  if (plan.preempted.empty()) {
    Admit(state, remaining, plan);
  }
}

int64_t Scheduler::MostBlocksOfAStep(int64_t running) const {
  // Each request may begin a block, end in a part of one and copy one.
  return limits_.max_step_tokens / limits_.block_tokens + 3 * running;
}

Scheduler::Remaining Scheduler::Shares(const SchedulerState& state) const {
  // The decodes' share is put aside before the first prompt is cut.
  const auto decodes = std::count_if(state.running.begin(), state.running.end(), IsDecode);
  const auto decode_tokens =
      static_cast<int32_t>(std::min<int64_t>(decodes, limits_.max_step_tokens));
  return {
      .decode_tokens = decode_tokens,
      .prompt_tokens = limits_.max_step_tokens - decode_tokens,
      .blocks = state.available_blocks,
      .running = state.running.size()};
}

void Scheduler::PlanRunning(
    const SchedulerState& state, size_t oldest, Remaining& remaining, StepPlan& plan
) const {
  const auto plan_one = [&](size_t index) {
    const ScheduledRequest& request = state.running[index];
    int32_t& share = IsDecode(request) ? remaining.decode_tokens : remaining.prompt_tokens;
    const int32_t wanted = std::min(PendingTokens(request), share);
    if (wanted > 0) {
      MakeRoom(state, index, oldest, NewBlocks(request, wanted), remaining, plan);
    }
    share -= AddSlice(request, share, remaining.blocks, plan);
  };
  plan_one(oldest);
  // MakeRoom takes from the end of what this goes through.
  for (size_t index = 0; index < remaining.running; ++index) {
    if (index != oldest) {
      plan_one(index);
    }
  }
}

void Scheduler::MakeRoom(
    const SchedulerState& state,
    size_t index,
    size_t oldest,
    int32_t blocks,
    Remaining& remaining,
    StepPlan& plan
) const {
  // Whoever stands before `index` has its slice already; the oldest is served before everybody.
  const size_t first_victim = index == oldest ? 0 : index + 1;
  while (blocks > remaining.blocks && remaining.running > first_victim) {
    const size_t last = remaining.running - 1;
    if (last != oldest) {
      plan.preempted.push_back(state.running[last].id);
      remaining.blocks += state.running[last].returnable_blocks;
    }
    remaining.running = last;
  }
}

void Scheduler::Admit(const SchedulerState& state, Remaining& remaining, StepPlan& plan) const {
  const int64_t max_running = std::min(limits_.max_running, limits_.max_step_tokens);
  int32_t tokens = remaining.decode_tokens + remaining.prompt_tokens;
  int64_t slots = 0;
  int64_t unreserved = state.available_blocks;
  for (const ScheduledRequest& request : state.running) {
    slots += request.slots;
    unreserved -= Growth(request);
  }
  for (const ScheduledRequest& request : state.waiting) {
    const int64_t growth = Growth(request) + request.returnable_blocks;
    // One alone needs no growth: it was accepted because it fits the whole cache.
    const bool fits = growth <= unreserved || slots == 0;
    if (slots + request.slots > max_running || tokens <= 0 || !fits) {
      return;
    }
    plan.admitted.push_back(request.id);
    remaining.blocks -= request.returnable_blocks;
    tokens -= AddSlice(request, tokens, remaining.blocks, plan);
    unreserved -= growth;
    slots += request.slots;
  }
}

int32_t Scheduler::AddSlice(
    const ScheduledRequest& request, int32_t tokens, int32_t& available_blocks, StepPlan& plan
) const {
  const int32_t pending = PendingTokens(request);
  int32_t taken = std::min(pending, tokens);
  if (taken > 0 && NewBlocks(request, taken) > available_blocks) {
    const int32_t usable = request.blocks_held + available_blocks - (request.copies_block ? 1 : 0);
    taken = std::min(taken, usable * limits_.block_tokens - request.computed_tokens);
  }
  if (taken <= 0 || NewBlocks(request, taken) > available_blocks) {
    return 0;
  }
  const int32_t new_blocks = NewBlocks(request, taken);
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

int32_t Scheduler::NewBlocks(const ScheduledRequest& request, int32_t tokens) const {
  const int32_t blocks = BlocksFor(request.computed_tokens + tokens, limits_.block_tokens);
  return std::max(0, blocks - request.blocks_held) + (request.copies_block ? 1 : 0);
}

int64_t Scheduler::Growth(const ScheduledRequest& request) const {
  const int64_t tokens = std::min<int64_t>(
      request.max_total_tokens, int64_t{request.known_tokens} + limits_.growth_tokens
  );
  const int64_t blocks =
      BlocksFor(static_cast<int32_t>(tokens), limits_.block_tokens) - request.blocks_held;
  // Completions of one prompt share its blocks and grow apart from there.
  const int64_t further =
      request.slots > 1
          ? (request.slots - 1) * (BlocksFor(static_cast<int32_t>(tokens), limits_.block_tokens) -
                                   request.known_tokens / limits_.block_tokens)
          : 0;
  return std::max<int64_t>(0, blocks) + (request.copies_block ? 1 : 0) + further;
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
