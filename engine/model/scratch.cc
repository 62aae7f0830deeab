#include "engine/model/scratch.h"

#include "base/check.h"

namespace switchyard {
namespace {

constexpr int64_t kAlignmentBytes = 64;  // a cache line, and the widest vector

}  // namespace

int64_t ScratchBytesFor(DType dtype, std::initializer_list<int64_t> shape) {
  int64_t bytes = BytesOf(dtype);
  for (const int64_t size : shape) {
    bytes *= size;
  }
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

StatusOr<Scratch> Scratch::Create(Ops& ops, int64_t bytes) {
  Scratch scratch;
  ASSIGN_OR_RETURN(scratch.buffer_, ops.Allocate(bytes));
  return scratch;
}

TensorView Scratch::Take(DType dtype, std::initializer_list<int64_t> shape) {
  const int64_t bytes = ScratchBytesFor(dtype, shape);
  CHECK(used_bytes_ + bytes <= buffer_->bytes()) << "scratch has " << buffer_->bytes() << " bytes, "
                                                 << used_bytes_ << " taken, " << bytes << " asked";
  char* begin = static_cast<char*>(buffer_->data()) + used_bytes_;
  used_bytes_ += bytes;
  return TensorView(begin, dtype, shape);
}

}  // namespace switchyard
