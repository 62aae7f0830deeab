#pragma once

#include <cstdint>
#include <memory>

namespace switchyard {

// Working memory that only grows, so a step allocates nothing once the largest step has been seen.
// The contents do not survive a call. Thread-compatible.
class Scratch {
 public:
  // Room for `count` elements, on a cache line of its own.
  template <typename T>
  T* For(int64_t count) {
    return static_cast<T*>(Reserve(count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  void* Reserve(int64_t bytes);

  std::unique_ptr<void, Free> memory_;
  int64_t bytes_ = 0;
};

}  // namespace switchyard
