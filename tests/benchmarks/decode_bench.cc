// How fast a model too large for the caches decodes, next to what the machine can read:
//   build/release/tests/benchmarks/decode_bench [--threads N] [--steps 64] [--context 128]
//   [--layers 4]
//
// Makes a random BF16 JetMoE (770 MB as it is), feeds it a prompt and decodes one token a step. The
// bytes of a step are the weights that its kernels read (experts actually routed, dense weights,
// output head: counted by the backend, and checked here against the shapes) and the keys and values
// in the cache. "% read" is the share of the read bandwidth that the same threads reach on a plain
// sum, before and after; where those two differ by more than 10 % somebody else used the machine,
// and the run says so and fails.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/backend.h"
#include "kernels/cpu/thread_pool.h"
#include "program/offline_runner.h"
#include "tests/benchmarks/random_jetmoe.h"
#include "tests/benchmarks/read_bandwidth.h"
#include "tests/benchmarks/timing.h"
#include "tests/benchmarks/weight_memory.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

constexpr double kLargestAnchorChange = 0.10;
constexpr int kWarmUpSteps = 8;

struct Options {
  int threads = 0;
  int64_t steps = 64;
  int64_t context = 128;
  RandomJetMoeShape shape;
};

// Weight bytes that one decode step has to read, from the shapes alone: norms and biases included,
// the embedding row not.
int64_t ExpectedWeightBytes(const RandomJetMoeShape& shape) {
  const int64_t width = shape.kv_heads * shape.head_dim;
  const int64_t attention = shape.top_k * 2 * width * shape.model_dim + 2 * width * shape.model_dim;
  const int64_t feed_forward = shape.top_k * 3 * shape.feed_forward_dim * shape.model_dim;
  const int64_t routers = 2 * shape.experts * shape.model_dim;
  const int64_t layer = attention + feed_forward + routers;
  return 2 * (shape.layers * layer + shape.vocabulary_size * shape.model_dim);
}

double Anchor(int threads) {
  const StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(threads);
  CHECK(pool.ok()) << MessageOf(pool.status());
  const WeightMemory memory;
  return ReadBandwidth(**pool, memory.data(), WeightMemory::kBytes, 7);
}

struct Measured {
  double step_seconds = 0;  // median
  double weight_bytes = 0;  // of one step
  double kv_bytes = 0;
};

StatusOr<Measured> MeasureDecode(const Options& options, const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Ops> ops, MakeOps({.device = "cpu", .threads = options.threads})
  );
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Load(folder, {}, *ops));
  const int64_t room = options.context + kWarmUpSteps + options.steps + 1;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OfflineSequence> sequence,
      OfflineSequence::Create(*model, room, options.context)
  );

  std::vector<int32_t> prompt(static_cast<size_t>(options.context));
  for (size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] =
        static_cast<int32_t>((i * 7919 + 13) % static_cast<size_t>(options.shape.vocabulary_size));
  }
  ASSIGN_OR_RETURN(
      const std::span<const float> logits, sequence->Feed(prompt, LogitRows::kLast, nullptr)
  );
  CHECK(std::isfinite(logits[0])) << "logits are not finite";

  int32_t token = 17;
  const auto step = [&] {
    token = (token * 31 + 7) % static_cast<int32_t>(options.shape.vocabulary_size);
    CHECK(sequence->Feed(std::span(&token, 1), LogitRows::kLast, nullptr).ok());
  };
  for (int i = 0; i + 1 < kWarmUpSteps; ++i) {
    step();
  }
  const int64_t bytes_before = ops->WeightBytesRead();
  Measured measured;
  measured.step_seconds = MedianSeconds(static_cast<int>(options.steps), step);
  measured.weight_bytes = static_cast<double>(ops->WeightBytesRead() - bytes_before) /
                          static_cast<double>(options.steps + 1);
  measured.kv_bytes = static_cast<double>(model->kv_layout().BytesPerToken()) *
                      static_cast<double>(sequence->tokens() - options.steps / 2);
  return measured;
}

int Run(const Options& options) {
  const TemporaryFolder folder;
  std::printf(
      "writing a random JetMoE of %ld layers ...\n", static_cast<long>(options.shape.layers)
  );
  std::fflush(stdout);
  if (const Status written = WriteRandomJetMoe(folder.path(), options.shape); !written.ok()) {
    std::fprintf(stderr, "error: %s\n", MessageOf(written).c_str());
    return 1;
  }

  const double before = Anchor(options.threads);
  const StatusOr<Measured> measured = MeasureDecode(options, folder.path());
  const double after = Anchor(options.threads);
  if (!measured.ok()) {
    std::fprintf(stderr, "error: %s\n", MessageOf(measured.status()).c_str());
    return 1;
  }

  const double bandwidth = (before + after) / 2;
  const double expected = static_cast<double>(ExpectedWeightBytes(options.shape));
  const double bytes = measured->weight_bytes + measured->kv_bytes;
  const double reached = bytes / measured->step_seconds;
  std::printf(
      "read bandwidth      %8.1f GB/s before, %.1f GB/s after\n", before / 1e9, after / 1e9
  );
  std::printf(
      "weights of a step   %8.1f MB counted, %.1f MB by the shapes\n",
      measured->weight_bytes / 1e6,
      expected / 1e6
  );
  std::printf("keys and values     %8.1f MB\n", measured->kv_bytes / 1e6);
  std::printf(
      "decode step         %8.2f ms, %.1f tokens/s at batch 1\n",
      measured->step_seconds * 1e3,
      1 / measured->step_seconds
  );
  std::printf(
      "decode reads        %8.1f GB/s, %.0f %% of read bandwidth\n",
      reached / 1e9,
      100 * reached / bandwidth
  );

  if (std::abs(measured->weight_bytes - expected) > 0.01 * expected) {
    std::printf("FAILED: counted bytes differ from the shapes by more than 1 %%\n");
    return 1;
  }
  if (std::abs(after - before) > kLargestAnchorChange * before) {
    std::printf(
        "REJECTED: the read bandwidth changed by more than 10 %% during the run; repeat on a quiet "
        "machine\n"
    );
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace switchyard

int main(int argc, char** argv) {
  switchyard::Options options;
  CLI::App app("Decode speed of a model too large for the caches, next to the read bandwidth");
  app.add_option("--threads", options.threads, "threads; 0: one for each core");
  app.add_option("--steps", options.steps, "decode steps to measure")->check(CLI::Range(1, 2000));
  app.add_option("--context", options.context, "prompt tokens before them")
      ->check(CLI::Range(1, 2000));
  app.add_option("--layers", options.shape.layers, "layers of the model")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  if (options.threads == 0) {
    options.threads = switchyard::UsableCores();
  }
  return switchyard::Run(options);
}
