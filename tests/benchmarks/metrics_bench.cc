#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

#include "engine/step_statistics.h"
#include "server/metrics/request_metrics.h"
#include "tests/engine/make_sequence.h"

// What metrics cost the engine thread in one step that decodes a token of each of N streams; to be
// compared with step_seconds_total / steps_total of a server with as many.

namespace switchyard {
namespace {

void BookkeepingOfAStep(benchmark::State& state) {
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<SequenceSlice> slices;
  for (int64_t i = 0; i < state.range(0); ++i) {
    sequences.push_back(
        MakeSequence({.prompt = {1, 2, 3}, .generated = {4}, .blocks = {0}, .computed_tokens = 3})
    );
    slices.push_back({.sequence = sequences.back().get(), .planned = {.tokens = 1}});
  }
  StepStatistics steps;
  RequestMetrics requests;
  int64_t latency_us = 0;
  for (auto _ : state) {
    steps.CountStep(CountPhaseTokens(slices), 0.003);
    for (size_t i = 0; i < slices.size(); ++i) {
      // Through all buckets, so that no branch is learnt.
      latency_us = (latency_us * 7 + 311) % 100'000;
      requests.OnToken(
          {.completion_tokens = 2, .since_previous = std::chrono::microseconds(latency_us)}
      );
    }
  }
}
BENCHMARK(BookkeepingOfAStep)->Arg(1)->Arg(64);

}  // namespace
}  // namespace switchyard

BENCHMARK_MAIN();
