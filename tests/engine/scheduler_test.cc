#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Growth without end: a request is admitted when its whole length is free.
constexpr SchedulerLimits kLimits{
    .max_step_tokens = 10, .max_running = 4, .block_tokens = 4, .growth_tokens = 1000};

ScheduledRequest Waiting(uint64_t id, int32_t prompt_tokens, int32_t max_total_tokens) {
  return {
      .id = RequestId{id},
      .arrival = id,
      .known_tokens = prompt_tokens,
      .max_total_tokens = max_total_tokens};
}

// A request that holds exactly the blocks of its computed tokens, all by itself.
ScheduledRequest Running(
    uint64_t id, int32_t known_tokens, int32_t computed_tokens, int32_t max_total_tokens
) {
  return {
      .id = RequestId{id},
      .arrival = id,
      .known_tokens = known_tokens,
      .computed_tokens = computed_tokens,
      .blocks_held = BlocksFor(computed_tokens, kLimits.block_tokens),
      .max_total_tokens = max_total_tokens,
      .returnable_blocks = BlocksFor(computed_tokens, kLimits.block_tokens)};
}

std::string PlanOf(const SchedulerState& state) {
  return Scheduler(kLimits).Plan(state).ToString();
}

TEST(Scheduler, PlansNothingWhenThereIsNothing) {
  EXPECT_EQ(PlanOf({.available_blocks = 8}), "slices=[] admitted=[] preempted=[]");
}

TEST(Scheduler, AdmitsAPromptThatFitsAndSamplesInTheSameStep) {
  const SchedulerState state{.waiting = {Waiting(1, 5, 8)}, .available_blocks = 2};

  EXPECT_EQ(PlanOf(state), "slices=[1:0+5 new_blocks=2 samples] admitted=[1] preempted=[]");
}

TEST(Scheduler, CutsAPromptThatIsLongerThanTheStep) {
  const SchedulerState state{.waiting = {Waiting(1, 25, 30)}, .available_blocks = 8};

  EXPECT_EQ(PlanOf(state), "slices=[1:0+10 new_blocks=3] admitted=[1] preempted=[]");
}

TEST(Scheduler, ContinuesACutPromptWhereItStopped) {
  const SchedulerState state{.running = {Running(1, 25, 20, 30)}, .available_blocks = 3};

  EXPECT_EQ(PlanOf(state), "slices=[1:20+5 new_blocks=2 samples] admitted=[] preempted=[]");
}

TEST(Scheduler, PutsDecodesAsideBeforeItCutsAnOlderPrompt) {
  const SchedulerState state{
      .running = {Running(1, 40, 10, 44), Running(2, 6, 5, 9), Running(3, 9, 8, 12)},
      .available_blocks = 20};

  EXPECT_EQ(
      PlanOf(state),
      "slices=[1:10+8 new_blocks=2, 2:5+1 samples, 3:8+1 new_blocks=1 samples] admitted=[] "
      "preempted=[]"
  );
}

TEST(Scheduler, MixesDecodesAChunkAndANewPromptInOneStep) {
  const SchedulerState state{
      .waiting = {Waiting(3, 9, 12)},
      .running = {Running(1, 7, 6, 10), Running(2, 12, 8, 16)},
      .available_blocks = 10};

  EXPECT_EQ(
      PlanOf(state),
      "slices=[1:6+1 samples, 2:8+4 new_blocks=1 samples, 3:0+5 new_blocks=2] admitted=[3] "
      "preempted=[]"
  );
}

TEST(Scheduler, AdmitsOnlyWhileTheWholeLengthIsFreeBeyondWhatRunningRequestsReserve) {
  // Request 1 holds 2 blocks and may ask for 2 more; of the 5 available ones 3 are nobody's.
  const SchedulerState state{
      .waiting = {Waiting(2, 2, 12), Waiting(3, 2, 4)},
      .running = {Running(1, 8, 7, 16)},
      .available_blocks = 5};

  EXPECT_EQ(
      PlanOf(state), "slices=[1:7+1 samples, 2:0+2 new_blocks=1 samples] admitted=[2] preempted=[]"
  );
}

