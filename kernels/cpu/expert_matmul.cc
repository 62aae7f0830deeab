#include <algorithm>

#include "base/check.h"
#include "kernels/check_expert_matmul.h"
#include "kernels/cpu/cpu_ops.h"

namespace switchyard {
namespace {

constexpr int64_t kFloatsPerSumTask = 16384;

// Turns products into output rows. Where each assignment has a row of its own, the products lie in
// `out` already.
struct GatedSum {
  const ExpertMatMulArgs* args = nullptr;
  const float* bias = nullptr;  // may be null
  const float* products = nullptr;
  float* out = nullptr;
  int64_t span = 1;  // assignments of one row
  bool in_place = false;

  void Row(int64_t row) const;
  float Gate(int64_t assignment) const {
    return args->gated ? args->grouped.routing.gates.f32()[assignment] : 1.0F;
  }
};

void GatedSum::Row(int64_t row) const {
  const int64_t columns = args->weight.out_features;
  const int32_t* ids = args->grouped.routing.expert_ids.i32();
  float* y = out + row * columns;
  if (in_place) {
    if (ids[row] < 0) {
      std::fill_n(y, columns, 0.0F);
      return;
    }
    const float gate = Gate(row);
    for (int64_t o = 0; o < columns; ++o) {
      y[o] *= gate;
    }
  } else {
    std::fill_n(y, columns, 0.0F);
    for (int64_t a = row * span; a < (row + 1) * span; ++a) {
      if (ids[a] < 0) {
        continue;
      }
      const float gate = Gate(a);
      const float* product = products + a * columns;
      for (int64_t o = 0; o < columns; ++o) {
        y[o] += gate * product[o];
      }
    }
  }
  if (bias != nullptr) {
    for (int64_t o = 0; o < columns; ++o) {
      y[o] += bias[o];
    }
  }
}

}  // namespace

void CpuOps::RunExpertProducts(const ExpertMatMulArgs& args, int64_t input_span, float* products) {
  const int32_t* offsets = args.grouped.offsets.i32();
  const int32_t* order = args.grouped.order.i32();
  const int64_t out_features = args.weight.out_features;
  const Rows prepared = PreparedInput(MatrixOf(args.weight, 0), args.input);
  const int64_t used = offsets[args.weight.experts];
  const auto inputs = input_pointers_.For<const float*>(used);
  const auto outputs = output_pointers_.For<float*>(used);
  for (int64_t i = 0; i < used; ++i) {
    inputs[i] = prepared.data + order[i] / input_span * prepared.stride;
    outputs[i] = products + order[i] * out_features;
  }
  groups_.clear();
  for (int64_t expert = 0; expert < args.weight.experts; ++expert) {
    if (offsets[expert] < offsets[expert + 1]) {
      groups_.push_back({
          .matrix = MatrixOf(args.weight, expert),
          .bias = VectorOf(args.expert_bias, expert),
          .row_begin = offsets[expert],
          .row_end = offsets[expert + 1],
      });
    }
  }
  RunProducts(inputs, outputs);
  const int64_t expert_bytes = SourceOf(args.weight).data.bytes() / args.weight.experts;
  CountWeightBytes(static_cast<int64_t>(groups_.size()) * expert_bytes);
}

void CpuOps::ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) {
  CheckExpertMatMul(args, out);
  const TensorView& ids = args.grouped.routing.expert_ids;
  const int64_t assignments = ids.elements();
  if (assignments == 0) {
    return;
  }
  const int64_t columns = args.weight.out_features;
  const bool in_place = args.output_rows == RowOf::kAssignment;
  float* products = in_place ? out.f32() : products_.For<float>(assignments * columns);
  RunExpertProducts(args, AssignmentsOfOneRow(args.input_rows, ids), products);

  const bool all_used = args.grouped.offsets.i32()[args.weight.experts] == assignments;
  if (in_place && all_used && !args.gated && !args.bias.exists()) {
    return;
  }
  const GatedSum sum = {
      .args = &args,
      .bias = VectorOf(args.bias, 0),
      .products = products,
      .out = out.f32(),
      .span = AssignmentsOfOneRow(args.output_rows, ids),
      .in_place = in_place,
  };
  const int64_t grain = std::max<int64_t>(kFloatsPerSumTask / (columns * sum.span), 1);
  pool_->ParallelFor(out.rows(), grain, [&sum](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      sum.Row(row);
    }
  });
}

}  // namespace switchyard
