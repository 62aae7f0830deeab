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

WeightLoader::WeightLoader(TensorSource& tensors, const WeightOptions& options, Ops& ops)
    : tensors_(tensors), options_(options), ops_(ops) {}

bool WeightLoader::Has(const std::string& name) const {
  return tensors_.Find(name) != nullptr;
}

std::vector<int64_t> WeightLoader::ShapeOf(const std::string& name) const {
  const StoredTensor* tensor = tensors_.Find(name);
  return tensor == nullptr ? std::vector<int64_t>() : tensor->shape;
}

StatusOr<int64_t> WeightLoader::RowsOf(const std::string& name) const {
  constexpr int64_t kMaxRows = int64_t{1} << 31;  // token ids are 32 bits
  const std::vector<int64_t> shape = ShapeOf(name);
  if (shape.size() != 2 || shape[0] < 1 || shape[0] >= kMaxRows) {
    return DataLoss(
        tensors_.FileOf(name),
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
  const StoredTensor* tensor = tensors_.Find(name);
  const std::optional<DType> dtype = tensor == nullptr ? std::nullopt : WeightDType(tensor->dtype);
  if (!dtype) {
    return;
  }
  const int64_t elements = tensor->bytes / BytesOf(*dtype);
  std::vector<char> copy;
  const char* const data = OnHost(
      {.data = ViewOf(const_cast<void*>(tensor->data), *dtype, {elements}), .place = tensor->place},
      copy
  );
  for (int64_t i = 0; i < elements; ++i) {
    const float value = ReadAsFloat(data, *dtype, i);
    if (!std::isfinite(value)) {
      LogWarning(
          "event=router_not_finite file={} tensor={} element={} value={}",
          tensors_.FileOf(name),
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

StatusOr<WeightLoader::Found> WeightLoader::Find(
    const std::string& name, const std::vector<int64_t>& shape
) {
  const StoredTensor* tensor = tensors_.Find(name);
  if (tensor == nullptr) {
    return DataLoss(
        tensors_.FileOf(name),
        ": tensor ",
        name,
        " is missing; the config asks for it with shape ",
        ShapeText(shape)
    );
  }
  if (tensor->shape != shape) {
    return DataLoss(
        tensors_.FileOf(name),
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
        tensors_.FileOf(name),
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
  return Found{
      .data = ViewOf(const_cast<void*>(tensor->data), *dtype, shape), .place = tensor->place};
}

const char* WeightLoader::OnHost(const Found& found, std::vector<char>& copy) const {
  if (found.place == TensorPlace::kHost) {
    return static_cast<const char*>(found.data.data());
  }
  copy.resize(static_cast<size_t>(found.data.bytes()));
  ops_.Download(found.data.data(), copy.data(), found.data.bytes());
  return copy.data();
}

WeightLoader::Found WeightLoader::Converted(const Found& found) {
  const TensorView& data = found.data;
  const DType dtype = options_.dtype.value_or(data.dtype());
  const bool aligned =
      reinterpret_cast<uintptr_t>(data.data()) % static_cast<uintptr_t>(BytesOf(data.dtype())) == 0;
  if (dtype == data.dtype() && aligned) {
    return found;
  }
  std::vector<char> memory(static_cast<size_t>(data.elements() * BytesOf(dtype)));
  std::vector<char> copy;
  const char* const source = OnHost(found, copy);
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
  void* kept = tensors_.Keep(std::move(memory));
  std::vector<int64_t> shape;
  shape.reserve(TensorView::kMaxRank);
  for (int axis = 0; axis < data.rank(); ++axis) {
    shape.push_back(data.dim(axis));
  }
  return {.data = ViewOf(kept, dtype, shape), .place = TensorPlace::kHost};
}

Weight WeightLoader::Add(
    const std::string& name, WeightRole role, WeightLayout layout, const Found& found
) {
  const Found converted = Converted(found);
  const DType dtype = converted.data.dtype();
  bytes_of_dtype_[dtype] += converted.data.bytes();
  if (bytes_of_dtype_[dtype] > bytes_of_dtype_[summary_.dtype]) {
    summary_.dtype = dtype;
  }
  return ops_.AddWeight(
      {.role = role,
       .layout = layout,
       .data = converted.data,
       .name = name,
       .place = converted.place}
  );
}

StatusOr<Weight> WeightLoader::Dense(
    const std::string& name, WeightLayout layout, int64_t in_features, int64_t out_features
) {
  const bool out_in = layout == WeightLayout::kOutIn;
  ASSIGN_OR_RETURN(
      const Found found,
      Find(
          name,
          out_in ? std::vector{out_features, in_features} : std::vector{in_features, out_features}
      )
  );
  summary_.parameters_active += found.data.elements();
  return Add(name, WeightRole::kDense, layout, found);
}

StatusOr<Weight> WeightLoader::DenseAtLoad(
    const std::string& name, int64_t in_features, int64_t out_features
) {
  ASSIGN_OR_RETURN(const Found found, Find(name, {out_features, in_features}));
  return Add(name, WeightRole::kDense, WeightLayout::kOutIn, found);
}

StatusOr<Weight> WeightLoader::DenseRows(
    const std::string& name, int64_t rows, int64_t in_features, int64_t begin, int64_t end
) {
  ASSIGN_OR_RETURN(const Found found, Find(name, {rows, in_features}));
  const Found part = {.data = found.data.Slice(begin, end), .place = found.place};
  summary_.parameters_active += part.data.elements();
  return Add(name, WeightRole::kDense, WeightLayout::kOutIn, part);
}

StatusOr<Weight> WeightLoader::ExpertStack(
    const std::string& name, WeightLayout layout, const ExpertStackShape& shape
) {
  const bool out_in = layout == WeightLayout::kOutIn;
  const int64_t second = out_in ? shape.out_features : shape.in_features;
  const int64_t third = out_in ? shape.in_features : shape.out_features;
  ASSIGN_OR_RETURN(const Found found, Find(name, {shape.experts, second, third}));
  summary_.parameters_active += shape.active_experts * second * third;
  return Add(name, WeightRole::kExpertStack, layout, found);
}

StatusOr<Weight> WeightLoader::Embedding(const std::string& name, int64_t vocabulary, int64_t dim) {
  ASSIGN_OR_RETURN(const Found found, Find(name, {vocabulary, dim}));
  return Add(name, WeightRole::kEmbedding, WeightLayout::kOutIn, found);
}

StatusOr<Weight> WeightLoader::TiedHead(const std::string& name, int64_t vocabulary, int64_t dim) {
  return Dense(name, WeightLayout::kOutIn, dim, vocabulary);
}

StatusOr<Weight> WeightLoader::Vector(const std::string& name, int64_t dim) {
  ASSIGN_OR_RETURN(const Found found, Find(name, {dim}));
  summary_.parameters_active += dim;
  return Add(name, WeightRole::kVector, WeightLayout::kOutIn, found);
}

StatusOr<Weight> WeightLoader::VectorStack(const std::string& name, const ExpertStackShape& shape) {
  ASSIGN_OR_RETURN(const Found found, Find(name, {shape.experts, shape.out_features}));
  summary_.parameters_active += shape.active_experts * shape.out_features;
  return Add(name, WeightRole::kVectorStack, WeightLayout::kOutIn, found);
}

StatusOr<std::vector<float>> WeightLoader::Floats(
    const std::string& name, const std::vector<int64_t>& shape
) {
  ASSIGN_OR_RETURN(const Found found, Find(name, shape));
  std::vector<char> copy;
  const char* const data = OnHost(found, copy);
  std::vector<float> values(static_cast<size_t>(found.data.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ReadAsFloat(data, found.data.dtype(), static_cast<int64_t>(i));
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
  void* kept = tensors_.Keep(std::vector<char>(bytes, bytes + values.size() * sizeof(float)));
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
  for (const std::string& name : tensors_.Names()) {
    if (!used_.contains(name)) {
      return DataLoss(
          tensors_.FileOf(name),
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