TEST(Scheduler, DoesNotLetAShortRequestOvertakeALongOneThatDoesNotFit) {
  const SchedulerState state{
      .waiting = {Waiting(2, 2, 16), Waiting(3, 2, 4)},
      .running = {Running(1, 8, 7, 16)},
      .available_blocks = 5};

  const StepPlan plan = Scheduler(kLimits).Plan(state);

  EXPECT_THAT(plan.admitted, IsEmpty());
  EXPECT_EQ(plan.slices.size(), 1);
}

TEST(Scheduler, AdmitsNoMoreThanMayRunAtOnce) {
  SchedulerState state{.available_blocks = 100};
  for (uint64_t id = 1; id <= 6; ++id) {
    state.waiting.push_back(Waiting(id, 1, 4));
  }

  const StepPlan plan = Scheduler(kLimits).Plan(state);

  EXPECT_THAT(plan.admitted, ElementsAre(RequestId{1}, RequestId{2}, RequestId{3}, RequestId{4}));
}

TEST(Scheduler, RunsNoMoreAtOnceThanAStepHasTokens) {
  const SchedulerLimits two_tokens{.max_step_tokens = 2, .max_running = 8, .block_tokens = 4};
  const SchedulerState state{
      .waiting = {Waiting(3, 1, 4)},
      .running = {Running(1, 3, 2, 4), Running(2, 3, 2, 4)},
      .available_blocks = 9};

  const StepPlan plan = Scheduler(two_tokens).Plan(state);

  EXPECT_EQ(plan.ToString(), "slices=[1:2+1 samples, 2:2+1 samples] admitted=[] preempted=[]");
}

TEST(Scheduler, AdmitsNobodyIntoAStepThatIsFull) {
  const SchedulerState state{
      .waiting = {Waiting(2, 3, 4)}, .running = {Running(1, 30, 0, 32)}, .available_blocks = 20};

  EXPECT_EQ(PlanOf(state), "slices=[1:0+10 new_blocks=3] admitted=[] preempted=[]");
}

TEST(Scheduler, PreemptsTheLastInRunningOrderWhenTheBlocksRunOut) {
  const SchedulerState state{
      .waiting = {Waiting(4, 1, 4)},
      .running = {Running(1, 9, 8, 16), Running(2, 13, 12, 16), Running(3, 7, 6, 16)},
      .available_blocks = 1};

  // 1 takes the last block; 2 needs one too, and 3 gives two back.
  EXPECT_EQ(
      PlanOf(state),
      "slices=[1:8+1 new_blocks=1 samples, 2:12+1 new_blocks=1 samples] admitted=[] preempted=[3]"
  );
}

TEST(Scheduler, NeverPreemptsTheOldestEvenWhenItIsLastInRunningOrder) {
  const SchedulerState state{
      .running = {Running(5, 5, 4, 16), Running(6, 5, 4, 16), Running(2, 9, 8, 16)},
      .available_blocks = 0};

  // The oldest is served first, from the last but itself; 5 takes the place of nobody and waits.
  EXPECT_EQ(PlanOf(state), "slices=[2:8+1 new_blocks=1 samples] admitted=[] preempted=[6]");
}

TEST(Scheduler, GivesTheLastWhatIsLeftInsteadOfPreemptingIt) {
  const SchedulerState state{
      .running = {Running(1, 7, 6, 16), Running(2, 16, 4, 20)}, .available_blocks = 1};

  EXPECT_EQ(PlanOf(state), "slices=[1:6+1 samples, 2:4+4 new_blocks=1] admitted=[] preempted=[]");
}

TEST(Scheduler, PreemptsAllButTheOldestIfItMust) {
  const SchedulerState state{
      .running = {Running(1, 18, 8, 32), Running(2, 5, 4, 16), Running(3, 5, 4, 16)},
      .available_blocks = 0};

  EXPECT_EQ(PlanOf(state), "slices=[1:8+8 new_blocks=2] admitted=[] preempted=[3 2]");
}

