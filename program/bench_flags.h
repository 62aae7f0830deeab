#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "program/bench/load_plan.h"
#include "program/connection_flags.h"

namespace switchyard {

// Sent when neither a number nor a time is given.
inline constexpr int64_t kDefaultBenchRequests = 100;

// The flags of `bench`, each within its range; whether a model can be asked for it is found out
// later.
struct BenchFlags {
  ConnectionFlags connection;
  std::optional<double> request_rate;
  int32_t concurrency = 1;
  std::optional<int64_t> requests;
  std::optional<double> duration_seconds;
  int64_t warm_up_requests = 0;
  int32_t connections = 1;
  std::string prompt_tokens = "fixed:128";
  std::string output_tokens = "fixed:64";
  std::string prompts_path;
  int64_t deadline_ms = 0;
  double stall_seconds = 5;
  double timeout_seconds = 600;
  std::string output_path;
  LoadShape shape;  // what is not one of the above
};

// Declares them with their help.
void AddBenchFlags(CLI::App& command, BenchFlags& flags);

}  // namespace switchyard
