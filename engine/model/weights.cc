#include "engine/model/weights.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + "]";
}

std::optional<DType> WeightDType(const std::string& stored) {
  if (stored == "F32") {
    return DType::kF32;
  }
  if (stored == "F16") {
    return DType::kF16;
  }
  if (stored == "BF16") {
    return DType::kBF16;
  }
  return std::nullopt;
}

TensorView ViewOf(void* data, DType dtype, const std::vector<int64_t>& shape) {
  switch (shape.size()) {
    case 1:
      return TensorView(data, dtype, {shape[0]});
    case 2:
      return TensorView(data, dtype, {shape[0], shape[1]});
    default:
      return TensorView(data, dtype, {shape[0], shape[1], shape[2]});
  }
}

float ReadAsFloat(const char* data, DType dtype, int64_t index) {
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, data + index * 4, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, data + index * 2, sizeof(bits));
  return dtype == DType::kBF16 ? Bf16ToFloat(bits) : F16ToFloat(bits);
}

}  // namespace

WeightLoader::WeightLoader(WeightFiles& files, const WeightOptions& options, Ops& ops)
    : files_(files), options_(options), ops_(ops) {}

bool WeightLoader::Has(const std::string& name) const {
  return files_.Find(name) != nullptr;
}

std::vector<int64_t> WeightLoader::ShapeOf(const std::string& name) const {
  const StoredTensor* tensor = files_.Find(name);
  return tensor == nullptr ? std::vector<int64_t>() : tensor->shape;
}

StatusOr<int64_t> WeightLoader::RowsOf(const std::string& name) const {
  constexpr int64_t kMaxRows = int64_t{1} << 31;  // token ids are 32 bits
  const std::vector<int64_t> shape = ShapeOf(name);
  if (shape.size() != 2 || shape[0] < 1 || shape[0] >= kMaxRows) {
    return DataLoss(
        files_.FileOf(name),
        ": tensor ",
        name,
        " has shape ",
        ShapeText(shape),
        ", not that of a matrix"
    );
  }
  return shape[0];
}

void WeightLoader::WarnUnlessFinite(const std::string& name) const {
  const StoredTensor* tensor = files_.Find(name);
  const std::optional<DType> dtype = tensor == nullptr ? std::nullopt : WeightDType(tensor->dtype);
  if (!dtype) {
    return;
  }
  const int64_t elements = tensor->bytes / BytesOf(*dtype);
  for (int64_t i = 0; i < elements; ++i) {
    const float value = ReadAsFloat(static_cast<const char*>(tensor->data), *dtype, i);
    if (!std::isfinite(value)) {
      LogWarning(
          "event=router_not_finite file={} tensor={} element={} value={}",
          files_.FileOf(name),
          name,
          i,
          value
      );
      return;
    }
  }
}

void WeightLoader::Ignore(const std::string& name) {
  used_.insert(name);
}

StatusOr<TensorView> WeightLoader::Find(
    const std::string& name, const std::vector<int64_t>& shape
) {
  const StoredTensor* tensor = files_.Find(name);
  if (tensor == nullptr) {
    return DataLoss(
        files_.FileOf(name),
        ": tensor ",
        name,
        " is missing; the config asks for it with shape ",
        ShapeText(shape)
    );
  }
  if (tensor->shape != shape) {
    return DataLoss(
        files_.FileOf(name),
        ": tensor ",
        name,
        " has shape ",
        ShapeText(tensor->shape),
        "; the config asks for ",
        ShapeText(shape)
    );
  }
  const std::optional<DType> dtype = WeightDType(tensor->dtype);
  if (!dtype) {
    return DataLoss(
        files_.FileOf(name),
        ": tensor ",
        name,
        " is ",
        tensor->dtype,
        "; weights are F32, F16 or BF16"
    );
  }
  if (used_.insert(name).second) {
    int64_t elements = 1;
    for (const int64_t size : shape) {
      elements *= size;
    }
    summary_.parameters_total += elements;
    summary_.weights_bytes += tensor->bytes;
  }
  return ViewOf(const_cast<void*>(tensor->data), *dtype, shape);
}

TensorView WeightLoader::Converted(TensorView data) {
  const DType dtype = options_.dtype.value_or(data.dtype());
  const bool aligned =
      reinterpret_cast<uintptr_t>(data.data()) % static_cast<uintptr_t>(BytesOf(data.dtype())) == 0;
  if (dtype == data.dtype() && aligned) {
    return data;
  }
  std::vector<char> memory(static_cast<size_t>(data.elements() * BytesOf(dtype)));
  const char* source = static_cast<const char*>(data.data());
  if (dtype == data.dtype()) {
    std::memcpy(memory.data(), source, memory.size());
  } else {
    for (int64_t i = 0; i < data.elements(); ++i) {
      const float value = ReadAsFloat(source, data.dtype(), i);
      if (dtype == DType::kF32) {
        std::memcpy(memory.data() + i * 4, &value, sizeof(value));
      } else {
        const uint16_t bits = dtype == DType::kBF16 ? FloatToBf16(value) : FloatToF16(value);
        std::memcpy(memory.data() + i * 2, &bits, sizeof(bits));
      }
    }
  }
  void* kept = files_.Keep(std::move(memory));
  std::vector<int64_t> shape;
  shape.reserve(TensorView::kMaxRank);
  for (int axis = 0; axis < data.rank(); ++axis) {
    shape.push_back(data.dim(axis));
  }
  return ViewOf(kept, dtype, shape);
}

