#include "engine/model/distance_keys.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace switchyard {
namespace {

constexpr int64_t kChunkRows = 256;  // positions that are encoded at a time

// Of each channel; neighbours share one.
std::vector<double> FrequenciesOf(int64_t model_dim) {
  std::vector<double> frequencies(static_cast<size_t>(model_dim));
  for (int64_t channel = 0; channel < model_dim; ++channel) {
    const int64_t pair = channel / 2 * 2;
    frequencies[static_cast<size_t>(channel)] =
        std::pow(10000.0, -static_cast<double>(pair) / static_cast<double>(model_dim));
  }
  return frequencies;
}

// Rows pe(-begin), pe(-begin - 1), ... in double before rounding: the reference's float32 angles
// lose nothing at the distances that contexts of these models have.
void EncodeDistances(
    int64_t begin, int64_t rows, const std::vector<double>& frequencies, std::vector<float>& out
) {
  const auto model_dim = static_cast<int64_t>(frequencies.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t channel = 0; channel < model_dim; ++channel) {
      const double angle =
          -static_cast<double>(begin + row) * frequencies[static_cast<size_t>(channel)];
      const double value = channel % 2 == 0 ? std::sin(angle) : std::cos(angle);
      out[static_cast<size_t>(row * model_dim + channel)] = static_cast<float>(value);
    }
  }
}

}  // namespace

StatusOr<std::unique_ptr<DistanceKeys>> DistanceKeys::Create(
    Ops& ops, const Weight& projection, int64_t heads, int64_t max_distance
) {
  const int64_t model_dim = projection.in_features;
  const int64_t key_dim = projection.out_features / heads;
  auto keys = std::make_unique<DistanceKeys>();
  ASSIGN_OR_RETURN(
      keys->memory_, ops.Allocate(max_distance * projection.out_features * BytesOf(DType::kF32))
  );
  keys->table_ = TensorView(keys->memory_->data(), DType::kF32, {max_distance, heads, key_dim});

  const std::vector<double> frequencies = FrequenciesOf(model_dim);
  std::vector<float> encoded(static_cast<size_t>(kChunkRows * model_dim));
  const auto encoded_bytes = static_cast<int64_t>(encoded.size() * sizeof(float));
  ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> staging, ops.Allocate(encoded_bytes));
  for (int64_t begin = 0; begin < max_distance; begin += kChunkRows) {
    const int64_t rows = std::min(kChunkRows, max_distance - begin);
    EncodeDistances(begin, rows, frequencies, encoded);
    ops.Upload(encoded.data(), staging->data(), rows * model_dim * BytesOf(DType::kF32));
    ops.MatMul(
        {.weight = projection, .bias = {}},
        TensorView(staging->data(), DType::kF32, {rows, model_dim}),
        keys->table_.Slice(begin, begin + rows).Reshaped({rows, heads * key_dim})
    );
  }
  RETURN_IF_ERROR(ops.Finish());
  return keys;
}

}  // namespace switchyard
