#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "switchyard/v1/experts.pb.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// How the routers of a model spread their work over some text or traffic, kept in a JSON file to
// compare later work with:
//   {"format": "switchyard-expert-baseline", "version": 1, "model": NAME, "routers":
//    [{"layer": 0, "kind": "attn", "heads": 1, "experts": 8, "top_k": 2, "loads": [12, ...]}, ...]}
// `loads` are assignments, heads * experts of them, head after head.
struct RouterBaseline {
  int32_t layer = 0;
  std::string kind;
  int32_t heads = 1;
  int32_t experts = 0;  // of each head
  int32_t top_k = 0;
  std::vector<int64_t> loads;
};

struct ExpertBaseline {
  std::string model;  // that it was made with; for people
  std::vector<RouterBaseline> routers;
};

// INVALID_ARGUMENT for a file that is not such a baseline, NOT_FOUND for one that cannot be read;
// both name the file and what is wrong.
StatusOr<ExpertBaseline> ReadExpertBaseline(const std::filesystem::path& path);
Status WriteExpertBaseline(const std::filesystem::path& path, const ExpertBaseline& baseline);

// FAILED_PRECONDITION when it is not of exactly these routers, with the first difference.
Status CheckBaselineFits(const ExpertBaseline& baseline, const v1::GetModelInfoResponse& info);

// FAILED_PRECONDITION when a router has not routed anything yet.
StatusOr<ExpertBaseline> BaselineOf(const v1::GetExpertStatsResponse& stats);

}  // namespace switchyard
