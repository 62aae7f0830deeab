#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "clients/cpp/client.h"
#include "program/command.h"
#include "program/completion_printer.h"
#include "program/connection_flags.h"
#include "program/generation_flags.h"
#include "program/local_generation.h"
#include "program/model_flags.h"
#include "server/http/message_json.h"
#include "server/loaded_model.h"

namespace switchyard {
namespace {

struct GenerateFlags {
  ConnectionFlags connection;
  ModelFlags model;
  GenerationFlags generation;
  bool stats = false;
  CompletionFormat format = CompletionFormat::kText;
  std::string trace_path;  // empty: no routing trace
};

// One JSON object a line for each run of tokens. Writes nothing without a path.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path) : path_(path) {
    if (!path.empty()) {
      file_.open(path, std::ios::binary);
    }
  }

  void Write(const v1::RoutingTrace& trace) { file_ << ToJson(trace).dump() << '\n'; }

  // FAILED_PRECONDITION when something could not be written.
  Status Check() {
    file_.flush();
    return path_.empty() || file_.good()
               ? OkStatus()
               : FailedPrecondition(path_, ": cannot be written; choose another place");
  }

 private:
  std::string path_;
  std::ofstream file_;
};

StatusOr<v1::Finished> GenerateHere(
    const ModelFlags& flags,
    const v1::GenerateRequest& request,
    CompletionPrinter& printer,
    TraceFile& trace_file
) {
  // A terminal may take its time.
  ServingState state{ServingOptions{.outbox_bytes = INT64_MAX}};
  LoadOptions options;
  options.backend = BackendOptionsOf(flags);
  options.weights = WeightOptionsOf(flags);
  ASSIGN_OR_RETURN(std::unique_ptr<LoadedModel> model, LoadModel(flags.folder, options));
  state.SetModel(std::move(model));
  return GenerateLocally(state, request, [&](const TokenStream::Part& part) {
    std::ranges::for_each(part.routing, [&](const auto& trace) { trace_file.Write(trace); });
    if (!part.prompt.tokens().empty()) {
      printer.OnPromptLogprobs(part.prompt);
    }
    if (!part.delta.token_ids().empty() || !part.delta.text().empty()) {
      printer.OnDelta(part.delta);
    }
  });
}

Status Generate(const GenerateFlags& flags) {
  ASSIGN_OR_RETURN(v1::GenerateRequest request, RequestOf(flags.generation));
  TraceFile trace_file(flags.trace_path);
  RETURN_IF_ERROR(trace_file.Check());
  if (!flags.trace_path.empty()) {
    request.mutable_output()->set_routing(true);
  }
  CompletionPrinter printer(flags.format, flags.generation.completions.value_or(1) > 1);
  StatusOr<v1::Finished> finished = v1::Finished();
  if (flags.connection.server.empty()) {
    finished = GenerateHere(flags.model, request, printer, trace_file);
  } else {
    ASSIGN_OR_RETURN(const ClientOptions options, ReadConnectionFlags(flags.connection));
    finished = Client(flags.connection.server, options)
                   .Generate(
                       request,
                       [&printer](const v1::Delta& delta) {
                         printer.OnDelta(delta);
                         return StreamVerdict::kContinue;
                       },
                       [&printer](const v1::PromptLogprobs& logprobs) {
                         printer.OnPromptLogprobs(logprobs);
                       },
                       [&trace_file](const v1::RoutingTrace& trace) { trace_file.Write(trace); }
                   );
  }
  RETURN_IF_ERROR(finished.status());
  printer.OnFinished(*finished);
  if (flags.stats) {
    std::cerr << DescribeCompletion(*finished) << std::endl;
  }
  return trace_file.Check();
}

// Option groups let CLI11 check that exactly one of their options is given.
void AddPlaceFlags(CLI::App& command, GenerateFlags& flags) {
  const std::string where_title = "Where (one of these)";
  CLI::Option_group* const where = command.add_option_group(where_title);
  where->add_option("--server", flags.connection.server, "A running server, HOST:PORT")
      ->type_name("ADDRESS")
      ->group(where_title);
  where
      ->add_option(
          "--model", flags.model.folder, "A model folder, run in this process without a server"
      )
      ->type_name("DIR")
      ->group(where_title);
  where->require_option(1);
}

void AddOutputFlags(CLI::App& command, GenerateFlags& flags) {
  const std::map<std::string, CompletionFormat> formats = {
      {"text", CompletionFormat::kText},
      {"ids", CompletionFormat::kIds},
      {"json", CompletionFormat::kJson}};
  command
      .add_option(
          "--format",
          flags.format,
          "text as it comes, token ids, or json: one object a line for each event"
      )
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("text|ids|json [text]");
  command
      .add_option(
          "--trace-routing",
          flags.trace_path,
          "Write the experts of each token to a file: one JSON object a line for each run of tokens"
      )
      ->type_name("FILE");
  command.add_flag(
      "--stats", flags.stats, "Print tokens/s and the time to the first token to standard error"
  );
}

}  // namespace

void AddGenerateCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<GenerateFlags>();
  CLI::App* const command = app.add_subcommand(
      "generate", "Continue a prompt and print the completion to standard output as it is produced"
  );
  command->footer(
      "What is not given takes the model's default (generation_config.json). --device, --dtype and "
      "--threads\n"
      "are for --model only."
  );
  AddPlaceFlags(*command, *flags);
  AddGenerationFlags(*command, flags->generation);
  AddOutputFlags(*command, *flags);
  AddComputeFlags(*command, flags->model);
  AddConnectionFlags(*command, flags->connection);
  command->callback([flags, &run] { run = [flags] { return Generate(*flags); }; });
}

}  // namespace switchyard
