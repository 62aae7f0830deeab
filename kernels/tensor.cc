#include "kernels/tensor.h"

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
