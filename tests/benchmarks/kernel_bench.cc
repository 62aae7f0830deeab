// How fast the verbs of the cpu backend are, next to what the machine can read and to oneDNN:
//   build/release/tests/benchmarks/kernel_bench [--threads N] [--quick] [--only WORD]
//
// Every verb reads weights that are not in a cache: the matrices rotate over 1 GB. "% read" is the
// share of the read bandwidth measured at the start of the same run. It is measured again at the
// end: where the two differ by more than 10 % somebody else used the machine, and the run says so
// and fails. Compare ratios of one run, never times of two.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/cpu_ops.h"
#include "tests/benchmarks/balanced_routing.h"
#include "tests/benchmarks/dnnl_product.h"
#include "tests/benchmarks/read_bandwidth.h"
#include "tests/benchmarks/timing.h"
#include "tests/benchmarks/weight_memory.h"

namespace switchyard {
namespace {

constexpr int64_t kBytes = WeightMemory::kBytes;
constexpr double kLargestAnchorChange = 0.10;
// Products of one measurement, so that small shapes are measured for as long as large ones.
constexpr double kFlopsPerRepeat = 8e9;
constexpr double kBytesPerRepeat = 1e9;

struct Options {
  int threads = 0;
  bool quick = false;
  std::string only;

  int Repeats() const { return quick ? 3 : 7; }
};

const char* NameOf(WeightLayout layout) {
  return layout == WeightLayout::kOutIn ? "[out,in]" : "[in,out]";
}

// Owns the backend, the weights and the numbers that every line of the table is put beside.
class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  // Whether the machine was quiet.
  bool Run();

 private:
  struct Shape {
    int64_t out_features = 0;
    int64_t in_features = 0;
    DType dtype = DType::kBF16;
    WeightLayout layout = WeightLayout::kOutIn;
  };
  struct Work {
    double bytes = 0;
    double flops = 0;
  };

  double MeasuredAnchor();
  void MatMul(const Shape& shape, int64_t rows);
  void ExpertMatMul(const Shape& shape, int64_t tokens, int64_t experts);
  void DecodeAttention(int64_t context);
  void CompareWithDnnl(const Shape& shape, int64_t rows);

  std::vector<Weight> AddWeights(WeightRole role, const Shape& shape, int64_t experts);
  double SecondsOfMatMul(const Shape& shape, int64_t rows);
  bool Wants(const std::string& name) const {
    return name.find(options_.only) != std::string::npos;
  }
  void Print(const std::string& name, double seconds, const Work& work) const;

