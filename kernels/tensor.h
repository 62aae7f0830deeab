#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

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
  int64_t elements() const;
  int64_t bytes() const { return elements() * BytesOf(dtype_); }

  // The view as a matrix: the last dimension is the columns, all others together are the rows.
  int64_t columns() const;
  int64_t rows() const;

  void* data() const { return data_; }
  float* f32() const;  // CHECKs the dtype, as the next two do
  int32_t* i32() const;
  int64_t* i64() const;

  // The same elements in another shape. CHECKs that the number of elements agrees.
  TensorView Reshaped(std::initializer_list<int64_t> shape) const;
  // Rows [begin, end) along the outermost dimension.
  TensorView Slice(int64_t begin, int64_t end) const;

  // "bf16 [8, 2048, 2048]"
  std::string ToString() const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<int64_t, kMaxRank> shape_ = {};
};

}  // namespace switchyard
