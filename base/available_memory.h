#pragma once

#include <cstdint>
#include <filesystem>

namespace switchyard {

// Where the kernel tells of memory. Only tests look elsewhere.
struct MemoryFiles {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

// Bytes that this process can still take without swapping: MemAvailable, or what the tightest
// memory.max of its control group (version 2) and of those around it leaves. The page cache, the
// machine's or the group's, counts as available, because the kernel gives it up first.
int64_t AvailableMemoryBytes(const MemoryFiles& files = {});

}  // namespace switchyard
