#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/ops.h"
#include "tests/benchmarks/balanced_routing.h"
#include "tests/gpu/kernel_timer.h"
#include "tests/gpu/model_shape.h"
#include "tests/gpu/random_tensors.h"
#include "tests/support/ops_memory.h"

namespace switchyard {

// What a decode step of `batch` tokens asks of one verb.
struct KernelRow {
  std::string name;
  int64_t batch = 0;
  // Weights of the experts that have tokens and other inputs once, outputs once; what a kernel
  // moves beyond that is its own affair.
  int64_t bytes = 0;
  double seconds = 0;
};

struct KernelBenchOptions {
  KernelTimer::Options timer;
  int64_t rotation_bytes = 0;  // weights and caches of successive calls: more than the last cache
  int64_t context = 0;         // tokens behind each query
};

// Measures the verbs of a model's decode step one by one. The weights that it makes stay with the
// Ops, which therefore should be its own.
class KernelBench {
 public:
  // `ops` and `shape` must outlive this.
  static StatusOr<std::unique_ptr<KernelBench>> Create(
      Ops& ops, const ModelShape& shape, const KernelBenchOptions& options
  );

  // The rows of one batch, behind those that are there.
  Status Measure(int64_t batch, std::vector<KernelRow>& rows);

 private:
  struct ExpertProduct {
    std::string name;
    BalancedRoutingShape routing;
    int64_t in_features = 0;
    int64_t out_features = 0;
    WeightLayout layout = WeightLayout::kOutIn;
    RowOf input_rows = RowOf::kToken;
    RowOf output_rows = RowOf::kToken;
  };

  KernelBench(
      Ops& ops, const ModelShape& shape, const KernelBenchOptions& options, RandomPool pool
  );

  Status Products(int64_t batch);
  Status Dense(const std::string& name, int64_t batch, int64_t out_features);
  Status Experts(const ExpertProduct& product);
  std::vector<ExpertProduct> ExpertProducts(int64_t batch) const;
  // Routings to experts of which none is in two of them, so that successive calls read others.
  std::vector<std::unique_ptr<BalancedRouting>> DisjointRoutings(BalancedRoutingShape shape) const;

  Status Routing(int64_t batch);
  Status Attention(int64_t batch, Weighting weighting, const std::string& name);
  Status Positions(int64_t batch);
  Status Rows(int64_t batch);
  Status Sampling(int64_t batch, float temperature, const std::string& name);

  Status Add(
      const std::string& name,
      int64_t batch,
      int64_t bytes,
      const std::function<void(int64_t)>& call
  );
  std::vector<Weight> Weights(
      WeightRole role, WeightLayout layout, std::initializer_list<int64_t> shape
  );
  // Random numbers, [rows, columns], that nobody writes to.
  TensorView Activations(int64_t rows, int64_t columns) const;

  Ops& ops_;
  const ModelShape& shape_;
  KernelBenchOptions options_;
  RandomPool pool_;
  KernelTimer timer_;
  std::vector<KernelRow>* rows_ = nullptr;  // of the call of Measure
};

}  // namespace switchyard
