#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The stand-in's memory. What cudaMalloc gives is an address in a reserved range that nobody can
// read or write, so that host code which follows a device pointer stops at once; the bytes are
// elsewhere, and kernels get at them through views. An address is never given out twice.

namespace switchyard::cuda_host {

// Where the bytes of a device range are; null, after a report, when it is not all inside one live
// allocation.
void* BytesOfDevice(const void* device, int64_t bytes);
bool IsDevice(const void* pointer);

// Notes which allocations BytesOfDevice is asked for, until they are taken.
void StartNotingAllocations();
std::vector<const void*> NotedAllocations();
bool IsLiveAllocation(const void* device);

bool IsPinned(const void* pointer, int64_t bytes);

// Null when the device has not so much left.
void* AllocateDevice(int64_t bytes);
void FreeDevice(void* device);
void* AllocatePinned(int64_t bytes);
void FreePinned(void* host);

struct MemoryInfo {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};
MemoryInfo DeviceMemory();
// For tests: how much memory the device has.
void SetDeviceMemory(int64_t total_bytes);

// For tests: whether there is a device at all.
bool DeviceExists();
void SetDeviceExists(bool exists);

// What has been allocated and not freed, one a line; "" when there is nothing.
std::string LiveAllocations();

}  // namespace switchyard::cuda_host
