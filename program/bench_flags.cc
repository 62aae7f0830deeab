#include "program/bench_flags.h"

#include "base/status.h"
#include "program/bench/length_distribution.h"

namespace switchyard {
namespace {

// CLI11's own Range lets NaN through.
CLI::Validator Between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !(value >= least && value <= most)) {
          return Concat("\"", text, "\" is not a number of ", least, " to ", most);
        }
        return std::string();
      },
      "NUMBER"
  );
}

CLI::Validator Lengths() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto lengths = LengthDistribution::Parse(text);
        return lengths.ok() ? std::string() : MessageOf(lengths.status());
      },
      "LENGTHS"
  );
}

void AddLoadFlags(CLI::App& command, BenchFlags& flags) {
  const char* const title = "Load";
  CLI::Option* const concurrency =
      command
          .add_option(
              "--concurrency", flags.concurrency, "Closed loop: so many requests at any time"
          )
          ->check(CLI::Range(1, 1 << 16))
          ->capture_default_str()
          ->group(title);
  command
      .add_option(
          "--request-rate",
          flags.request_rate,
          "Open loop: so many requests per second, arriving at random whatever the server does"
      )
      ->check(Between(0.001, 1e6))
      ->excludes(concurrency)
      ->group(title);
  command
      .add_option(
          "--requests",
          flags.requests,
          Concat(
              "Requests to send; with --duration, whichever comes first; without, ",
              kDefaultBenchRequests
          )
      )
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 39))
      ->group(title);
  command
      .add_option(
          "--duration",
          flags.duration_seconds,
          "Seconds to send for; what runs then may finish, but rates count until then"
      )
      ->check(Between(0.1, 1e6))
      ->option_text("SECONDS")
      ->group(title);
  command
      .add_option(
          "--warm-up-requests", flags.warm_up_requests, "Requests before those that are measured"
      )
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str()
      ->group(title);
  command
      .add_option(
          "--connections", flags.connections, "Connections that the requests are spread over"
      )
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->group(title);
  command
      .add_option("--timeout", flags.timeout_seconds, "Seconds after which a request is given up")
      ->check(Between(0.001, 1e6))
      ->option_text("SECONDS [600]")
      ->group(title);
}

void AddRequestFlags(CLI::App& command, BenchFlags& flags) {
  const char* const title = "Requests";
  CLI::Option* const prompt_tokens =
      command
          .add_option(
              "--prompt-tokens", flags.prompt_tokens, "Lengths of prompts of random token ids"
          )
          ->check(Lengths())
          ->option_text("LENGTHS [fixed:128]")
          ->group(title);
  command
      .add_option(
          "--output-tokens",
          flags.output_tokens,
          "Lengths of completions, which are exact: the end of the sequence is ignored"
      )
      ->check(Lengths())
      ->option_text("LENGTHS [fixed:64]")
      ->group(title);
  CLI::Option* const prefix =
      command
          .add_option(
              "--shared-prefix-tokens",
              flags.shape.shared_prefix_tokens,
              "Tokens that prompts have in common, put before those of --prompt-tokens"
          )
          ->check(CLI::Range(0, 1 << 24))
          ->capture_default_str()
          ->group(title);
  command
      .add_option(
          "--shared-prefix-share",
          flags.shape.shared_prefix_share,
          "Share of the requests that begin with them"
      )
      ->check(Between(0, 1))
      ->option_text("SHARE [1]")
      ->needs(prefix)
      ->group(title);
  command
      .add_option(
          "--prompts",
          flags.prompts_path,
          "Text prompts, taken in turn: a line is {\"prompt\": \"...\", \"max_tokens\": N}"
      )
      ->option_text("FILE")
      ->excludes(prompt_tokens)
      ->excludes(prefix)
      ->group(title);
  command.add_option("--temperature", flags.shape.temperature, "Of sampling; 0 is greedy")
      ->check(Between(0, 100))
      ->option_text("FLOAT [0]")
      ->group(title);
  command
      .add_option(
          "--seed", flags.shape.seed, "The same seed sends the same requests at the same times"
      )
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(title);
}

void AddShare(CLI::App& command, const char* name, double& share, const char* description) {
  command.add_option(name, share, description)
      ->check(Between(0, 1))
      ->option_text("SHARE [0]")
      ->group("Disturbances (SHARE is 0 to 1, of the requests)");
}

void AddDisturbanceFlags(CLI::App& command, BenchFlags& flags) {
  const char* const title = "Disturbances (SHARE is 0 to 1, of the requests)";
  AddShare(
      command,
      "--cancel-share",
      flags.shape.cancel_share,
      "Cancelled at a random moment, a quarter of them before the first token"
  );
  AddShare(
      command,
      "--deadline-share",
      flags.shape.deadline_share,
      "Sent with the deadline --deadline-ms"
  );
  command.add_option("--deadline-ms", flags.deadline_ms, "Milliseconds from sending to the end")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("MS");
  command.get_option("--deadline-ms")->group(title);
  command.get_option("--deadline-share")->needs(command.get_option("--deadline-ms"));
  AddShare(
      command,
      "--stall-share",
      flags.shape.stall_share,
      "Not read for --stall-seconds at a random moment, with a window of 64 bytes"
  );
  command.add_option("--stall-seconds", flags.stall_seconds, "How long a stalled reader waits")
      ->check(Between(0, 1e6))
      ->option_text("SECONDS [5]")
      ->group(title);
}

}  // namespace

void AddBenchFlags(CLI::App& command, BenchFlags& flags) {
  command.footer(
      "LENGTHS is fixed:N, uniform:A-B or lognormal:MEDIAN,SIGMA,MAX, in tokens.\n"
      "Latencies are those of completed requests that were not stalled. The same --seed sends\n"
      "the same prompts again: a server with a prefix cache wants another one for every run.\n"
      "Exit status 1: the server could not be reached or went away, no request completed, or a\n"
      "request of --verify-share gave other tokens."
  );
  AddConnectionFlags(command, flags.connection);
  command.add_option("--server", flags.connection.server, "A running server, HOST:PORT")
      ->type_name("ADDRESS")
      ->required();
  command
      .add_option(
          "--output", flags.output_path, "Save the measurements as JSON, as a whole or not at all"
      )
      ->type_name("FILE");
  command
      .add_option(
          "--verify-share",
          flags.shape.verify_share,
          "Share of the completed requests to run again alone; exit status 1 if a token differs"
      )
      ->check(Between(0, 1))
      ->option_text("SHARE [0]");
  AddLoadFlags(command, flags);
  AddRequestFlags(command, flags);
  AddDisturbanceFlags(command, flags);
}

}  // namespace switchyard