Weight WeightLoader::Add(
    const std::string& name, WeightRole role, WeightLayout layout, TensorView data
) {
  const TensorView converted = Converted(data);
  bytes_of_dtype_[converted.dtype()] += converted.bytes();
  if (bytes_of_dtype_[converted.dtype()] > bytes_of_dtype_[summary_.dtype]) {
    summary_.dtype = converted.dtype();
  }
  return ops_.AddWeight({.role = role, .layout = layout, .data = converted, .name = name});
}

StatusOr<Weight> WeightLoader::Dense(
    const std::string& name, WeightLayout layout, int64_t in_features, int64_t out_features
) {
  const bool out_in = layout == WeightLayout::kOutIn;
  ASSIGN_OR_RETURN(
      const TensorView data,
      Find(
          name,
          out_in ? std::vector{out_features, in_features} : std::vector{in_features, out_features}
      )
  );
  summary_.parameters_active += data.elements();
  return Add(name, WeightRole::kDense, layout, data);
}

StatusOr<Weight> WeightLoader::DenseAtLoad(
    const std::string& name, int64_t in_features, int64_t out_features
) {
  ASSIGN_OR_RETURN(const TensorView data, Find(name, {out_features, in_features}));
  return Add(name, WeightRole::kDense, WeightLayout::kOutIn, data);
}

StatusOr<Weight> WeightLoader::DenseRows(
    const std::string& name, int64_t rows, int64_t in_features, int64_t begin, int64_t end
) {
  ASSIGN_OR_RETURN(const TensorView data, Find(name, {rows, in_features}));
  const TensorView part = data.Slice(begin, end);
  summary_.parameters_active += part.elements();
  return Add(name, WeightRole::kDense, WeightLayout::kOutIn, part);
}

StatusOr<Weight> WeightLoader::ExpertStack(
    const std::string& name, WeightLayout layout, const ExpertStackShape& shape
) {
  const bool out_in = layout == WeightLayout::kOutIn;
  const int64_t second = out_in ? shape.out_features : shape.in_features;
  const int64_t third = out_in ? shape.in_features : shape.out_features;
  ASSIGN_OR_RETURN(const TensorView data, Find(name, {shape.experts, second, third}));
  summary_.parameters_active += shape.active_experts * second * third;
  return Add(name, WeightRole::kExpertStack, layout, data);
}

StatusOr<Weight> WeightLoader::Embedding(const std::string& name, int64_t vocabulary, int64_t dim) {
  ASSIGN_OR_RETURN(const TensorView data, Find(name, {vocabulary, dim}));
  return Add(name, WeightRole::kEmbedding, WeightLayout::kOutIn, data);
}

StatusOr<Weight> WeightLoader::TiedHead(const std::string& name, int64_t vocabulary, int64_t dim) {
  return Dense(name, WeightLayout::kOutIn, dim, vocabulary);
}

StatusOr<Weight> WeightLoader::Vector(const std::string& name, int64_t dim) {
  ASSIGN_OR_RETURN(const TensorView data, Find(name, {dim}));
  summary_.parameters_active += dim;
  return Add(name, WeightRole::kVector, WeightLayout::kOutIn, data);
}

StatusOr<Weight> WeightLoader::VectorStack(const std::string& name, const ExpertStackShape& shape) {
  ASSIGN_OR_RETURN(const TensorView data, Find(name, {shape.experts, shape.out_features}));
  summary_.parameters_active += shape.active_experts * shape.out_features;
  return Add(name, WeightRole::kVectorStack, WeightLayout::kOutIn, data);
}

StatusOr<std::vector<float>> WeightLoader::Floats(
    const std::string& name, const std::vector<int64_t>& shape
) {
  ASSIGN_OR_RETURN(const TensorView data, Find(name, shape));
  std::vector<float> values(static_cast<size_t>(data.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        ReadAsFloat(static_cast<const char*>(data.data()), data.dtype(), static_cast<int64_t>(i));
  }
  return values;
}

Weight WeightLoader::Computed(
    const std::string& name,
    WeightRole role,
    const std::vector<int64_t>& shape,
    const std::vector<float>& values
) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  void* kept = files_.Keep(std::vector<char>(bytes, bytes + values.size() * sizeof(float)));
  summary_.parameters_active += static_cast<int64_t>(values.size());
  return ops_.AddWeight({
      .role = role,
      .layout = WeightLayout::kOutIn,
      .data = ViewOf(kept, DType::kF32, shape),
      .name = name,
  });
}

StatusOr<NormWeights> WeightLoader::Norm(const std::string& prefix, NormKind kind, int64_t dim) {
  NormWeights norm;
  ASSIGN_OR_RETURN(norm.weight, Vector(prefix + "weight", dim));
  if (kind == NormKind::kLayer) {
    ASSIGN_OR_RETURN(norm.bias, Vector(prefix + "bias", dim));
  }
  return norm;
}

Status WeightLoader::CheckAllUsed() const {
  for (const std::string& name : files_.Names()) {
    if (!used_.contains(name)) {
      return DataLoss(
          files_.FileOf(name),
          ": tensor ",
          name,
          " ",
          ShapeText(ShapeOf(name)),
          " belongs to nothing that the config describes"
      );
    }
  }
  return OkStatus();
}

}  // namespace switchyard
