#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/check_weight.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/pack.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

bool IsVector(WeightRole role) {
  return role == WeightRole::kVector || role == WeightRole::kVectorStack;
}

// Rows are padded to what the product kernels load at once.
int64_t PaddingOf(DType dtype) {
  return dtype == DType::kBF16 ? kMatrixBlock : 4;
}

}  // namespace

Weight CudaOps::AddWeight(const WeightSource& source) {
  Weight weight = CheckedWeight(source);
  weight.index = static_cast<int32_t>(weights_.size());
  StoredWeight stored = {
      .dtype = source.data.dtype(),
      .padded_in = 0,
      .source_bytes = source.data.bytes(),
      .memory = {}};
  if (status_.ok()) {
    const Status status = Store(source, weight, stored);
    Note(status.ok() ? status : WithContext(status, source.name));
  }
  weights_.push_back(std::move(stored));
  return weight;
}

Status CudaOps::Store(const WeightSource& source, const Weight& weight, StoredWeight& stored) {
  if (IsVector(source.role)) {
    return StoreVector(source, stored);
  }
  if (source.role == WeightRole::kEmbedding) {
    ASSIGN_OR_RETURN(stored.memory, DeviceMemory::Allocate(source.data.bytes()));
    return StoreBytes(source, stored.memory->data());
  }
  return StoreMatrix(source, weight, stored);
}

Status CudaOps::StoreVector(const WeightSource& source, StoredWeight& stored) {
  const int64_t elements = source.data.elements();
  TensorView data = source.data;
  std::vector<char> copy;
  if (source.place == TensorPlace::kBackend) {
    copy.resize(static_cast<size_t>(data.bytes()));
    RETURN_IF_ERROR(staging_->Download(data.data(), copy.data(), data.bytes()));
    data = TensorView(copy.data(), data.dtype(), {elements});
  }
  std::vector<float> widened(static_cast<size_t>(elements));
  Widen(data, {.begin = 0, .count = elements}, widened.data());
  const auto bytes = elements * static_cast<int64_t>(sizeof(float));
  ASSIGN_OR_RETURN(stored.memory, DeviceMemory::Allocate(bytes));
  return staging_->Upload(widened.data(), stored.memory->data(), bytes);
}

Status CudaOps::StoreBytes(const WeightSource& source, void* target) {
  if (source.place == TensorPlace::kHost) {
    return staging_->Upload(source.data.data(), target, source.data.bytes());
  }
  Copy(source.data.data(), target, source.data.bytes());
  return status_;
}

Status CudaOps::StoreMatrix(
    const WeightSource& source, const Weight& weight, StoredWeight& stored
) {
  const int64_t element_bytes = BytesOf(source.data.dtype());
  const int64_t padding = PaddingOf(source.data.dtype());
  stored.padded_in = (weight.in_features + padding - 1) / padding * padding;
  const int64_t target_bytes = weight.out_features * stored.padded_in * element_bytes;
  ASSIGN_OR_RETURN(stored.memory, DeviceMemory::Allocate(weight.experts * target_bytes));
  if (source.layout == WeightLayout::kOutIn && stored.padded_in == weight.in_features) {
    return StoreBytes(source, stored.memory->data());
  }
  const int64_t source_bytes = weight.out_features * weight.in_features * element_bytes;
  const bool is_here = source.place == TensorPlace::kBackend;
  ASSIGN_OR_RETURN(void* const raw, pack_source_.Get(is_here ? 0 : source_bytes));
  for (int64_t expert = 0; expert < weight.experts; ++expert) {
    const char* matrix = static_cast<const char*>(source.data.data()) + expert * source_bytes;
    if (!is_here) {
      RETURN_IF_ERROR(staging_->Upload(matrix, raw, source_bytes));
    }
    LaunchPack(
        {.source = is_here ? matrix : raw,
         .target = static_cast<char*>(stored.memory->data()) + expert * target_bytes,
         .layout = source.layout,
         .in_features = weight.in_features,
         .out_features = weight.out_features,
         .padded_in = stored.padded_in,
         .element_bytes = element_bytes},
        stream_->get()
    );
    RETURN_IF_ERROR(CudaStatus(cudaGetLastError(), "pack a weight"));
  }
  return OkStatus();
}

const CudaOps::StoredWeight& CudaOps::StoredOf(const Weight& weight) const {
  CHECK(weight.index >= 0 && static_cast<size_t>(weight.index) < weights_.size())
      << "weight " << weight.index << " of " << weights_.size();
  return weights_[static_cast<size_t>(weight.index)];
}

Global<const float> CudaOps::VectorOf(const Weight& weight) const {
  if (!weight.exists()) {
    return {};
  }
  const StoredWeight& stored = StoredOf(weight);
  return {static_cast<const float*>(stored.memory->data()), weight.experts * weight.out_features};
}

void CudaOps::CountWeightBytes(const Weight& weight) {
  host_weight_bytes_ += StoredOf(weight).source_bytes;
}

}  // namespace switchyard
