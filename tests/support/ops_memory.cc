#include "tests/support/ops_memory.h"

#include <cstring>

#include "base/check.h"
#include "kernels/float16.h"
#include "kernels/random.h"

namespace switchyard {
namespace {

TensorView ViewOf(void* data, DType dtype, const std::vector<int64_t>& shape) {
  switch (shape.size()) {
    case 1:
      return TensorView(data, dtype, {shape[0]});
    case 2:
      return TensorView(data, dtype, {shape[0], shape[1]});
    default:
      CHECK(shape.size() == 3) << "rank " << shape.size();
      return TensorView(data, dtype, {shape[0], shape[1], shape[2]});
  }
}

void Narrow(float value, DType dtype, uint8_t* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, &value, sizeof(value));
    return;
  }
  const uint16_t bits = dtype == DType::kBF16 ? FloatToBf16(value) : FloatToF16(value);
  std::memcpy(out, &bits, sizeof(bits));
}

}  // namespace

TensorView OpsMemory::Zeros(DType dtype, std::initializer_list<int64_t> shape) {
  const int64_t bytes = TensorView(nullptr, dtype, shape).bytes();
  StatusOr<std::unique_ptr<Buffer>> buffer = ops_.Allocate(bytes);
  CHECK(buffer.ok()) << buffer.status().ToString();
  buffers_.push_back(*std::move(buffer));
  return TensorView(buffers_.back()->data(), dtype, shape);
}

TensorView OpsMemory::Floats(
    std::initializer_list<int64_t> shape, const std::vector<float>& values
) {
  const TensorView view = Zeros(DType::kF32, shape);
  CHECK(view.elements() == static_cast<int64_t>(values.size()))
      << view.ToString() << " from " << values.size() << " values";
  ops_.Upload(values.data(), view.data(), view.bytes());
  return view;
}

TensorView OpsMemory::Ints(
    std::initializer_list<int64_t> shape, const std::vector<int32_t>& values
) {
  const TensorView view = Zeros(DType::kI32, shape);
  CHECK(view.elements() == static_cast<int64_t>(values.size()))
      << view.ToString() << " from " << values.size() << " values";
  ops_.Upload(values.data(), view.data(), view.bytes());
  return view;
}

Weight OpsMemory::AddWeight(const TestWeight& weight) {
  const auto element_bytes = static_cast<size_t>(BytesOf(weight.dtype));
  weights_.push_back(std::make_unique<std::vector<uint8_t>>(weight.values.size() * element_bytes));
  uint8_t* data = weights_.back()->data();
  for (size_t i = 0; i < weight.values.size(); ++i) {
    Narrow(weight.values[i], weight.dtype, data + i * element_bytes);
  }
  TensorView view = ViewOf(data, weight.dtype, weight.shape);
  CHECK(view.elements() == static_cast<int64_t>(weight.values.size())) << view.ToString();
  if (weight.place == TensorPlace::kBackend) {
    void* const there = Zeros(DType::kU8, {view.bytes()}).data();
    ops_.Upload(data, there, view.bytes());
    view = ViewOf(there, weight.dtype, weight.shape);
  }
  return ops_.AddWeight(
      {.role = weight.role,
       .layout = weight.layout,
       .data = view,
       .name = "test.weight",
       .place = weight.place}
  );
}

Weight OpsMemory::AddVector(const std::vector<float>& values, DType dtype) {
  return AddWeight(
      {.role = WeightRole::kVector,
       .dtype = dtype,
       .shape = {static_cast<int64_t>(values.size())},
       .values = values}
  );
}

std::vector<float> OpsMemory::ReadFloats(TensorView view) const {
  CHECK(view.dtype() == DType::kF32) << view.ToString();
  std::vector<float> values(static_cast<size_t>(view.elements()));
  ops_.Download(view.data(), values.data(), view.bytes());
  return values;
}

std::vector<int32_t> OpsMemory::ReadInts(TensorView view) const {
  CHECK(view.dtype() == DType::kI32) << view.ToString();
  std::vector<int32_t> values(static_cast<size_t>(view.elements()));
  ops_.Download(view.data(), values.data(), view.bytes());
  return values;
}

std::vector<int64_t> OpsMemory::ReadLongs(TensorView view) const {
  CHECK(view.dtype() == DType::kI64) << view.ToString();
  std::vector<int64_t> values(static_cast<size_t>(view.elements()));
  ops_.Download(view.data(), values.data(), view.bytes());
  return values;
}

std::vector<float> RandomFloats(int64_t count, uint64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(2 * UniformDraw(seed, static_cast<uint64_t>(i)) - 1));
  }
  return values;
}

std::vector<int32_t> RandomInts(int64_t count, int32_t limit, uint64_t seed) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<int32_t>(limit * UniformDraw(seed, static_cast<uint64_t>(i))));
  }
  return values;
}

}  // namespace switchyard
