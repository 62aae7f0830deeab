#include "tests/benchmarks/weight_memory.h"

#include <sys/mman.h>

#include "base/check.h"

namespace switchyard {

WeightMemory::WeightMemory() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED) << "no memory for " << kBytes << " bytes of weights";
  madvise(memory, kBytes, MADV_HUGEPAGE);
  data_ = static_cast<char*>(memory);
  auto* words = static_cast<uint16_t*>(memory);
  for (int64_t i = 0; i < kBytes / 2; ++i) {
    const auto noise = static_cast<uint64_t>(i) * 40503 >> 5;
    words[i] = static_cast<uint16_t>(0x3C00 | (noise & 0x80FF));
  }
}

WeightMemory::~WeightMemory() {
  munmap(data_, kBytes);
}

}  // namespace switchyard
