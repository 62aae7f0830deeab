#include "tests/gpu/gpu_report.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "program/text_table.h"

namespace switchyard {
namespace {

using Json = nlohmann::ordered_json;

std::string Fixed(double value, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value;
  return std::move(text).str();
}

std::string Percent(double share) {
  return Fixed(100 * share, 0) + " %";
}

std::string Verdict(double share, double target) {
  return share >= target ? "met" : "missed";
}

double RooflineTokens(const GpuReport& report, const DecodeRow& row) {
  return static_cast<double>(row.batch) * report.copy_bandwidth() /
         (row.weight_bytes + row.kv_bytes);
}

double TokensPerSecond(const DecodeRow& row) {
  return static_cast<double>(row.batch) / row.step_seconds;
}

double ShareOf(const GpuReport& report, const KernelRow& row) {
  return static_cast<double>(row.bytes) / row.seconds / report.copy_bandwidth();
}

double ShareOf(const GpuReport& report, const PrefillRow& row) {
  return static_cast<double>(PrefillFlops(*report.shape, row.tokens)) / row.seconds /
         report.matrix.flops_per_second;
}

Json JsonOf(const GpuReport& report, const KernelRow& row) {
  return {
      {"name", row.name},
      {"batch", row.batch},
      {"bytes", row.bytes},
      {"seconds", row.seconds},
      {"share_of_copy", ShareOf(report, row)}};
}

Json JsonOf(const GpuReport& report, const DecodeRow& row) {
  const double roofline = RooflineTokens(report, row);
  const double share = TokensPerSecond(row) / roofline;
  Json json = {
      {"batch", row.batch},
      {"context", row.context},
      {"steps", row.steps},
      {"step_seconds", row.step_seconds},
      {"tokens_per_second", TokensPerSecond(row)},
      {"weight_bytes", row.weight_bytes},
      {"kv_bytes", row.kv_bytes},
      {"roofline_tokens_per_second", roofline},
      {"share_of_roofline", share}};
  if (const std::optional<double> target = DecodeTarget(row.batch)) {
    json["target"] = *target;
    json["verdict"] = Verdict(share, *target);
  }
  return json;
}

std::string PrefillVerdict(const GpuReport& report) {
  return report.matrix.source == "cublas"
             ? Verdict(ShareOf(report, *report.prefill), kPrefillTarget)
             : "not judged without cuBLAS";
}

Json PrefillJson(const GpuReport& report) {
  const PrefillRow& row = *report.prefill;
  return {
      {"tokens", row.tokens},
      {"seconds", row.seconds},
      {"tokens_per_second", static_cast<double>(row.tokens) / row.seconds},
      {"flops", PrefillFlops(*report.shape, row.tokens)},
      {"share_of_matrix_rate", ShareOf(report, row)},
      {"target", kPrefillTarget},
      {"verdict", PrefillVerdict(report)}};
}

std::string DecodeTable(const GpuReport& report) {
  TextTable table({"decode", "tokens/s", "roofline", "share", "GB a step", "target", "verdict"});
  for (const DecodeRow& row : report.decodes) {
    const double roofline = RooflineTokens(report, row);
    const double share = TokensPerSecond(row) / roofline;
    const std::optional<double> target = DecodeTarget(row.batch);
    table.AddRow(
        {Concat("batch ", row.batch),
         Fixed(TokensPerSecond(row), 0),
         Fixed(roofline, 0),
         Percent(share),
         Fixed((row.weight_bytes + row.kv_bytes) / 1e9, 2),
         target ? Percent(*target) : "",
         target ? Verdict(share, *target) : ""}
    );
  }
  return table.ToString();
}

std::string PrefillTable(const GpuReport& report) {
  const PrefillRow& row = *report.prefill;
  const double share = ShareOf(report, row);
  const double flops = share * report.matrix.flops_per_second;
  TextTable table({"prefill", "tokens/s", "TFLOP/s", "of matrix rate", "target", "verdict"});
  table.AddRow(
      {Concat(row.tokens, " tokens"),
       Fixed(static_cast<double>(row.tokens) / row.seconds, 0),
       Fixed(flops / 1e12, 1),
       Percent(share),
       Percent(kPrefillTarget),
       PrefillVerdict(report)}
  );
  return table.ToString();
}

std::string KernelTable(const GpuReport& report) {
  TextTable table({"kernel", "batch", "us", "kB", "of copy"});
  for (const KernelRow& row : report.kernels) {
    table.AddRow(
        {row.name,
         Concat(row.batch),
         Fixed(row.seconds * 1e6, 1),
         Fixed(static_cast<double>(row.bytes) / 1e3, 1),
         Percent(ShareOf(report, row))}
    );
  }
  return table.ToString();
}

}  // namespace

std::optional<double> DecodeTarget(int64_t batch) {
  switch (batch) {
    case 1:
      return 0.75;
    case 64:
      return 0.60;
    default:
      return std::nullopt;
  }
}

Json JsonOf(const GpuReport& report) {
  Json json = {
      {"schema", 1},
      {"shape", report.shape->name},
      {"copy_bytes_per_second", {{"before", report.copy_before}, {"after", report.copy_after}}},
      {"matrix_flops_per_second",
       {{"rate", report.matrix.flops_per_second}, {"source", report.matrix.source}}}};
  json["kernels"] = Json::array();
  for (const KernelRow& row : report.kernels) {
    json["kernels"].push_back(JsonOf(report, row));
  }
  json["decode"] = Json::array();
  for (const DecodeRow& row : report.decodes) {
    json["decode"].push_back(JsonOf(report, row));
  }
  if (report.prefill.has_value()) {
    json["prefill"] = PrefillJson(report);
  }
  return json;
}

std::string TableOf(const GpuReport& report) {
  std::string text = Concat(
      report.shape->name,
      "\ndevice copy  ",
      Fixed(report.copy_before / 1e9, 0),
      " GB/s before, ",
      Fixed(report.copy_after / 1e9, 0),
      " GB/s after, read and written\nBF16 matrix  ",
      Fixed(report.matrix.flops_per_second / 1e12, 1),
      " TFLOP/s (",
      report.matrix.source,
      ")\n"
  );
  if (!report.decodes.empty()) {
    text += "\n" + DecodeTable(report);
  }
  if (report.prefill.has_value()) {
    text += "\n" + PrefillTable(report);
  }
  if (!report.kernels.empty()) {
    text += "\n" + KernelTable(report);
  }
  return text;
}

}  // namespace switchyard
