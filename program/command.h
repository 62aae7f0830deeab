#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/status.h"

// One file for each command: it declares its flags and says what to run once all flags are parsed.

namespace switchyard {

// Set by the command that was chosen on the command line.
using RunCommand = std::function<Status()>;

void AddServeCommand(CLI::App& app, RunCommand& run);
void AddGenerateCommand(CLI::App& app, RunCommand& run);
void AddLogitsCommand(CLI::App& app, RunCommand& run);
void AddScoreCommand(CLI::App& app, RunCommand& run);
void AddInspectCommand(CLI::App& app, RunCommand& run);
void AddExpertsCommand(CLI::App& app, RunCommand& run);
void AddBenchCommand(CLI::App& app, RunCommand& run);
void AddHealthCommand(CLI::App& app, RunCommand& run);
void AddLoadCommand(CLI::App& app, RunCommand& run);
void AddApiKeyCommand(CLI::App& app, RunCommand& run);

}  // namespace switchyard
