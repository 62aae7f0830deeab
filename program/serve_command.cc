#include "base/log.h"
#include "program/command.h"
#include "program/model_flags.h"
#include "server/serve.h"

namespace switchyard {
namespace {

struct ServeFlags {
  ModelFlags model;
  std::string name;
  std::string listen_address = "0.0.0.0:50051";
  int64_t kv_cache_bytes = EngineOptions().kv_cache_bytes;
  SchedulerLimits limits;
  int32_t max_queued_requests = EngineOptions().max_queued_requests;
  int32_t default_max_tokens = LoadOptions().default_max_tokens;
  int32_t drain_timeout_seconds = 15;
  std::string log_level = "info";
};

Status Serve(const ServeFlags& flags) {
  SetLogLevel(flags.log_level);
  ServeOptions options;
  options.model_folder = flags.model.folder;
  options.server.listen_address = flags.listen_address;
  options.load.name = flags.name;
  options.load.backend =
      BackendOptions{.device = flags.model.device, .threads = flags.model.threads};
  options.load.weights = WeightOptionsOf(flags.model);
  options.load.engine.limits = flags.limits;
  options.load.engine.kv_cache_bytes = flags.kv_cache_bytes;
  options.load.engine.max_queued_requests = flags.max_queued_requests;
  options.load.default_max_tokens = flags.default_max_tokens;
  options.drain_timeout = std::chrono::seconds(flags.drain_timeout_seconds);
  if (RunServer(options) != 0) {
    return FailedPrecondition("the server did not start; its last log line says why");
  }
  return OkStatus();
}

void AddLimitFlags(CLI::App& command, ServeFlags& flags) {
  command
      .add_option(
          "--kv-cache-memory",
          flags.kv_cache_bytes,
          "Memory for keys and values: bytes, or 512M, 2G"
      )
      ->transform(CLI::AsSizeValue(false))
      ->option_text("BYTES [256M]");
  command
      .add_option("--block-tokens", flags.limits.block_tokens, "Tokens in a block of the KV cache")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option(
          "--max-step-tokens",
          flags.limits.max_step_tokens,
          "Tokens that one step computes at most, of all requests together"
      )
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-running", flags.limits.max_running, "Requests that are computed at the same time"
      )
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command
      .add_option(
          "--max-queued", flags.max_queued_requests, "Requests that may wait; more are refused"
      )
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--default-max-tokens",
          flags.default_max_tokens,
          "Tokens to generate for a request that does not say"
      )
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
}

}  // namespace

void AddServeCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* const command =
      app.add_subcommand("serve", "Serve a model over gRPC until SIGTERM or Ctrl-C");
  command->footer(
      "Logs to standard error. `switchyard health --server HOST:PORT --wait 60` returns when the "
      "model is loaded.\n"
      "There is no authentication: listen on 127.0.0.1, or keep the port inside a trusted network."
  );
  command
      ->add_option(
          "--model", flags->model.folder, "Model folder: config.json, safetensors, tokenizer"
      )
      ->type_name("DIR")
      ->required();
  command->add_option(
      "--name", flags->name, "Name that clients may ask for; the folder's when absent"
  );
  command
      ->add_option(
          "--listen",
          flags->listen_address,
          "HOST:PORT to listen on; port 0 takes any free port, which the log tells"
      )
      ->type_name("ADDRESS")
      ->capture_default_str();
  AddComputeFlags(*command, flags->model);
  AddLimitFlags(*command, *flags);
  command
      ->add_option(
          "--drain-timeout",
          flags->drain_timeout_seconds,
          "How long running requests may take to finish after SIGTERM"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command->add_option("--log-level", flags->log_level, "How much to log")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  command->callback([flags, &run] { run = [flags] { return Serve(*flags); }; });
}

}  // namespace switchyard
