#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/check.h"

namespace switchyard {

enum class DType : uint8_t { kF32, kF16, kBF16, kI64, kI32, kU8 };

// Bytes of one element.
int64_t BytesOf(DType dtype);
// "f32", "bf16", ...: the word that flags, reports and messages use.
const char* NameOf(DType dtype);

// A borrowed, dense, row-major array of up to four dimensions, outermost first. Copying copies the
// view. It says nothing about where the memory is: only the Ops that allocated it may read it.
class TensorView {
 public:
  static constexpr int kMaxRank = 4;

  TensorView() = default;
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape);

  bool exists() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  int64_t dim(int axis) const { return shape_[static_cast<size_t>(axis)]; }
  int64_t elements() const { return Product(rank_); }
  int64_t bytes() const { return elements() * BytesOf(dtype_); }

  // The view as a matrix: the last dimension is the columns, all others together are the rows.
  int64_t columns() const { return rank_ == 0 ? 1 : dim(rank_ - 1); }
  int64_t rows() const { return Product(rank_ - 1); }

  void* data() const { return data_; }
  // CHECK the dtype. Inline, like the sizes above: loops call them for every element.
  float* f32() const { return static_cast<float*>(DataOf(DType::kF32)); }
  int32_t* i32() const { return static_cast<int32_t*>(DataOf(DType::kI32)); }
  int64_t* i64() const { return static_cast<int64_t*>(DataOf(DType::kI64)); }

  // The same elements in another shape. CHECKs that the number of elements agrees.
  TensorView Reshaped(std::initializer_list<int64_t> shape) const;
  // Rows [begin, end) along the outermost dimension.
  TensorView Slice(int64_t begin, int64_t end) const;

  // "bf16 [8, 2048, 2048]"
  std::string ToString() const;

 private:
  int64_t Product(int axes) const {
    int64_t product = 1;
    for (int axis = 0; axis < axes; ++axis) {
      product *= dim(axis);
    }
    return product;
  }
  void* DataOf(DType dtype) const {
    CHECK(dtype_ == dtype) << ToString();
    return data_;
  }

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<int64_t, kMaxRank> shape_ = {};
};

}  // namespace switchyard
