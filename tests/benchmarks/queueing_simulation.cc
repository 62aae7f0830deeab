// Plays requests through queue, scheduler and block pool with a step time from a formula instead of
// a model, and prints what a planner asks first: how long requests wait at a given load.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/active_requests.h"
#include "engine/scheduler.h"

namespace switchyard {
namespace {

struct Settings {
  int64_t requests = 1'000'000;
  double arrivals_per_second = 100;
  int32_t median_prompt_tokens = 64;
  int32_t median_completion_tokens = 24;
  // A step takes step_ms + token_ms for each of its tokens.
  double step_ms = 4;
  double token_ms = 0.05;
  int32_t blocks = 1024;
  SchedulerLimits limits;
};

class TimingSink final : public TokenSink {
 public:
  explicit TimingSink(std::vector<FinishEvent>& events) : events_(events) {}
  Verdict OnToken(const TokenEvent& /*event*/) override { return Verdict::kContinue; }
  void OnFinished(const FinishEvent& event) override { events_.push_back(event); }

 private:
  std::vector<FinishEvent>& events_;
};

class Simulation {
 public:
  explicit Simulation(const Settings& settings)
      : settings_(settings),
        scheduler_(settings.limits),
        requests_(settings.blocks, {.limits = settings.limits}),
        sink_(std::make_shared<TimingSink>(finished_)) {
    finished_.reserve(static_cast<size_t>(settings.requests));
  }

  void Run() {
    while (static_cast<int64_t>(finished_.size()) < settings_.requests) {
      while (arrived_ < settings_.requests && next_arrival_ <= now_) {
        Arrive();
        std::exponential_distribution<double> gap(settings_.arrivals_per_second);
        next_arrival_ += Seconds(gap(random_));
      }
      if (!Step()) {
        now_ = next_arrival_;
      }
    }
  }

  const std::vector<FinishEvent>& finished() const { return finished_; }
  int64_t steps() const { return steps_; }
  int64_t preempted() const { return requests_.Load().preempted_total; }
  double simulated_seconds() const {
    return std::chrono::duration<double>(now_.time_since_epoch()).count();
  }

 private:
  static Clock::duration Seconds(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  int32_t Length(int32_t median, int32_t most) {
    std::lognormal_distribution<double> length(std::log(median), 0.8);
    return std::clamp(static_cast<int32_t>(length(random_)), 1, most);
  }

  void Arrive() {
    GenerationRequest request;
    request.prompt.resize(static_cast<size_t>(Length(settings_.median_prompt_tokens, 2000)));
    // Every prompt is new: nothing to share.
    request.prompt[0] = static_cast<int32_t>(arrived_);
    request.stopping.max_tokens = Length(settings_.median_completion_tokens, 1000);
    request.sink = sink_;
    auto sequence = std::make_unique<Sequence>(
        RequestId{static_cast<uint64_t>(++arrived_)},
        std::move(request),
        /*context_tokens=*/4096,
        settings_.limits.block_tokens
    );
    sequence->submitted_at = next_arrival_;
    requests_.Add(std::move(sequence));
  }

  bool Step() {
    requests_.Describe(now_, scheduler_, state_);
    scheduler_.Plan(state_, plan_);
    requests_.Apply(plan_, now_, work_);
    if (work_.slices.empty()) {
      return false;
    }
    int32_t tokens = 0;
    for (const SequenceSlice& slice : work_.slices) {
      tokens += slice.planned.tokens;
    }
    now_ += Seconds(1e-3 * (settings_.step_ms + settings_.token_ms * tokens));
    for (const SequenceSlice& slice : work_.slices) {
      requests_.Computed(slice);
      if (slice.planned.samples) {
        Sample(*slice.sequence);
      }
    }
    requests_.RemoveFinished();
    ++steps_;
    return true;
  }

  void Sample(Sequence& sequence) {
    sequence.Append(1);
    sequence.last_token_at = now_;
    sequence.first_token_at = sequence.first_token_at.value_or(now_);
    if (sequence.KnownTokens() >= sequence.max_total_tokens) {
      requests_.Finish(sequence, sequence.Finish(now_));
    }
  }

  Settings settings_;
  Scheduler scheduler_;
  ActiveRequests requests_;
  std::vector<FinishEvent> finished_;
  std::shared_ptr<TimingSink> sink_;
  std::mt19937_64 random_{1};
  Clock::time_point now_;
  Clock::time_point next_arrival_;
  int64_t arrived_ = 0;
  int64_t steps_ = 0;
  SchedulerState state_;
  StepPlan plan_;
  StepWork work_;
};

void PrintPercentiles(
    const char* name, const std::vector<FinishEvent>& events, double FinishEvent::*field
) {
  std::vector<double> values;
  values.reserve(events.size());
  for (const FinishEvent& event : events) {
    values.push_back(event.*field);
  }
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    return 1e3 * values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  std::printf("%-22s %10.1f %10.1f %10.1f %10.1f\n", name, at(0.5), at(0.9), at(0.99), at(1));
}

void AddOptions(CLI::App& app, Settings& settings) {
  app.add_option("--requests", settings.requests)->check(CLI::Range(1, 100'000'000));
  app.add_option("--arrivals-per-second", settings.arrivals_per_second);
  app.add_option("--median-prompt-tokens", settings.median_prompt_tokens);
  app.add_option("--median-completion-tokens", settings.median_completion_tokens);
  app.add_option("--step-ms", settings.step_ms, "What a step takes, however many tokens it has");
  app.add_option("--token-ms", settings.token_ms, "What each token of a step takes besides");
  app.add_option("--blocks", settings.blocks, "Blocks of the KV cache");
  app.add_option("--max-step-tokens", settings.limits.max_step_tokens);
  app.add_option("--max-running", settings.limits.max_running);
  for (CLI::Option* option : app.get_options()) {
    option->capture_default_str();
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("How long requests wait: the scheduler with a modelled step time");
  AddOptions(app, settings);
  CLI11_PARSE(app, argc, argv);

  const auto start = std::chrono::steady_clock::now();
  Simulation simulation(settings);
  simulation.Run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;

  std::printf(
      "%lld requests, %lld steps, %lld preemptions, %.0f simulated seconds in %.1f s\n\n",
      static_cast<long long>(settings.requests),
      static_cast<long long>(simulation.steps()),
      static_cast<long long>(simulation.preempted()),
      simulation.simulated_seconds(),
      took.count()
  );
  std::printf("%-22s %10s %10s %10s %10s\n", "milliseconds", "p50", "p90", "p99", "longest");
  PrintPercentiles("queue", simulation.finished(), &FinishEvent::queue_seconds);
  PrintPercentiles("first token", simulation.finished(), &FinishEvent::time_to_first_token_seconds);
  PrintPercentiles("first to last token", simulation.finished(), &FinishEvent::decode_seconds);
  PrintPercentiles("whole request", simulation.finished(), &FinishEvent::total_seconds);
  return 0;
}

}  // namespace
}  // namespace switchyard

int main(int argc, char** argv) {
  return switchyard::Main(argc, argv);
}
