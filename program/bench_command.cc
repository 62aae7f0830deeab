#include <iostream>
#include <optional>

#include "clients/cpp/client.h"
#include "program/bench/bench_report.h"
#include "program/bench/load_driver.h"
#include "program/bench/progress_line.h"
#include "program/bench_flags.h"
#include "program/command.h"

namespace switchyard {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortCallTimeout{10'000};
// Warm-up requests are others than the measured ones: no measured prompt is in a cache because of
// them.
constexpr uint64_t kFirstWarmUpIndex = uint64_t{1} << 40;

milliseconds MillisecondsOf(double seconds) {
  return milliseconds(static_cast<int64_t>(seconds * 1000));
}

StatusOr<LoadShape> ShapeOf(const BenchFlags& flags) {
  LoadShape shape = flags.shape;
  ASSIGN_OR_RETURN(shape.prompt_tokens, LengthDistribution::Parse(flags.prompt_tokens));
  ASSIGN_OR_RETURN(shape.output_tokens, LengthDistribution::Parse(flags.output_tokens));
  if (!flags.prompts_path.empty()) {
    ASSIGN_OR_RETURN(shape.text_prompts, ReadPromptFile(flags.prompts_path));
  }
  return shape;
}

LoadSchedule ScheduleOf(const BenchFlags& flags) {
  LoadSchedule schedule;
  schedule.requests_per_second = flags.request_rate;
  schedule.concurrency = flags.concurrency;
  schedule.max_requests = flags.requests;
  if (flags.duration_seconds.has_value()) {
    schedule.max_time = MillisecondsOf(*flags.duration_seconds);
  } else if (!flags.requests.has_value()) {
    schedule.max_requests = kDefaultBenchRequests;
  }
  schedule.deadline = milliseconds(flags.deadline_ms);
  schedule.stall = MillisecondsOf(flags.stall_seconds);
  schedule.time_limit = MillisecondsOf(flags.timeout_seconds);
  return schedule;
}

StatusOr<v1::GetModelInfoResponse> AskModelInfo(const Client& client) {
  StatusOr<v1::GetModelInfoResponse> info = client.GetModelInfo();
  if (info.ok()) {
    return info;
  }
  return Status(
      info.status().code(),
      Concat(
          MessageOf(info.status()),
          "; no load was sent to ",
          client.address(),
          ". `switchyard health --server ",
          client.address(),
          " --wait 60` waits until a server is ready"
      )
  );
}

LoadDriver::OnProgress ProgressOf(ProgressLine& line, const std::string& what) {
  if (!line.IsShown()) {
    return {};
  }
  return [&line, what](const LoadProgress& progress) { line.Draw(what, progress); };
}

// Its requests are undisturbed, and nothing of them is counted.
Status WarmUp(
    const BenchFlags& flags,
    const BenchReport& report,
    const LoadClients& clients,
    ProgressLine& line
) {
  if (flags.warm_up_requests == 0) {
    return OkStatus();
  }
  LoadShape shape = report.shape;
  shape.cancel_share = shape.deadline_share = shape.stall_share = shape.verify_share = 0;
  LoadSchedule schedule = report.schedule;
  schedule.max_requests = flags.warm_up_requests;
  schedule.max_time.reset();
  const LoadPlan plan(shape, report.model.vocabulary_size());
  LoadDriver driver(plan, clients);
  const LoadResults results = driver.Run(schedule, kFirstWarmUpIndex, ProgressOf(line, "warm-up"));
  line.Clear();
  if (results.completed == 0) {
    return FailedPrecondition(
        "none of ", results.started, " warm-up requests completed", FirstFailureOf(results)
    );
  }
  return OkStatus();
}

Status Verify(
    const BenchFlags& flags, const LoadPlan& plan, BenchReport& report, ProgressLine& line
) {
  if (plan.shape().verify_share == 0 || report.results.gave_up) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(ClientOptions options, ReadConnectionFlags(flags.connection));
  options.deadline = report.schedule.time_limit;
  const Client client(flags.connection.server, options);
  const std::vector<VerifiableRequest>& requests = report.results.verifiable;
  const auto on_progress = [&](int64_t done) {
    LoadProgress progress;
    progress.ended = done;
    progress.done_share = static_cast<double>(done) / static_cast<double>(requests.size());
    line.Draw("run again alone", progress);
  };
  ASSIGN_OR_RETURN(report.verification, VerifyAlone(client, plan, requests, on_progress));
  return OkStatus();
}

Status Bench(const BenchFlags& flags) {
  BenchReport report;
  std::optional<ReportFile> file;
  if (!flags.output_path.empty()) {
    ASSIGN_OR_RETURN(file, ReportFile::Open(flags.output_path));
  }
  ASSIGN_OR_RETURN(report.shape, ShapeOf(flags));
  report.server = flags.connection.server;
  report.schedule = ScheduleOf(flags);
  report.prompts_path = flags.prompts_path;
  report.connections = flags.connections;
  report.warm_up_requests = flags.warm_up_requests;
  ASSIGN_OR_RETURN(const ClientOptions connection, ReadConnectionFlags(flags.connection));
  ClientOptions short_calls = connection;
  short_calls.deadline = kShortCallTimeout;
  const Client client(flags.connection.server, short_calls);
  ASSIGN_OR_RETURN(report.model, AskModelInfo(client));
  RETURN_IF_ERROR(CheckShape(report.shape, report.model));

  const LoadClients clients = ConnectLoad(flags.connection.server, connection, flags.connections);
  ProgressLine line;
  RETURN_IF_ERROR(WarmUp(flags, report, clients, line));
  const LoadPlan plan(report.shape, report.model.vocabulary_size());
  const ServerCounters before = ReadServerCounters(client);
  LoadDriver driver(plan, clients);
  report.results = driver.Run(report.schedule, 0, ProgressOf(line, "load"));
  report.server_counters = DifferenceOf(before, ReadServerCounters(client));
  AddStepRatios(report.server_counters);
  const Status verified = Verify(flags, plan, report, line);
  line.Clear();

  std::cout << TableOf(report) << std::flush;
  if (file.has_value()) {
    RETURN_IF_ERROR(file->Write(JsonOf(report).dump(1) + "\n"));
  }
  RETURN_IF_ERROR(verified);
  return VerdictOn(report);
}

}  // namespace

void AddBenchCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* const command = app.add_subcommand(
      "bench", "Send load to a running server and measure throughput and latencies"
  );
  AddBenchFlags(*command, *flags);
  command->callback([flags, &run] { run = [flags] { return Bench(*flags); }; });
}

}  // namespace switchyard