  Options options_;
  WeightMemory memory_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Ops> ops_;
  double read_bandwidth_ = 0;
};

double Bench::MeasuredAnchor() {
  const double bytes_per_second = ReadBandwidth(*pool_, memory_.data(), kBytes, options_.Repeats());
  std::printf("read bandwidth, 1 GB: %.1f GB/s\n", bytes_per_second / 1e9);
  return bytes_per_second;
}

void Bench::Print(const std::string& name, double seconds, const Work& work) const {
  std::printf(
      "%-58s %10.1f us %7.1f GB/s %5.0f %% read %8.1f GFLOP/s\n",
      name.c_str(),
      seconds * 1e6,
      work.bytes / seconds / 1e9,
      100 * work.bytes / seconds / read_bandwidth_,
      work.flops / seconds / 1e9
  );
  std::fflush(stdout);
}

std::vector<Weight> Bench::AddWeights(WeightRole role, const Shape& shape, int64_t experts) {
  const bool out_first = shape.layout == WeightLayout::kOutIn;
  const int64_t first = out_first ? shape.out_features : shape.in_features;
  const int64_t second = out_first ? shape.in_features : shape.out_features;
  const int64_t bytes = experts * first * second * BytesOf(shape.dtype);
  std::vector<Weight> weights;
  for (int64_t offset = 0; offset + bytes <= kBytes; offset += bytes) {
    const TensorView data =
        role == WeightRole::kExpertStack
            ? TensorView(memory_.data() + offset, shape.dtype, {experts, first, second})
            : TensorView(memory_.data() + offset, shape.dtype, {first, second});
    weights.push_back(
        ops_->AddWeight({.role = role, .layout = shape.layout, .data = data, .name = "bench"})
    );
  }
  return weights;
}

// How many calls one measurement makes; at least two, so that the weights of one are not the
// cached ones of the call before.
int64_t CallsPerRepeat(double bytes, double flops) {
  return static_cast<int64_t>(
      std::max(2.0, std::min(kBytesPerRepeat / bytes, kFlopsPerRepeat / flops))
  );
}

double Bench::SecondsOfMatMul(const Shape& shape, int64_t rows) {
  const std::vector<Weight> weights = AddWeights(WeightRole::kDense, shape, 1);
  std::vector<float> input(static_cast<size_t>(rows * shape.in_features), 0.5F);
  std::vector<float> out(static_cast<size_t>(rows * shape.out_features));
  const TensorView input_view(input.data(), DType::kF32, {rows, shape.in_features});
  const TensorView out_view(out.data(), DType::kF32, {rows, shape.out_features});
  const auto products = static_cast<double>(shape.in_features * shape.out_features);
  const int64_t calls = CallsPerRepeat(
      products * static_cast<double>(BytesOf(shape.dtype)), 2 * products * static_cast<double>(rows)
  );
  size_t next = 0;
  const double seconds = MedianSeconds(options_.Repeats(), [&] {
    for (int64_t call = 0; call < calls; ++call) {
      ops_->MatMul({.weight = weights[next++ % weights.size()], .bias = {}}, input_view, out_view);
    }
  });
  return seconds / static_cast<double>(calls);
}

void Bench::MatMul(const Shape& shape, int64_t rows) {
  const std::string name = Concat(
      "MatMul M=",
      rows,
      " ",
      shape.out_features,
      "x",
      shape.in_features,
      " ",
      switchyard::NameOf(shape.dtype),
      " ",
      NameOf(shape.layout)
  );
  if (!Wants(name)) {
    return;
  }
  const auto products = static_cast<double>(shape.in_features * shape.out_features);
  Print(
      name,
      SecondsOfMatMul(shape, rows),
      {.bytes = products * static_cast<double>(BytesOf(shape.dtype)),
       .flops = 2 * products * static_cast<double>(rows)}
  );
}

// Two experts for each token, all experts equally often.
void Bench::ExpertMatMul(const Shape& shape, int64_t tokens, int64_t experts) {
  constexpr int64_t kTopK = 2;
  const std::string name = Concat(
      "ExpertMatMul ",
      tokens,
      " tokens, 2 of ",
      experts,
      ", ",
      shape.out_features,
      "x",
      shape.in_features,
      " ",
      switchyard::NameOf(shape.dtype),
      " ",
      NameOf(shape.layout)
  );
  if (!Wants(name)) {
    return;
  }
  const std::vector<Weight> weights = AddWeights(WeightRole::kExpertStack, shape, experts);
  const BalancedRouting routing(
      *ops_, {.tokens = tokens, .groups = 1, .top_k = kTopK, .experts = experts}
  );
  std::vector<float> input(static_cast<size_t>(tokens * shape.in_features), 0.5F);
  std::vector<float> out(static_cast<size_t>(tokens * shape.out_features));
  ExpertMatMulArgs args;
  args.grouped = routing.grouped();
  args.input = {input.data(), DType::kF32, {tokens, shape.in_features}};
  args.output_rows = RowOf::kToken;
  args.gated = true;

  const int64_t matrix = shape.in_features * shape.out_features;
  const int64_t touched = std::min(experts, tokens * kTopK);
  const Work work = {
      .bytes = static_cast<double>(touched * matrix * BytesOf(shape.dtype)),
      .flops = 2.0 * static_cast<double>(matrix * tokens * kTopK),
  };
  const int64_t calls = CallsPerRepeat(work.bytes, work.flops);
  size_t next = 0;
  const double seconds = MedianSeconds(options_.Repeats(), [&] {
    for (int64_t call = 0; call < calls; ++call) {
      args.weight = weights[next++ % weights.size()];
      ops_->ExpertMatMul(args, {out.data(), DType::kF32, {tokens, shape.out_features}});
    }
  });
  Print(name, seconds / static_cast<double>(calls), work);
}

// One token of one sequence, two query groups, 16 key-value heads of 128: JetMoE's attention.
void Bench::DecodeAttention(int64_t context) {
  constexpr int64_t kGroups = 2;
  constexpr int64_t kHeads = 16;
  constexpr int64_t kDim = 128;
  constexpr int64_t kBlockTokens = 16;
  const std::string name = Concat("PagedAttention decode, context ", context);
  if (!Wants(name)) {
    return;
  }
  const int64_t blocks = context / kBlockTokens;
  const int64_t cache_bytes = context * kHeads * kDim * BytesOf(DType::kF32);
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (int64_t b = 0; b < blocks; ++b) {
    table[static_cast<size_t>(b)] = static_cast<int32_t>(blocks - 1 - b);
  }
  std::vector<float> query(kGroups * kHeads * kDim, 0.01F);
  std::vector<float> out(query.size());
  std::vector<int32_t> offsets = {0, 1};
  auto length = static_cast<int32_t>(context);
  PagedAttentionArgs args;
  args.query = {query.data(), DType::kF32, {1, kGroups, kHeads, kDim}};
  args.block_tables = {table.data(), DType::kI32, {1, blocks}};
  args.query_offsets = {offsets.data(), DType::kI32, {2}};
  args.kv_lengths = {&length, DType::kI32, {1}};
  args.scale = 1 / std::sqrt(static_cast<float>(kDim));

  const Work work = {
      .bytes = 2.0 * static_cast<double>(cache_bytes),
      .flops = 4.0 * static_cast<double>(context * kHeads * kDim * kGroups),
  };
  const int64_t calls = CallsPerRepeat(work.bytes, work.flops);
  const int64_t caches = kBytes / (2 * cache_bytes);
  int64_t next = 0;
  const double seconds = MedianSeconds(options_.Repeats(), [&] {
    for (int64_t call = 0; call < calls; ++call, ++next) {
      char* cache = memory_.data() + next % caches * 2 * cache_bytes;
      args.key_cache = {cache, DType::kF32, {blocks, kBlockTokens, kHeads, kDim}};
      args.value_cache = {cache + cache_bytes, DType::kF32, {blocks, kBlockTokens, kHeads, kDim}};
      ops_->PagedAttention(args, {out.data(), DType::kF32, {1, kGroups, kHeads, kDim}});
    }
  });
  Print(name, seconds / static_cast<double>(calls), work);
}

void Bench::CompareWithDnnl(const Shape& shape, int64_t rows) {
  const std::string name =
      Concat("oneDNN f32 packed M=", rows, " ", shape.out_features, "x", shape.in_features);
  if (!Wants(name)) {
    return;
  }
  const int64_t matrix = shape.in_features * shape.out_features;
  constexpr int kMatrices = 8;
  std::vector<std::unique_ptr<DnnlProduct>> products;
  for (int64_t i = 0; i < kMatrices; ++i) {
    const auto weights = reinterpret_cast<const float*>(memory_.data()) + i * matrix;
    products.push_back(
        std::make_unique<DnnlProduct>(rows, shape.in_features, shape.out_features, weights)
    );
  }
  std::vector<float> input(static_cast<size_t>(rows * shape.in_features), 0.5F);
  std::vector<float> out(static_cast<size_t>(rows * shape.out_features));
  const Work work = {
      .bytes = 4.0 * static_cast<double>(matrix),
      .flops = 2.0 * static_cast<double>(matrix * rows),
  };
  const int64_t calls = CallsPerRepeat(work.bytes, work.flops);
  size_t next = 0;
  const double seconds = MedianSeconds(
                             options_.Repeats(),
                             [&] {
                               for (int64_t call = 0; call < calls; ++call) {
                                 products[next++ % kMatrices]->Run(input.data(), out.data());
                               }
                             }
                         ) /
                         static_cast<double>(calls);
  Print(name, seconds, work);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut}) {
      const Shape own = {shape.out_features, shape.in_features, dtype, layout};
      const double own_seconds = SecondsOfMatMul(own, rows);
      std::printf(
          "  MatMul %s %s: %.1f GFLOP/s, %.2f of oneDNN\n",
          switchyard::NameOf(dtype),
          NameOf(layout),
          work.flops / own_seconds / 1e9,
          seconds / own_seconds
      );
    }
  }
}

