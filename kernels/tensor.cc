#include "kernels/tensor.h"

#include "base/check.h"

namespace switchyard {

int64_t BytesOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI64:
      return 8;
    case DType::kU8:
      return 1;
  }
  CHECK(false) << "dtype " << static_cast<int>(dtype);
  return 0;
}

const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kI64:
      return "i64";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "unknown";
}

TensorView::TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape)
    : data_(data), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
  CHECK(rank_ <= kMaxRank) << "rank " << rank_;
  size_t axis = 0;
  for (const int64_t size : shape) {
    CHECK(size >= 0) << "axis " << axis << " has size " << size;
    shape_[axis++] = size;
  }
}

int64_t TensorView::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) {
    product *= dim(axis);
  }
  return product;
}

int64_t TensorView::columns() const {
  return rank_ == 0 ? 1 : dim(rank_ - 1);
}

int64_t TensorView::rows() const {
  int64_t product = 1;
  for (int axis = 0; axis + 1 < rank_; ++axis) {
    product *= dim(axis);
  }
  return product;
}

float* TensorView::f32() const {
  CHECK(dtype_ == DType::kF32) << ToString();
  return static_cast<float*>(data_);
}

int32_t* TensorView::i32() const {
  CHECK(dtype_ == DType::kI32) << ToString();
  return static_cast<int32_t*>(data_);
}

int64_t* TensorView::i64() const {
  CHECK(dtype_ == DType::kI64) << ToString();
  return static_cast<int64_t*>(data_);
}

TensorView TensorView::Reshaped(std::initializer_list<int64_t> shape) const {
  const TensorView reshaped(data_, dtype_, shape);
  CHECK(reshaped.elements() == elements()) << ToString() << " to " << reshaped.ToString();
  return reshaped;
}

TensorView TensorView::Slice(int64_t begin, int64_t end) const {
  CHECK(rank_ > 0 && 0 <= begin && begin <= end && end <= dim(0))
      << ToString() << " rows " << begin << " to " << end;
  TensorView slice = *this;
  slice.shape_[0] = 1;
  const int64_t row_bytes = slice.bytes();
  slice.shape_[0] = end - begin;
  slice.data_ = static_cast<char*>(data_) + begin * row_bytes;
  return slice;
}

std::string TensorView::ToString() const {
  std::string text = std::string(NameOf(dtype_)) + " [";
  for (int axis = 0; axis < rank_; ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(dim(axis));
  }
  return text + "]";
}

}  // namespace switchyard