TEST(Scheduler, CountsOnlyTheBlocksThatAPreemptedRequestDoesNotShare) {
  ScheduledRequest sharing = Running(3, 9, 8, 16);
  sharing.returnable_blocks = 0;
  const SchedulerState state{
      .running = {Running(1, 9, 8, 16), Running(2, 5, 4, 16), sharing}, .available_blocks = 0};

  EXPECT_EQ(PlanOf(state), "slices=[1:8+1 new_blocks=1 samples] admitted=[] preempted=[3 2]");
}

TEST(Scheduler, AdmitsWhileEveryRunningRequestCanGrow) {
  const Scheduler scheduler(
      {.max_step_tokens = 10, .max_running = 4, .block_tokens = 4, .growth_tokens = 4}
  );
  // 1 needs one block for its next four tokens, 2 needs two, and 3 two more.
  SchedulerState state{
      .waiting = {Waiting(2, 4, 400), Waiting(3, 4, 400)},
      .running = {Running(1, 8, 7, 400)},
      .available_blocks = 5};

  EXPECT_THAT(scheduler.Plan(state).admitted, ElementsAre(RequestId{2}, RequestId{3}));

  state.available_blocks = 4;
  EXPECT_THAT(scheduler.Plan(state).admitted, ElementsAre(RequestId{2}));
}

TEST(Scheduler, AdmitsOneAloneWithoutRoomToGrow) {
  const Scheduler scheduler(
      {.max_step_tokens = 10, .max_running = 4, .block_tokens = 4, .growth_tokens = 100}
  );
  const SchedulerState state{
      .waiting = {Waiting(1, 4, 8), Waiting(2, 4, 8)}, .available_blocks = 2};

  EXPECT_THAT(scheduler.Plan(state).admitted, ElementsAre(RequestId{1}));
}

TEST(Scheduler, StartsBehindACachedPrefixAndTakesItsBlocksFromTheAvailableOnes) {
  ScheduledRequest cached = Waiting(1, 11, 16);
  cached.computed_tokens = 8;
  cached.blocks_held = 2;
  cached.returnable_blocks = 2;

  EXPECT_EQ(
      PlanOf({.waiting = {cached}, .available_blocks = 4}),
      "slices=[1:8+3 new_blocks=1 samples] admitted=[1] preempted=[]"
  );
}

TEST(Scheduler, AllocatesABlockForTheCopyOfASharedOne) {
  ScheduledRequest cached = Waiting(1, 8, 12);
  cached.computed_tokens = 7;
  cached.blocks_held = 2;
  cached.copies_block = true;

  EXPECT_EQ(
      PlanOf({.waiting = {cached}, .available_blocks = 4}),
      "slices=[1:7+1 new_blocks=1 samples] admitted=[1] preempted=[]"
  );
}

TEST(Scheduler, CountsEverySlotOfARequestThatWillFork) {
  ScheduledRequest forking = Waiting(1, 2, 4);
  forking.slots = 3;
  const SchedulerState state{
      .waiting = {forking, Waiting(2, 2, 4), Waiting(3, 2, 4)}, .available_blocks = 100};

  EXPECT_THAT(Scheduler(kLimits).Plan(state).admitted, ElementsAre(RequestId{1}, RequestId{2}));
}

TEST(Scheduler, ReusesThePlanItIsGiven) {
  StepPlan plan{
      .slices = {{.id = RequestId{9}, .tokens = 3}},
      .admitted = {RequestId{9}},
      .preempted = {RequestId{8}}};

  Scheduler(kLimits).Plan({.available_blocks = 1}, plan);

  EXPECT_EQ(plan.ToString(), "slices=[] admitted=[] preempted=[]");
}

TEST(Scheduler, RoundsBlocksUp) {
  EXPECT_EQ(BlocksFor(0, 16), 0);
  EXPECT_EQ(BlocksFor(1, 16), 1);
  EXPECT_EQ(BlocksFor(16, 16), 1);
  EXPECT_EQ(BlocksFor(17, 16), 2);
  EXPECT_EQ(BlocksFor(2147483647, 16), 134217728);
}

}  // namespace
}  // namespace switchyard
