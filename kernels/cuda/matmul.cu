#include <algorithm>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

void CudaOps::RunProducts(const Weight& weight, ProductArgs args, int64_t rows) {
  const StoredWeight& stored = StoredOf(weight);
  args.weight = stored.memory->data();
  args.experts = weight.experts;
  args.in_features = weight.in_features;
  args.padded_in = stored.padded_in;
  args.out_features = weight.out_features;
  args.expert_bytes = stored.source_bytes / weight.experts;
  const ProductLaunch launch = {
      .expected_rows = std::max<int64_t>(rows / weight.experts, 1), .stream = stream_->get()};
  switch (stored.dtype) {
    case DType::kF32:
      LaunchF32Product(args, launch);
      break;
    case DType::kF16:
      LaunchF16Product(args, launch);
      break;
    case DType::kBF16:
      LaunchBf16Product(args, launch);
      break;
    default:
      CHECK(false) << "a weight of " << NameOf(stored.dtype);
  }
  NoteLaunch("a product");
}

void CudaOps::MatMul(const MatMulArgs& args, TensorView input, TensorView out) {
  CheckRole("weight", args.weight, WeightRole::kDense);
  const int64_t rows = input.rows();
  CheckMatrix("input", input, rows, args.weight.in_features);
  CheckMatrix("out", out, rows, args.weight.out_features);
  CheckOptionalVector("bias", args.bias, args.weight.out_features);
  if (!status_.ok() || out.elements() == 0) {
    return;
  }
  ProductArgs products;
  products.input = ConstFloats(input);
  products.out = Floats(out);
  products.rows = rows;
  products.bias = VectorOf(args.bias);
  RunProducts(args.weight, products, rows);
  CountWeightBytes(args.weight);
}

}  // namespace switchyard
