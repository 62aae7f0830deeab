#include <iostream>
#include <nlohmann/json.hpp>

#include "program/command.h"
#include "program/model_flags.h"
#include "program/model_report.h"

namespace switchyard {
namespace {

struct InspectFlags {
  std::string folder;
  bool json = false;
};

Status Inspect(const InspectFlags& flags) {
  // The backend keeps pointing into the memory map, so that matrices are not read; and it is fast
  // at the tables that models with Transformer-XL positions get while loading.
  ASSIGN_OR_RETURN(
      const OfflineModel opened, OpenModel(ModelFlags{.folder = flags.folder, .device = "cpu"})
  );
  const StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      LoadTokenizer(flags.folder, TokenizerDefaultsOf(opened.model->config()));
  if (!tokenizer.ok() && tokenizer.status().code() != StatusCode::kNotFound) {
    return tokenizer.status();
  }
  const ModelReport report{
      .folder = flags.folder,
      .model = *opened.model,
      .tokenizer = tokenizer.ok() ? tokenizer->get() : nullptr};
  if (flags.json) {
    std::cout << ToJson(report).dump(1) << std::endl;
  } else {
    std::cout << ToText(report) << std::flush;
  }
  return OkStatus();
}

}  // namespace

void AddInspectCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App* const command = app.add_subcommand(
      "inspect", "Check the files of a model folder and show its dimensions, parameters and memory"
  );
  command->add_option("folder", flags->folder, "Model folder")->type_name("DIR")->required();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &run] { run = [flags] { return Inspect(*flags); }; });
}

}  // namespace switchyard
