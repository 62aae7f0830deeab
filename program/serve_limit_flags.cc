#include "program/serve_limit_flags.h"

#include <chrono>
#include <map>

namespace switchyard {
namespace {

// "40%" -> 40; nothing when it is no percentage.
std::optional<double> PercentOf(const std::string& text) {
  double percent = 0;
  if (text.empty() || text.back() != '%' ||
      !CLI::detail::lexical_cast(text.substr(0, text.size() - 1), percent)) {
    return std::nullopt;
  }
  return percent;
}

// An error message, or nothing; the number is left in `bytes`.
std::string ReadBytes(const std::string& text, int64_t& bytes) {
  std::string number = text;
  std::string error = CLI::AsSizeValue(false)(number);
  if (error.empty() && !CLI::detail::lexical_cast(number, bytes)) {
    error = text + " is no number of bytes";
  }
  return error;
}

std::string CheckMemory(const std::string& text) {
  if (const std::optional<double> percent = PercentOf(text)) {
    return *percent > 0 && *percent <= 100 ? "" : text + " is not over 0% and up to 100%";
  }
  int64_t bytes = 0;
  return ReadBytes(text, bytes);
}

void AddEngineFlags(CLI::App& command, ServeLimitFlags& flags) {
  command
      .add_option(
          "--kv-cache-memory",
          flags.kv_cache_memory,
          "Memory for keys and values: bytes, or 512M, 2G, or 40% of what is free at the start"
      )
      ->check(CheckMemory, "")
      ->type_name("BYTES|PERCENT")
      ->capture_default_str();
  command
      .add_option(
          "--block-tokens", flags.scheduler.block_tokens, "Tokens in a block of the KV cache"
      )
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option(
          "--max-step-tokens",
          flags.scheduler.max_step_tokens,
          "Tokens that one step computes at most, of all requests together"
      )
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-running",
          flags.scheduler.max_running,
          "Requests that are computed at the same time"
      )
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command
      .add_option(
          "--growth-tokens",
          flags.scheduler.growth_tokens,
          "Blocks kept free for so many further tokens of each running request before another is "
          "admitted"
      )
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--prefix-cache",
          flags.prefix_cache,
          "Whether prompts that begin alike share what was computed for the beginning"
      )
      ->transform(CLI::Transformer(std::map<std::string, bool>{{"on", true}, {"off", false}}))
      ->option_text("on|off [on]");
  command
      .add_option(
          "--priority-ageing",
          flags.priority_ageing_seconds,
          "Waiting for so long raises a request's priority by one; 0: never"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
}

void AddServerFlags(CLI::App& command, ServeLimitFlags& flags) {
  command
      .add_option(
          "--max-queued", flags.max_queued_requests, "Requests that may wait; more are refused"
      )
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-queued-tokens",
          flags.serving.max_queued_tokens,
          "Prompt tokens that may wait, of all requests together"
      )
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command
      .add_option(
          "--max-streams", flags.serving.max_streams, "Generations that may be open, in any state"
      )
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-message-bytes",
          flags.max_message_bytes,
          "Size of a request; gRPC refuses larger ones"
      )
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(1024, 1 << 30))
      ->option_text("BYTES [16M]");
  command
      .add_option(
          "--outbox-bytes",
          flags.serving.outbox_bytes,
          "What a stream may hold for a client that reads slowly, before it is ended"
      )
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 30))
      ->option_text("BYTES [3M]");
  command
      .add_option(
          "--stall-timeout",
          flags.stall_timeout_seconds,
          "How long a client may leave its stream unread, before it is ended"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command
      .add_option(
          "--step-timeout",
          flags.step_timeout_seconds,
          "How long one step may take, before the health service says NOT_SERVING; 0: any time"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
}

void AddMetricFlags(CLI::App& command, ServeLimitFlags& flags) {
  command
      .add_option(
          "--expert-metrics",
          flags.expert_metrics,
          "Series of /metrics about experts: none, of each router, or of each expert too"
      )
      ->check(CLI::IsMember({"off", "summary", "full"}))
      ->capture_default_str();
  command
      .add_option(
          "--max-expert-series",
          flags.serving.expert_metrics.max_series,
          "Do not serve a model that makes more such series; 0: any number"
      )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  command
      .add_option(
          "--expert-baseline",
          flags.expert_baseline,
          "Tell how far routing drifts from this file, which `experts --save-baseline` wrote"
      )
      ->type_name("FILE");
}

ExpertMetricsLevel LevelOf(const std::string& name) {
  if (name == "off") {
    return ExpertMetricsLevel::kOff;
  }
  return name == "full" ? ExpertMetricsLevel::kFull : ExpertMetricsLevel::kSummary;
}

void AddRequestFlags(CLI::App& command, RequestLimits& limits) {
  constexpr int32_t kAny = 1 << 30;
  command
      .add_option(
          "--max-prompt-tokens",
          limits.max_prompt_tokens,
          "Longest prompt that is taken; 0: what the context holds"
      )
      ->check(CLI::Range(0, kAny))
      ->capture_default_str();
  command
      .add_option(
          "--max-tokens",
          limits.max_tokens,
          "Largest max_tokens that is taken; 0: what the context holds"
      )
      ->check(CLI::Range(0, kAny))
      ->capture_default_str();
  command.add_option("--max-stop-strings", limits.max_stop_strings, "Stop strings of a request")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("--max-logit-bias", limits.max_logit_bias, "Entries of a request's logit_bias")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-top-logprobs", limits.max_top_logprobs, "Largest top_logprobs that is taken"
      )
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      .add_option(
          "--max-completions",
          limits.max_completions,
          "Largest n and best_of, and widest beam search, that is taken"
      )
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option(
          "--max-continuations", limits.max_continuations, "Continuations that one Score may have"
      )
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command
      .add_option(
          "--max-trace-bytes",
          limits.max_trace_bytes,
          "Largest routing trace of a request, at 8 bytes for each expert of each token; 0: none"
      )
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->option_text("BYTES [2M]");
}

}  // namespace

void AddLimitFlags(CLI::App& command, ServeLimitFlags& flags) {
  AddEngineFlags(command, flags);
  AddServerFlags(command, flags);
  AddMetricFlags(command, flags);
  AddRequestFlags(command, flags.request);
}

void ApplyLimits(const ServeLimitFlags& flags, ServeOptions& options) {
  options.load.engine.kv_cache_percent = PercentOf(flags.kv_cache_memory);
  if (!options.load.engine.kv_cache_percent) {
    ReadBytes(flags.kv_cache_memory, options.load.engine.kv_cache_bytes);
  }
  options.load.engine.limits = flags.scheduler;
  options.load.engine.max_queued_requests = flags.max_queued_requests;
  options.load.engine.prefix_cache = flags.prefix_cache;
  options.load.engine.ageing = std::chrono::seconds(flags.priority_ageing_seconds);
  options.load.limits = flags.request;
  options.load.expert_baseline = flags.expert_baseline;
  options.server.connections.max_receive_message_bytes = flags.max_message_bytes;
  options.server.serving = flags.serving;
  options.server.serving.expert_metrics.level = LevelOf(flags.expert_metrics);
  options.server.serving.stall_timeout = std::chrono::seconds(flags.stall_timeout_seconds);
  options.server.serving.step_timeout = std::chrono::seconds(flags.step_timeout_seconds);
}

}  // namespace switchyard
