#include "kernels/cpu/scratch.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"

namespace switchyard {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

void Scratch::Free::operator()(void* memory) const {
  std::free(memory);
}

void* Scratch::Reserve(int64_t bytes) {
  if (bytes > bytes_ || memory_ == nullptr) {
    // At least by half, so that a slowly growing request does not allocate in every step.
    const int64_t wanted = std::max(bytes, bytes_ + bytes_ / 2);
    const int64_t rounded = (wanted / kAlignment + 1) * kAlignment;
    memory_.reset(std::aligned_alloc(kAlignment, static_cast<size_t>(rounded)));
    CHECK(memory_ != nullptr) << "out of memory: scratch of " << rounded << " bytes";
    bytes_ = rounded;
  }
  return memory_.get();
}

}  // namespace switchyard
