#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

struct RotateArgs {
  Global<float> heads;
  Global<const int32_t> positions;
  Global<const float> frequencies;
  int64_t head_count = 0;
  int64_t head_dim = 0;
  int64_t half = 0;
};

namespace {

constexpr int kThreads = 128;

}  // namespace

// A block takes a token; a thread the same pair of every head, so that it computes an angle once.
__global__ void RopeKernel(RotateArgs args) {
  const int64_t token = blockIdx.x;
  const auto position = static_cast<float>(args.positions[token]);
  for (int64_t i = threadIdx.x; i < args.half; i += kThreads) {
    const float angle = position * args.frequencies[i];
    const float cosine = cosf(angle);
    const float sine = sinf(angle);
    for (int64_t h = 0; h < args.head_count; ++h) {
      const int64_t first = (token * args.head_count + h) * args.head_dim + i;
      const int64_t second = first + args.half;
      const float a = args.heads[first];
      const float b = args.heads[second];
      args.heads[first] = a * cosine - b * sine;
      args.heads[second] = b * cosine + a * sine;
    }
  }
}

// From the host, as the reference computes them: the device's pow is a hair off, and a position of
// thousands would multiply that.
Global<const float> CudaOps::RopeFrequencies(const RopeArgs& args) {
  const int64_t half = args.rotary_dims / 2;
  for (const RopeTable& table : rope_tables_) {
    if (table.dims == args.rotary_dims && table.base == args.base) {
      return {static_cast<const float*>(table.frequencies->data()), half};
    }
  }
  std::vector<float> frequencies;
  for (int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(args.rotary_dims);
    frequencies.push_back(1.0F / std::pow(args.base, exponent));
  }
  const auto bytes = half * static_cast<int64_t>(sizeof(float));
  StatusOr<std::unique_ptr<DeviceMemory>> memory = DeviceMemory::Allocate(bytes);
  if (!Note(memory.status()) ||
      !Note(staging_->Upload(frequencies.data(), (*memory)->data(), bytes))) {
    return {};
  }
  rope_tables_.push_back(
      {.dims = args.rotary_dims, .base = args.base, .frequencies = *std::move(memory)}
  );
  return {static_cast<const float*>(rope_tables_.back().frequencies->data()), half};
}

void CudaOps::Rope(const RopeArgs& args, TensorView heads) {
  CHECK(heads.rank() == 3) << "heads are " << heads.ToString();
  const int64_t tokens = heads.dim(0);
  CHECK(args.rotary_dims >= 0 && args.rotary_dims % 2 == 0 && args.rotary_dims <= heads.dim(2))
      << "rotary_dims=" << args.rotary_dims << " heads " << heads.ToString();
  CheckElements("positions", args.positions, DType::kI32, tokens);
  if (!status_.ok() || heads.elements() == 0 || args.rotary_dims == 0) {
    return;
  }
  const Global<const float> frequencies = RopeFrequencies(args);
  if (!status_.ok()) {
    return;
  }
  const RotateArgs rotate = {
      Floats(heads),
      ConstInts(args.positions),
      frequencies,
      heads.dim(1),
      heads.dim(2),
      args.rotary_dims / 2};
  Launch(RopeKernel, dim3{GridSize(tokens), 1, 1}, dim3{kThreads, 1, 1}, 0, stream_->get(), rotate);
  NoteLaunch("Rope");
}

}  // namespace switchyard
