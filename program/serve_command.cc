#include <map>

#include "base/log.h"
#include "program/command.h"
#include "program/model_flags.h"
#include "program/serve_limit_flags.h"
#include "program/serve_security_flags.h"
#include "server/serve.h"

namespace switchyard {
namespace {

struct ServeFlags {
  ModelFlags model;
  std::string name;
  std::string listen_address = "0.0.0.0:50051";
  std::string http_address;
  ServeLimitFlags limits;
  ServeSecurityFlags security;
  int32_t default_max_tokens = LoadOptions().default_max_tokens;
  int32_t drain_timeout_seconds = 15;
  std::string log_level = "info";
  std::string log_format = "text";
};

Status Serve(const ServeFlags& flags) {
  SetLogLevel(flags.log_level);
  SetLogFormat(flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  ServeOptions options;
  options.model_folder = flags.model.folder;
  options.server.listen_address = flags.listen_address;
  options.server.http.listen_address = flags.http_address;
  options.load.name = flags.name;
  options.load.backend = BackendOptionsOf(flags.model);
  options.load.weights = WeightOptionsOf(flags.model);
  ApplyLimits(flags.limits, options);
  ApplySecurity(flags.security, options);
  options.load.default_max_tokens = flags.default_max_tokens;
  options.drain_timeout = std::chrono::seconds(flags.drain_timeout_seconds);
  return WithContext(RunServer(options), "the server did not start");
}

void AddLogFlags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--log-level", flags.log_level, "How much to log")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  command.add_option("--log-format", flags.log_format, "key=value words, or a JSON object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      .add_option(
          "--log-requests",
          flags.limits.serving.log_requests,
          "Whether a request that is accepted, finished or refused makes a line"
      )
      ->transform(CLI::Transformer(std::map<std::string, bool>{{"on", true}, {"off", false}}))
      ->option_text("on|off [on]");
  command.add_flag(
      "--log-prompts",
      flags.limits.serving.log_prompts,
      "Log what clients write and what they get, 16 KiB of each; else neither is ever logged"
  );
}

}  // namespace

void AddServeCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* const command =
      app.add_subcommand("serve", "Serve a model over gRPC until SIGTERM or Ctrl-C");
  command->footer(
      "Logs to standard error. `switchyard health --server HOST:PORT --wait 60` returns when the "
      "model is loaded.\n"
      "Without --api-keys everybody who reaches a port may use it; docs/security.md."
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
  command
      ->add_option(
          "--http",
          flags->http_address,
          "HOST:PORT of the dashboard, /metrics, /healthz, /readyz and /v1/experts; none when "
          "absent"
      )
      ->type_name("ADDRESS");
  AddComputeFlags(*command, flags->model);
  AddLimitFlags(*command, flags->limits);
  AddSecurityFlags(*command, flags->security);
  command
      ->add_option(
          "--default-max-tokens",
          flags->default_max_tokens,
          "Tokens to generate for a request that does not say"
      )
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command
      ->add_option(
          "--drain-timeout",
          flags->drain_timeout_seconds,
          "How long running requests may take to finish after SIGTERM"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  AddLogFlags(*command, *flags);
  command->callback([flags, &run] { run = [flags] { return Serve(*flags); }; });
}

}  // namespace switchyard
