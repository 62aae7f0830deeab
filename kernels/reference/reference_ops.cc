#include "kernels/reference/reference_ops.h"

#include <cstdlib>
#include <cstring>

#include "base/available_memory.h"
#include "base/check.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest SIMD register

class HostBuffer : public Buffer {
 public:
  HostBuffer(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() override { std::free(data_); }

  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  int64_t bytes_;
};

int RankOf(WeightRole role) {
  switch (role) {
    case WeightRole::kVector:
      return 1;
    case WeightRole::kExpertStack:
      return 3;
    default:
      return 2;
  }
}

}  // namespace

int64_t ReferenceOps::AvailableBytes() const {
  return AvailableMemoryBytes();
}

StatusOr<std::unique_ptr<Buffer>> ReferenceOps::Allocate(int64_t bytes) {
  CHECK(bytes >= 0) << "bytes=" << bytes;
  const int64_t available_bytes = AvailableBytes();
  void* data = nullptr;
  if (bytes <= available_bytes) {
    const int64_t rounded_bytes = (bytes / kAlignment + 1) * kAlignment;
    data = std::aligned_alloc(kAlignment, static_cast<size_t>(rounded_bytes));
  }
  if (data == nullptr) {
    return ResourceExhausted(
        "cannot allocate ",
        bytes,
        " bytes; the machine has ",
        available_bytes,
        " bytes available on this machine and in its control group; use a smaller cache or model, "
        "or "
        "free memory"
    );
  }
  std::memset(data, 0, static_cast<size_t>(bytes));
  return std::make_unique<HostBuffer>(data, bytes);
}

void ReferenceOps::Upload(const void* host, void* device, int64_t bytes) {
  if (bytes > 0) {
    std::memmove(device, host, static_cast<size_t>(bytes));
  }
}

void ReferenceOps::Download(const void* device, void* host, int64_t bytes) {
  if (bytes > 0) {
    std::memmove(host, device, static_cast<size_t>(bytes));
  }
}

void ReferenceOps::Copy(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

Weight ReferenceOps::AddWeight(const WeightSource& source) {
  const TensorView& data = source.data;
  CHECK(data.dtype() == DType::kF32 || data.dtype() == DType::kF16 || data.dtype() == DType::kBF16)
      << source.name << " is " << data.ToString() << "; expected f32, f16 or bf16";
  CHECK(data.exists() && data.rank() == RankOf(source.role))
      << source.name << " is " << data.ToString() << "; expected rank " << RankOf(source.role);
  Weight weight;
  weight.index = static_cast<int32_t>(weights_.size());
  weight.role = source.role;
  weight.out_features = data.columns();
  switch (source.role) {
    case WeightRole::kDense:
    case WeightRole::kExpertStack: {
      const int64_t first = data.dim(data.rank() - 2);
      const int64_t second = data.dim(data.rank() - 1);
      const bool out_first = source.layout == WeightLayout::kOutIn;
      weight.out_features = out_first ? first : second;
      weight.in_features = out_first ? second : first;
      weight.experts = source.role == WeightRole::kExpertStack ? data.dim(0) : 1;
      break;
    }
    case WeightRole::kEmbedding:
      weight.in_features = data.dim(0);
      break;
    case WeightRole::kVectorStack:
      weight.experts = data.dim(0);
      break;
    case WeightRole::kVector:
      break;
  }
  weights_.push_back(source);
  return weight;
}

const WeightSource& ReferenceOps::SourceOf(const Weight& weight) const {
  CHECK(weight.index >= 0 && static_cast<size_t>(weight.index) < weights_.size())
      << "weight " << weight.index << " of " << weights_.size();
  return weights_[static_cast<size_t>(weight.index)];
}

const float* ReferenceOps::WidenedFeature(const Weight& weight, int64_t expert, int64_t feature) {
  const WeightSource& source = SourceOf(weight);
  StridedRange range = {.count = weight.in_features};
  const int64_t matrix_begin = expert * weight.in_features * weight.out_features;
  if (source.layout == WeightLayout::kOutIn) {
    range.begin = matrix_begin + feature * weight.in_features;
  } else {
    range.begin = matrix_begin + feature;
    range.stride = weight.out_features;
  }
  feature_scratch_.resize(static_cast<size_t>(weight.in_features));
  Widen(source.data, range, feature_scratch_.data());
  return feature_scratch_.data();
}

std::vector<float> ReferenceOps::WidenedVector(const Weight& weight, int64_t row, int64_t dim)
    const {
  std::vector<float> values(static_cast<size_t>(dim), 0.0F);
  if (weight.exists()) {
    Widen(SourceOf(weight).data, {.begin = row * dim, .count = dim}, values.data());
  }
  return values;
}

}  // namespace switchyard
