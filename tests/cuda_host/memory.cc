#include "tests/cuda_host/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/status.h"
#include "tests/cuda_host/report.h"

namespace switchyard::cuda_host {
namespace {

constexpr int64_t kReservedBytes = int64_t{1} << 40;
constexpr int64_t kDeviceAlignment = 256;  // what cudaMalloc promises
constexpr int64_t kGapBytes = 4096;  // between allocations, so that no view runs into the next
// A device of 6 GiB: more than any test needs and less than a machine that runs them has.
constexpr int64_t kDefaultDeviceBytes = int64_t{6} << 30;
constexpr int kFreshByte = 0xcd;  // as a float32: -4.3e8

struct Allocation {
  int64_t bytes = 0;
  void* storage = nullptr;  // null when it has been freed
};

struct Heap {
  std::mutex mutex;
  char* reserved = nullptr;
  int64_t used_addresses = 0;
  int64_t total_bytes = kDefaultDeviceBytes;
  int64_t used_bytes = 0;
  bool exists = true;
  std::map<const char*, Allocation> device;
  std::map<const char*, int64_t> pinned;
  bool is_noting = false;
  std::set<const void*> noted;
};

Heap& TheHeap() {
  static Heap* heap = [] {
    auto* made = new Heap;
    void* reserved = mmap(
        nullptr, kReservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    CHECK(reserved != MAP_FAILED) << "cannot reserve " << kReservedBytes << " bytes of addresses";
    made->reserved = static_cast<char*>(reserved);
    return made;
  }();
  return *heap;
}

int64_t RoundedUp(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

template <typename Map>
auto Containing(Map& map, const char* pointer) {
  auto next = map.upper_bound(pointer);
  return next == map.begin() ? map.end() : --next;
}

}  // namespace

bool IsDevice(const void* pointer) {
  const Heap& heap = TheHeap();
  const auto* address = static_cast<const char*>(pointer);
  return address >= heap.reserved && address < heap.reserved + kReservedBytes;
}

void* BytesOfDevice(const void* device, int64_t bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto* address = static_cast<const char*>(device);
  const auto found = Containing(heap.device, address);
  if (found == heap.device.end()) {
    Report(Fault::kOutOfRange, Concat(device, " is no device memory"));
    return nullptr;
  }
  const auto& [begin, allocation] = *found;
  const int64_t offset = address - begin;
  if (offset + bytes > allocation.bytes) {
    Report(
        Fault::kOutOfRange,
        Concat(bytes, " bytes at byte ", offset, " of an allocation of ", allocation.bytes)
    );
    return nullptr;
  }
  if (allocation.storage == nullptr) {
    Report(Fault::kUseAfterFree, Concat("an allocation of ", allocation.bytes, " bytes was freed"));
    return nullptr;
  }
  if (heap.is_noting) {
    heap.noted.insert(begin);
  }
  return static_cast<char*>(allocation.storage) + offset;
}

void StartNotingAllocations() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  heap.noted.clear();
  heap.is_noting = true;
}

std::vector<const void*> NotedAllocations() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  heap.is_noting = false;
  return {heap.noted.begin(), heap.noted.end()};
}

bool IsLiveAllocation(const void* device) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto found = heap.device.find(static_cast<const char*>(device));
  return found != heap.device.end() && found->second.storage != nullptr;
}

bool IsPinned(const void* pointer, int64_t bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto* address = static_cast<const char*>(pointer);
  const auto found = Containing(heap.pinned, address);
  return found != heap.pinned.end() && address + bytes <= found->first + found->second;
}

void* AllocateDevice(int64_t bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const int64_t place = RoundedUp(bytes, kDeviceAlignment) + kGapBytes;
  if (heap.used_bytes + bytes > heap.total_bytes || heap.used_addresses + place > kReservedBytes) {
    return nullptr;
  }
  void* storage = std::aligned_alloc(
      kDeviceAlignment, static_cast<size_t>(RoundedUp(bytes + 1, kDeviceAlignment))
  );
  if (storage == nullptr) {
    return nullptr;
  }
  std::memset(storage, kFreshByte, static_cast<size_t>(bytes));
  char* address = heap.reserved + heap.used_addresses;
  heap.used_addresses += RoundedUp(place, kDeviceAlignment);
  heap.used_bytes += bytes;
  heap.device[address] = {.bytes = bytes, .storage = storage};
  return address;
}

void FreeDevice(void* device) {
  if (device == nullptr) {
    return;
  }
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto found = heap.device.find(static_cast<const char*>(device));
  if (found == heap.device.end() || found->second.storage == nullptr) {
    const bool freed = found != heap.device.end();
    Report(
        Fault::kWrongFree, Concat(device, freed ? " was freed before" : " was not from cudaMalloc")
    );
    return;
  }
  std::free(found->second.storage);
  found->second.storage = nullptr;
  heap.used_bytes -= found->second.bytes;
}

void* AllocatePinned(int64_t bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  void* host = std::aligned_alloc(
      kDeviceAlignment, static_cast<size_t>(RoundedUp(bytes + 1, kDeviceAlignment))
  );
  if (host != nullptr) {
    heap.pinned[static_cast<const char*>(host)] = bytes;
  }
  return host;
}

void FreePinned(void* host) {
  if (host == nullptr) {
    return;
  }
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  if (heap.pinned.erase(static_cast<const char*>(host)) == 0) {
    Report(Fault::kWrongFree, Concat(host, " was not from cudaMallocHost"));
    return;
  }
  std::free(host);
}

MemoryInfo DeviceMemory() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  return {.free_bytes = heap.total_bytes - heap.used_bytes, .total_bytes = heap.total_bytes};
}

void SetDeviceMemory(int64_t total_bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  heap.total_bytes = total_bytes;
}

bool DeviceExists() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  return heap.exists;
}

void SetDeviceExists(bool exists) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  heap.exists = exists;
}

std::string LiveAllocations() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  std::string lines;
  for (const auto& [address, allocation] : heap.device) {
    if (allocation.storage != nullptr) {
      lines += Concat("device memory, ", allocation.bytes, " bytes\n");
    }
  }
  for (const auto& [address, bytes] : heap.pinned) {
    lines += Concat("pinned host memory, ", bytes, " bytes\n");
  }
  return lines;
}

}  // namespace switchyard::cuda_host
