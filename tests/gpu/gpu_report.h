#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/gpu/anchors.h"
#include "tests/gpu/kernel_bench.h"
#include "tests/gpu/model_shape.h"
#include "tests/gpu/served_model.h"

namespace switchyard {

// What one run of gpu_bench measured.
struct GpuReport {
  const ModelShape* shape = nullptr;
  double copy_before = 0;  // bytes per second; what stands beside it is put beside their mean
  double copy_after = 0;
  MatrixRate matrix;
  std::vector<KernelRow> kernels;
  std::vector<DecodeRow> decodes;
  std::optional<PrefillRow> prefill;

  double copy_bandwidth() const { return (copy_before + copy_after) / 2; }
};

// Shares of the roofline that are aimed at: three quarters for one request, 60 % for 64, and of the
// matrix rate half for prefill.
std::optional<double> DecodeTarget(int64_t batch);
inline constexpr double kPrefillTarget = 0.5;

nlohmann::ordered_json JsonOf(const GpuReport& report);
// For people; ends with a newline.
std::string TableOf(const GpuReport& report);

}  // namespace switchyard
