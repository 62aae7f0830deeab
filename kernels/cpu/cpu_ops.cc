#include "kernels/cpu/cpu_ops.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

bool IsVector(WeightRole role) {
  return role == WeightRole::kVector || role == WeightRole::kVectorStack;
}

}  // namespace

CpuOps::CpuOps(std::unique_ptr<ThreadPool> pool)
    : pool_(std::move(pool)),
      selectors_(static_cast<size_t>(pool_->threads())),
      worker_scratch_(static_cast<size_t>(pool_->threads())) {}

Weight CpuOps::AddWeight(const WeightSource& source) {
  const Weight weight = ReferenceOps::AddWeight(source);
  std::vector<float> widened;
  if (IsVector(source.role)) {
    widened.resize(static_cast<size_t>(source.data.elements()));
    Widen(source.data, {.begin = 0, .count = source.data.elements()}, widened.data());
  }
  vectors_.push_back(std::move(widened));
  return weight;
}

WeightMatrix CpuOps::MatrixOf(const Weight& weight, int64_t expert) const {
  const WeightSource& source = SourceOf(weight);
  const int64_t matrix_bytes =
      weight.in_features * weight.out_features * BytesOf(source.data.dtype());
  return {
      .data = static_cast<const char*>(source.data.data()) + expert * matrix_bytes,
      .dtype = source.data.dtype(),
      .layout = source.layout,
      .in_features = weight.in_features,
      .out_features = weight.out_features,
  };
}

const float* CpuOps::VectorOf(const Weight& weight, int64_t row) const {
  if (!weight.exists()) {
    return nullptr;
  }
  CHECK(static_cast<size_t>(weight.index) < vectors_.size()) << "weight " << weight.index;
  return vectors_[static_cast<size_t>(weight.index)].data() + row * weight.out_features;
}

StatusOr<std::unique_ptr<Ops>> MakeCpuOps(int threads) {
  ASSIGN_OR_RETURN(auto pool, ThreadPool::Create(threads == 0 ? UsableCores() : threads));
  return std::make_unique<CpuOps>(std::move(pool));
}

}  // namespace switchyard