bool Bench::Run() {
  StatusOr<std::unique_ptr<Ops>> ops = MakeCpuOps(options_.threads);
  CHECK(ops.ok()) << MessageOf(ops.status());
  ops_ = *std::move(ops);
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(options_.threads);
  CHECK(pool.ok()) << MessageOf(pool.status());
  pool_ = *std::move(pool);

  std::printf("threads: %d\n", options_.threads);
  read_bandwidth_ = MeasuredAnchor();
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut}) {
      MatMul({2048, 2048, dtype, layout}, 1);
      MatMul({11264, 2048, dtype, layout}, 1);
      MatMul({128, 1024, dtype, layout}, 1);
      MatMul({2048, 2048, dtype, layout}, 4);
    }
  }
  for (const WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut}) {
    for (const int64_t tokens : {1, 8, 128, 512}) {
      ExpertMatMul({2048, 2048, DType::kBF16, layout}, tokens, 8);
    }
    ExpertMatMul({128, 1024, DType::kBF16, layout}, 1, 64);
    ExpertMatMul({128, 1024, DType::kBF16, layout}, 512, 64);
  }
  DecodeAttention(512);
  DecodeAttention(4096);
  if (DnnlProduct::IsAvailable()) {
    for (const int64_t rows : {64, 128, 256}) {
      CompareWithDnnl({2048, 2048, DType::kF32, WeightLayout::kOutIn}, rows);
    }
  }
  const double change = std::abs(MeasuredAnchor() / read_bandwidth_ - 1);
  if (change > kLargestAnchorChange) {
    std::printf("REJECTED: the read bandwidth changed by %.0f %%; run again\n", 100 * change);
    return false;
  }
  return true;
}

// oneDNN takes its number of threads from the environment, and only while it is loaded.
void SetDnnlThreads(int threads, char** arguments) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) {
    return;
  }
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", arguments);
}

int Main(int count, char** arguments) {
  CLI::App app("Measures the verbs of the cpu backend");
  Options options;
  app.add_option("--threads", options.threads, "threads; one for each core if not given")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--quick", options.quick, "3 repeats instead of 7");
  app.add_option("--only", options.only, "only what has this in its name");
  CLI11_PARSE(app, count, arguments);
  if (options.threads == 0) {
    options.threads = UsableCores();
  }
  SetDnnlThreads(options.threads, arguments);
  return Bench(options).Run() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace switchyard

int main(int count, char** arguments) {
  return switchyard::Main(count, arguments);
}
