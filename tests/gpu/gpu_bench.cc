// How fast the CUDA backend is, next to what the card can do:
//   build/cuda/tests/gpu/gpu_bench --shape jetmoe-8b [--batch 1 8 64 256] [--json FILE]
//
// Anchors first: the bandwidth of a copy within the device, and the rate of a BF16 matrix product.
// Then the verbs of a decode step one by one, as shares of the copy; then a random model of that
// shape, made on the device, in an engine as a server has it: decode steps beside the bytes that
// they have to read, and a prefill beside the matrix rate. The copy is measured again at the end.
// The same program runs on the CPU under the stand-in, with --quick and a tiny shape; what it
// measures there means nothing.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "kernels/backend.h"
#include "program/bench/bench_report.h"
#include "tests/gpu/gpu_report.h"

namespace switchyard {
namespace {

struct Options {
  std::string shape = "jetmoe-8b";
  std::string device = "cuda";
  std::vector<int64_t> batches = {1, 8, 64, 256};
  std::vector<int64_t> kernel_batches = {1, 64};
  int64_t context = 128;
  int64_t kernel_context = 1024;
  int64_t steps = 64;
  int64_t prefill_tokens = 4096;
  int repeats = 5;
  bool quick = false;
  std::string json;

  // Far more than the card's cache of 50 MB.
  int64_t RotationBytes() const { return quick ? 0 : int64_t{256} << 20; }
  int64_t BytesPerRepeat() const { return quick ? 0 : int64_t{2} << 30; }
  int64_t CopyBytes() const { return int64_t{1} << (quick ? 16 : 30); }
  int64_t MatrixSize() const { return quick ? 32 : 8192; }
};

Status MeasureKernels(const Options& options, const ModelShape& shape, GpuReport& report) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Ops> ops, MakeOps({.device = options.device}));
  ASSIGN_OR_RETURN(report.copy_before, CopyBandwidth(*ops, options.CopyBytes(), options.repeats));
  ASSIGN_OR_RETURN(report.matrix, MeasureMatrixRate(*ops, options.MatrixSize(), options.repeats));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<KernelBench> bench,
      KernelBench::Create(
          *ops,
          shape,
          {.timer = {.repeats = options.repeats, .bytes_per_repeat = options.BytesPerRepeat()},
           .rotation_bytes = options.RotationBytes(),
           .context = options.kernel_context}
      )
  );
  for (const int64_t batch : options.kernel_batches) {
    RETURN_IF_ERROR(bench->Measure(batch, report.kernels));
  }
  return OkStatus();
}

Status MeasureModel(const Options& options, const ModelShape& shape, GpuReport& report) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ServedModel> model,
      ServedModel::Create(
          shape,
          {.device = options.device,
           .max_batch = *std::max_element(options.batches.begin(), options.batches.end()),
           .context = options.context,
           .steps = options.steps,
           .prefill_tokens = options.prefill_tokens}
      )
  );
  for (const int64_t batch : options.batches) {
    ASSIGN_OR_RETURN(const DecodeRow row, model->MeasureDecode(batch));
    report.decodes.push_back(row);
  }
  ASSIGN_OR_RETURN(report.prefill, model->MeasurePrefill(options.repeats));
  return OkStatus();
}

StatusOr<GpuReport> Measure(const Options& options, const ModelShape& shape) {
  GpuReport report;
  report.shape = &shape;
  RETURN_IF_ERROR(MeasureKernels(options, shape, report));
  RETURN_IF_ERROR(MeasureModel(options, shape, report));
  ASSIGN_OR_RETURN(const std::unique_ptr<Ops> ops, MakeOps({.device = options.device}));
  ASSIGN_OR_RETURN(report.copy_after, CopyBandwidth(*ops, options.CopyBytes(), options.repeats));
  return report;
}

Status Run(const Options& options) {
  std::optional<ReportFile> file;
  if (!options.json.empty()) {
    ASSIGN_OR_RETURN(file, ReportFile::Open(options.json));
  }
  ASSIGN_OR_RETURN(const GpuReport report, Measure(options, *FindModelShape(options.shape)));
  std::fputs(TableOf(report).c_str(), stdout);
  return file.has_value() ? file->Write(JsonOf(report).dump(1) + "\n") : OkStatus();
}

void AddOptions(CLI::App& app, Options& options) {
  const CLI::Range counts(1, 1 << 20);
  app.add_option("--shape", options.shape, "the model")->check(CLI::IsMember(ModelShapeNames()));
  app.add_option("--device", options.device, "cuda, cuda:N, or another backend to compare with");
  app.add_option("--batch", options.batches, "requests that decode side by side")->check(counts);
  app.add_option("--kernel-batch", options.kernel_batches, "tokens of a verb's call")
      ->check(counts);
  app.add_option("--context", options.context, "prompt tokens of requests that decode")
      ->check(counts);
  app.add_option("--kernel-context", options.kernel_context, "tokens behind a query of attention")
      ->check(counts);
  app.add_option("--steps", options.steps, "decode steps to measure")->check(counts);
  app.add_option("--prefill-tokens", options.prefill_tokens, "tokens of a prefill")->check(counts);
  app.add_option("--repeats", options.repeats, "measurements; the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--quick", options.quick, "sizes for a test on the CPU");
  app.add_option("--json", options.json, "a file for all numbers");
  for (CLI::Option* option : app.get_options()) {
    option->capture_default_str();
  }
}

int Main(int argc, char** argv) {
  InitializeLog();
  SetLogLevel("warning");
  Options options;
  CLI::App app("Speed of the CUDA backend next to what the card can do");
  AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  if (const Status status = Run(options); !status.ok()) {
    std::fprintf(stderr, "error: %s\n", MessageOf(status).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace switchyard

int main(int argc, char** argv) {
  return switchyard::Main(argc, argv);
}
