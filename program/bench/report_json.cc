#include "program/bench/bench_report.h"

namespace switchyard {
namespace {

using Json = nlohmann::ordered_json;

double SecondsOf(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Json LatencyOf(const LatencyHistogram& histogram) {
  return {
      {"count", histogram.count()},
      {"mean", histogram.MeanSeconds()},
      {"p50", histogram.PercentileSeconds(50)},
      {"p90", histogram.PercentileSeconds(90)},
      {"p99", histogram.PercentileSeconds(99)},
      {"max", histogram.MaxSeconds()}};
}

Json ModelOf(const v1::GetModelInfoResponse& model) {
  return {
      {"name", model.model()},
      {"family", model.family()},
      {"parameters_total", model.parameters_total()},
      {"parameters_active", model.parameters_active()},
      {"device", model.device()},
      {"server_version", model.server_version()},
      {"kv_tokens_total", model.kv_tokens_total()},
      {"max_step_tokens", model.max_step_tokens()}};
}

// What is not used is null.
Json LoadOf(const BenchReport& report) {
  const LoadShape& shape = report.shape;
  const LoadSchedule& schedule = report.schedule;
  Json load = {
      {"request_rate", nullptr},
      {"concurrency", nullptr},
      {"max_requests", nullptr},
      {"max_seconds", nullptr},
      {"connections", report.connections},
      {"warm_up_requests", report.warm_up_requests},
      {"seed", shape.seed},
      {"prompts", nullptr},
      {"prompt_tokens", nullptr},
      {"output_tokens", shape.output_tokens.ToString()},
      {"shared_prefix_tokens", shape.shared_prefix_tokens},
      {"shared_prefix_share", shape.shared_prefix_share},
      {"temperature", shape.temperature},
      {"cancel_share", shape.cancel_share},
      {"deadline_share", shape.deadline_share},
      {"deadline_seconds", SecondsOf(schedule.deadline)},
      {"stall_share", shape.stall_share},
      {"stall_seconds", SecondsOf(schedule.stall)},
      {"verify_share", shape.verify_share}};
  if (schedule.requests_per_second.has_value()) {
    load["request_rate"] = *schedule.requests_per_second;
  } else {
    load["concurrency"] = schedule.concurrency;
  }
  if (schedule.max_requests.has_value()) {
    load["max_requests"] = *schedule.max_requests;
  }
  if (schedule.max_time.has_value()) {
    load["max_seconds"] = SecondsOf(*schedule.max_time);
  }
  if (report.prompts_path.empty()) {
    load["prompt_tokens"] = shape.prompt_tokens.ToString();
  } else {
    load["prompts"] = report.prompts_path;
  }
  return load;
}

Json RequestsOf(const LoadResults& results) {
  return {
      {"started", results.started},
      {"completed", results.completed},
      {"completed_per_second", results.PerSecond(results.completed_within_window)},
      {"cancelled", results.cancelled},
      {"past_deadline", results.past_deadline},
      {"stalled", results.stalled},
      {"stall_ended", results.stall_ended},
      {"failed", results.failed}};
}

Json TokensOf(const LoadResults& results) {
  return {
      {"generated", results.received_tokens},
      {"generated_per_second", results.PerSecond(results.received_tokens_within_window)},
      {"prompt", results.prompt_tokens},
      {"prompt_per_second", results.PerSecond(results.prompt_tokens_within_window)},
      {"cached_prompt", results.cached_prompt_tokens}};
}

Json FailuresOf(const LoadResults& results) {
  Json failures = Json::object();
  for (const auto& [code, failure] : results.failures) {
    failures[NameOf(code)] = {
        {"count", failure.count},
        {"first_message", failure.first_message},
        {"seconds_until_answer", LatencyOf(failure.until_answer)}};
  }
  return failures;
}

Json VerificationOf(const Verification& verification) {
  Json mismatches = Json::array();
  for (const Mismatch& mismatch : verification.mismatches) {
    mismatches.push_back(
        {{"request", mismatch.index},
         {"prompt_tokens", mismatch.prompt_tokens},
         {"position", mismatch.position},
         {"token_under_load", mismatch.under_load},
         {"token_alone", mismatch.alone}}
    );
  }
  return {{"checked", verification.checked}, {"mismatches", mismatches}};
}

}  // namespace

nlohmann::ordered_json JsonOf(const BenchReport& report) {
  const LoadResults& results = report.results;
  Json json = {
      {"schema", 1},
      {"server", report.server},
      {"model", ModelOf(report.model)},
      {"load", LoadOf(report)},
      {"measured_seconds", results.window_seconds},
      {"gave_up", results.gave_up},
      {"requests", RequestsOf(results)},
      {"tokens", TokensOf(results)},
      {"latency_seconds",
       {{"time_to_first_token", LatencyOf(results.time_to_first_token)},
        {"inter_token", LatencyOf(results.inter_token)},
        {"message_gap", LatencyOf(results.message_gap)},
        {"end_to_end", LatencyOf(results.end_to_end)},
        {"server_queue", LatencyOf(results.server_queue)}}},
      {"failures", FailuresOf(results)},
      {"server_counters", Json::object()},
      {"verification", nullptr}};
  for (const auto& [name, value] : report.server_counters) {
    json["server_counters"][name] = value;
  }
  if (report.verification.has_value()) {
    json["verification"] = VerificationOf(*report.verification);
  }
  return json;
}

}  // namespace switchyard
