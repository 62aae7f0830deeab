#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "server/serve.h"

namespace switchyard {

// How much `serve` takes on: the flags with their defaults, as they are parsed.
struct ServeLimitFlags {
  std::string kv_cache_memory = "256M";
  SchedulerLimits scheduler;
  int32_t max_queued_requests = EngineOptions().max_queued_requests;
  bool prefix_cache = true;
  int32_t priority_ageing_seconds = 10;
  RequestLimits request;
  ServingOptions serving;
  std::string expert_metrics = "summary";
  std::string expert_baseline;
  int32_t max_message_bytes = ConnectionLimits().max_receive_message_bytes;
  int32_t stall_timeout_seconds = 30;
  int32_t step_timeout_seconds = 60;
};

void AddLimitFlags(CLI::App& command, ServeLimitFlags& flags);

// Requires: the flags were parsed, which checks their values.
void ApplyLimits(const ServeLimitFlags& flags, ServeOptions& options);

}  // namespace switchyard
