#include "kernels/check_weight.h"

#include "base/check.h"

namespace switchyard {
namespace {

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

Weight CheckedWeight(const WeightSource& source) {
  const TensorView& data = source.data;
  CHECK(data.dtype() == DType::kF32 || data.dtype() == DType::kF16 || data.dtype() == DType::kBF16)
      << source.name << " is " << data.ToString() << "; expected f32, f16 or bf16";
  CHECK(data.exists() && data.rank() == RankOf(source.role))
      << source.name << " is " << data.ToString() << "; expected rank " << RankOf(source.role);
  Weight weight;
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
  return weight;
}

}  // namespace switchyard
