#include <iostream>
#include <memory>

#include "base/log.h"
#include "program/command.h"
#include "program/help_formatter.h"

namespace switchyard {
namespace {

constexpr int kExitRuntimeError = 1;
constexpr int kExitUsageError = 2;

void Describe(CLI::App& app) {
  app.description(
      "Switchyard: an inference server for language models whose attention layers are mixtures of "
      "experts."
  );
  app.footer(
      "switchyard COMMAND --help describes a command. Exit status: 0 success, 1 failure, 2 wrong "
      "usage."
  );
  app.set_version_flag("--version", "switchyard " SWITCHYARD_VERSION);
  app.require_subcommand(1);
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(34);
  app.formatter(formatter);
}

int Run(int argc, char** argv) {
  CLI::App app("", "switchyard");
  RunCommand run;
  Describe(app);
  AddServeCommand(app, run);
  AddGenerateCommand(app, run);
  AddLogitsCommand(app, run);
  AddScoreCommand(app, run);
  AddInspectCommand(app, run);
  AddExpertsCommand(app, run);
  AddBenchCommand(app, run);
  AddHealthCommand(app, run);
  AddLoadCommand(app, run);
  AddApiKeyCommand(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version end the parse in this way too, with exit code 0.
    return app.exit(error) == 0 ? 0 : kExitUsageError;
  }

  InitializeLog();
  // Commands print their results and errors themselves; `serve` has a flag for its log.
  SetLogLevel("warning");
  const Status status = run();
  if (!status.ok()) {
    std::cerr << "error: " << MessageOf(status) << std::endl;
    return kExitRuntimeError;
  }
  return 0;
}

}  // namespace
}  // namespace switchyard

int main(int argc, char** argv) {
  return switchyard::Run(argc, argv);
}
