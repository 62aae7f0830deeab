#include "base/check.h"
#include "kernels/check_expert_matmul.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

struct CombineArgs {
  Global<const float> products;  // [assignments, columns], gated
  Global<const int32_t> expert_ids;
  Global<const float> bias;
  Global<float> out;  // [rows, columns]
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t span = 1;
};

namespace {

constexpr int kThreads = 128;
constexpr int64_t kMaxGridY = 65535;

}  // namespace

// Adds up each row's assignments, ascending, and the bias.
__global__ void CombineKernel(CombineArgs args) {
  const int64_t column = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= args.columns) {
    return;
  }
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    float sum = 0;
    for (int64_t a = row * args.span; a < (row + 1) * args.span; ++a) {
      if (args.expert_ids[a] >= 0) {
        sum += args.products[a * args.columns + column];
      }
    }
    if (args.bias.exists()) {
      sum += args.bias[column];
    }
    args.out[row * args.columns + column] = sum;
  }
}

void CudaOps::ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) {
  CheckExpertMatMul(args, out);
  if (!status_.ok() || out.elements() == 0) {
    return;
  }
  const Routing& routing = args.grouped.routing;
  const int64_t assignments = routing.expert_ids.elements();
  const int64_t columns = args.weight.out_features;
  const bool direct = args.output_rows == RowOf::kAssignment;
  ProductArgs products;
  products.input = ConstFloats(args.input);
  products.order = ConstInts(args.grouped.order);
  products.offsets = ConstInts(args.grouped.offsets);
  products.rows = assignments;
  products.input_span = AssignmentsOfOneRow(args.input_rows, routing.expert_ids);
  products.gates = args.gated ? ConstFloats(routing.gates) : Global<const float>();
  products.expert_bias = VectorOf(args.expert_bias);
  products.bytes_read = Global<int64_t>(static_cast<int64_t*>(expert_bytes_->data()), 1);
  if (direct) {
    products.bias = VectorOf(args.bias);
    products.out = Floats(out);
    // The rows of unused slots, which no product reaches.
    if (!Note(CudaStatus(
            cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.bytes()), stream_->get()),
            "clear unused rows"
        ))) {
      return;
    }
    RunProducts(args.weight, products, assignments);
    return;
  }
  auto* memory = static_cast<float*>(
      Grow(products_, assignments * columns * static_cast<int64_t>(sizeof(float)))
  );
  if (memory == nullptr) {
    return;
  }
  products.out = Global<float>(memory, assignments * columns);
  RunProducts(args.weight, products, assignments);
  const int64_t rows = out.rows();
  const dim3 grid{
      GridSize(DivideUp(columns, kThreads)), GridSize(rows < kMaxGridY ? rows : kMaxGridY), 1};
  const CombineArgs combine = {
      Global<const float>(memory, assignments * columns),
      ConstInts(routing.expert_ids),
      VectorOf(args.bias),
      Floats(out),
      rows,
      columns,
      assignments / rows};
  Launch(CombineKernel, grid, dim3{kThreads, 1, 1}, 0, stream_->get(), combine);
  NoteLaunch("a sum over experts");
}

}  // namespace switchyard
