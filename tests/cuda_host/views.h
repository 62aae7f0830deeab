#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/status.h"
#include "tests/cuda_host/block_runner.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"

// Device and shared memory as kernels see it under the stand-in: every access is checked.

// The toolkit's names are not ours to choose.
// NOLINTBEGIN(readability-identifier-naming)
struct float4 {
  float x, y, z, w;
};
struct uint4 {
  uint32_t x, y, z, w;
};
struct ushort4 {
  uint16_t x, y, z, w;
};
// NOLINTEND(readability-identifier-naming)

namespace switchyard {

template <typename T>
class Global {
 public:
  Global() = default;
  Global(T* device, int64_t count) : device_(device), count_(count) {
    if (device != nullptr && count > 0) {
      data_ =
          static_cast<T*>(cuda_host::BytesOfDevice(device, count * static_cast<int64_t>(sizeof(T)))
          );
    }
  }

  // A view that was checked already.
  Global(T* device, T* data, int64_t count) : device_(device), data_(data), count_(count) {}

  T& operator[](int64_t index) const { return *Elements(index, 1); }
  Global From(int64_t index) const {
    Global rest = *this;
    if (index < 0 || index > count_) {
      OutOfRange(index, 0);
    }
    rest.device_ += index;
    rest.data_ += index;
    rest.count_ -= index;
    return rest;
  }
  bool exists() const { return device_ != nullptr; }
  T* device() const { return device_; }
  T* data() const { return data_; }
  int64_t count() const { return count_; }

  // `count` elements that are read or written at once.
  T* Elements(int64_t index, int64_t count) const {
    if (index < 0 || index + count > count_ || data_ == nullptr) {
      OutOfRange(index, count);
    }
    const size_t width = count > 1 ? static_cast<size_t>(count) * sizeof(T) : alignof(T);
    if (reinterpret_cast<uintptr_t>(device_ + index) % width != 0) {
      cuda_host::ReportFromKernel(
          cuda_host::Fault::kMisaligned,
          Concat(count, " elements at element ", index, " are not aligned to their width")
      );
    }
    return data_ + index;
  }

 private:
  [[noreturn]] void OutOfRange(int64_t index, int64_t count) const {
    cuda_host::ReportFromKernel(
        cuda_host::Fault::kOutOfRange,
        Concat(count, " elements at element ", index, " of a view of ", count_)
    );
  }

  T* device_ = nullptr;  // the address that the host knows
  T* data_ = nullptr;    // where the bytes are
  int64_t count_ = 0;
};

template <typename T>
Global<const T> ConstView(const Global<T>& memory) {
  return Global<const T>(memory.device(), memory.data(), memory.count());
}

template <typename T>
class Shared {
 public:
  Shared(int64_t offset, int64_t count) : offset_(offset), count_(count) {}

  class Element {
   public:
    explicit Element(int64_t offset) : offset_(offset) {}
    Element(const Element&) = default;
    operator T() const {  // NOLINT: stands for the element
      Memory().Check(offset_, cuda_host::SharedMemory::Access::kRead);
      T value;
      std::memcpy(&value, Memory().Bytes(offset_), sizeof(T));
      return value;
    }
    const Element& operator=(T value) const {
      Memory().Check(offset_, cuda_host::SharedMemory::Access::kWrite);
      std::memcpy(Memory().Bytes(offset_), &value, sizeof(T));
      return *this;
    }
    const Element& operator=(const Element& other) const { return *this = static_cast<T>(other); }
    const Element& operator+=(T value) const { return *this = static_cast<T>(*this) + value; }
    const Element& operator*=(T value) const { return *this = static_cast<T>(*this) * value; }
    void AtomicAdd(T value) const {
      Memory().Check(offset_, cuda_host::SharedMemory::Access::kAtomic);
      T sum;
      std::memcpy(&sum, Memory().Bytes(offset_), sizeof(T));
      sum += value;
      std::memcpy(Memory().Bytes(offset_), &sum, sizeof(T));
    }

   private:
    static cuda_host::SharedMemory& Memory() {
      return cuda_host::BlockRunner::Current()->runner->shared();
    }
    int64_t offset_;
  };

  Element operator[](int64_t index) const {
    if (index < 0 || index >= count_) {
      cuda_host::ReportFromKernel(
          cuda_host::Fault::kOutOfRange,
          Concat("element ", index, " of ", count_, " in shared memory")
      );
    }
    return Element(offset_ + index * static_cast<int64_t>(sizeof(T)));
  }
  // The elements after the first `index`.
  Shared operator+(int64_t index) const {
    if (index < 0 || index > count_) {
      cuda_host::ReportFromKernel(
          cuda_host::Fault::kOutOfRange,
          Concat("shared memory from element ", index, " of ", count_)
      );
    }
    return Shared(offset_ + index * static_cast<int64_t>(sizeof(T)), count_ - index);
  }

 private:
  int64_t offset_;
  int64_t count_;
};

inline float4 LoadFour(const Global<const float>& memory, int64_t index) {
  const float* from = memory.Elements(index, 4);
  return {from[0], from[1], from[2], from[3]};
}
inline float4 LoadFour(const Global<float>& memory, int64_t index) {
  const float* from = memory.Elements(index, 4);
  return {from[0], from[1], from[2], from[3]};
}
inline ushort4 LoadFour(const Global<const uint16_t>& memory, int64_t index) {
  const uint16_t* from = memory.Elements(index, 4);
  return {from[0], from[1], from[2], from[3]};
}
inline uint4 LoadEight(const Global<const uint16_t>& memory, int64_t index) {
  uint4 value = {};
  std::memcpy(&value, memory.Elements(index, 8), sizeof(value));
  return value;
}
inline uint4 LoadEight(const Shared<uint16_t>& memory, int64_t index) {
  uint16_t elements[8];
  for (int i = 0; i < 8; ++i) {
    elements[i] = memory[index + i];
  }
  uint4 value = {};
  std::memcpy(&value, elements, sizeof(value));
  return value;
}
inline void StoreEight(const Shared<uint16_t>& memory, int64_t index, uint4 value) {
  uint16_t elements[8];
  std::memcpy(elements, &value, sizeof(value));
  for (int i = 0; i < 8; ++i) {
    memory[index + i] = elements[i];
  }
}

inline void AtomicAdd(const Shared<int32_t>& memory, int64_t index, int32_t value) {
  memory[index].AtomicAdd(value);
}
inline void AtomicAdd(const Shared<int64_t>& memory, int64_t index, int64_t value) {
  memory[index].AtomicAdd(value);
}
inline void AtomicAdd(const Global<int64_t>& memory, int64_t index, int64_t value) {
  memory[index] += value;
}

namespace cuda_host {

template <typename T>
Shared<T> StaticShared(const void* declaration, int64_t count) {
  SharedMemory& memory = BlockRunner::Current()->runner->shared();
  return Shared<T>(
      memory.StaticOffset(declaration, count * static_cast<int64_t>(sizeof(T))), count
  );
}

template <typename T>
Shared<T> DynamicShared() {
  const SharedMemory& memory = BlockRunner::Current()->runner->shared();
  return Shared<T>(
      memory.DynamicOffset(), memory.dynamic_bytes() / static_cast<int64_t>(sizeof(T))
  );
}

}  // namespace cuda_host
}  // namespace switchyard
