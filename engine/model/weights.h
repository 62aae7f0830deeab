#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/model/tensor_source.h"
#include "kernels/ops.h"

namespace switchyard {

struct WeightOptions {
  // Convert every matrix while loading, to f32 or bf16; absent: as stored.
  std::optional<DType> dtype = std::nullopt;
  // Instead of the context that the config states; for models whose positions have no end.
  std::optional<int64_t> context_tokens = std::nullopt;
};

// What `inspect` says of the weights.
struct WeightsSummary {
  int64_t parameters_total = 0;
  int64_t parameters_active =
      0;  // multiplied for each token: chosen experts, dense, routers, norms, output head
  int64_t weights_bytes = 0;
  DType dtype = DType::kF32;  // that most of the bytes are in, as the backend gets them
};

struct NormWeights {
  Weight weight;
  Weight bias;
};

struct ExpertStackShape {
  int64_t experts = 0;         // all groups together
  int64_t active_experts = 0;  // multiplied for each token
  int64_t in_features = 0;
  int64_t out_features = 0;
};

// Hands the tensors of a checkpoint to a backend by name and role, checking each shape, and keeps
// account of what was used. Errors name the tensor, its shape and the shape that the config asks
// for.
class WeightLoader {
 public:
  // `tensors` and `ops` must outlive this; `tensors` must outlive the model.
  WeightLoader(TensorSource& tensors, const WeightOptions& options, Ops& ops);

  // The tensor `name`; DATA_LOSS when it is missing, has another shape, or a dtype that is not F32,
  // F16 or BF16.
  StatusOr<Weight> Dense(
      const std::string& name, WeightLayout layout, int64_t in_features, int64_t out_features
  );
  // A dense matrix [out, in] that is multiplied only while loading.
  StatusOr<Weight> DenseAtLoad(const std::string& name, int64_t in_features, int64_t out_features);
  // Rows [begin, end) of a stored [rows, in] matrix as a weight of its own.
  StatusOr<Weight> DenseRows(
      const std::string& name, int64_t rows, int64_t in_features, int64_t begin, int64_t end
  );
  StatusOr<Weight> ExpertStack(
      const std::string& name, WeightLayout layout, const ExpertStackShape& shape
  );
  StatusOr<Weight> Embedding(const std::string& name, int64_t vocabulary, int64_t dim);
  // The embedding once more as the output head (tied).
  StatusOr<Weight> TiedHead(const std::string& name, int64_t vocabulary, int64_t dim);
  StatusOr<Weight> Vector(const std::string& name, int64_t dim);
  // One vector for each expert, [experts, dim].
  StatusOr<Weight> VectorStack(const std::string& name, const ExpertStackShape& shape);
  // weight, and for layer norms bias, at prefix + "weight" and prefix + "bias".
  StatusOr<NormWeights> Norm(const std::string& prefix, NormKind kind, int64_t dim);

  // The values of a small tensor, for what has to be computed from it while loading. Counts it as
  // stored, not as multiplied.
  StatusOr<std::vector<float>> Floats(const std::string& name, const std::vector<int64_t>& shape);
  // A weight that was computed while loading; `name` is what it came from. Counts it as multiplied.
  Weight Computed(
      const std::string& name,
      WeightRole role,
      const std::vector<int64_t>& shape,
      const std::vector<float>& values
  );

  bool Has(const std::string& name) const;
  // The file that the tensor lies in, for messages.
  std::string FileOf(const std::string& name) const { return tensors_.FileOf(name); }
  // The stored shape; empty when there is no such tensor.
  std::vector<int64_t> ShapeOf(const std::string& name) const;
  // The outermost size of the matrix `name`; DATA_LOSS when there is none.
  StatusOr<int64_t> RowsOf(const std::string& name) const;
  // Logs a warning that names the tensor when it holds a NaN or an infinity: a router like that
  // chooses experts by accident. Reads the whole tensor.
  void WarnUnlessFinite(const std::string& name) const;
  // Marks a tensor as known but of no use (stored constants, statistics, redundant copies).
  void Ignore(const std::string& name);

  // DATA_LOSS naming the first tensor that nothing asked for.
  Status CheckAllUsed() const;

  // Of everything that was handed over so far.
  const WeightsSummary& summary() const { return summary_; }

 private:
  // A tensor in the memory where it lies.
  struct Found {
    TensorView data;
    TensorPlace place = TensorPlace::kHost;
  };

  StatusOr<Found> Find(const std::string& name, const std::vector<int64_t>& shape);
  Weight Add(const std::string& name, WeightRole role, WeightLayout layout, const Found& found);
  Found Converted(const Found& found);
  // Where the host can read it: `copy`, if need be.
  const char* OnHost(const Found& found, std::vector<char>& copy) const;

  TensorSource& tensors_;
  WeightOptions options_;
  Ops& ops_;
  std::set<std::string> used_;
  std::map<DType, int64_t> bytes_of_dtype_;
  WeightsSummary summary_;
};

}  // namespace switchyard
