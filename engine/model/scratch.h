#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// What Scratch::Take takes for one tensor: for computing how large a Scratch has to be.
int64_t ScratchBytesFor(DType dtype, std::initializer_list<int64_t> shape);

// Short-lived tensors of one step, carved from one buffer that is sized at load, so that a step
// allocates nothing. Used only by the engine thread.
class Scratch {
 public:
  static StatusOr<Scratch> Create(Ops& ops, int64_t bytes);

  // Uninitialised memory, 64-byte aligned, valid until the enclosing Scope ends. CHECKs that it
  // fits: the model computes how much a step of the largest size needs.
  TensorView Take(DType dtype, std::initializer_list<int64_t> shape);
  TensorView Floats(std::initializer_list<int64_t> shape) { return Take(DType::kF32, shape); }

  // Gives back, when it goes out of scope, everything that was taken since it began.
  class Scope {
   public:
    explicit Scope(Scratch& scratch) : scratch_(scratch), begin_(scratch.used_bytes_) {}
    ~Scope() { scratch_.used_bytes_ = begin_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Scratch& scratch_;
    int64_t begin_;
  };

  int64_t bytes() const { return buffer_->bytes(); }

 private:
  std::unique_ptr<Buffer> buffer_;
  int64_t used_bytes_ = 0;
};

}  // namespace switchyard
