#include "base/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace switchyard {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number after `name` in a file of lines "name number ...".
std::optional<int64_t> ReadNamedNumber(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string line_name;
  int64_t number = 0;
  std::string rest;
  while (file >> line_name >> number) {
    std::getline(file, rest);
    if (line_name == name) {
      return number;
    }
  }
  return std::nullopt;
}

// Nothing when the file is not there or says "max".
std::optional<int64_t> ReadNumber(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional<int64_t>(number) : std::nullopt;
}

int64_t MachineBytes(const std::filesystem::path& proc) {
  const std::optional<int64_t> kibibytes = ReadNamedNumber(proc / "meminfo", "MemAvailable:");
  return kibibytes ? *kibibytes * 1024 : int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

int64_t GroupBytes(const std::filesystem::path& group) {
  const std::optional<int64_t> limit = ReadNumber(group / "memory.max");
  const std::optional<int64_t> used = ReadNumber(group / "memory.current");
  if (!limit || !used) {
    return kNoLimit;
  }
  const int64_t page_cache = ReadNamedNumber(group / "memory.stat", "inactive_file").value_or(0) +
                             ReadNamedNumber(group / "memory.stat", "active_file").value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - page_cache));
}

// The path of this process's group below the root of all, such as "system.slice/a.service".
std::string GroupName(const std::filesystem::path& proc) {
  std::ifstream file(proc / "self" / "cgroup");
  const std::string prefix = "0::/";
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(prefix, 0) == 0) {
      return line.substr(prefix.size());
    }
  }
  return "";
}

}  // namespace

int64_t AvailableMemoryBytes(const MemoryFiles& files) {
  int64_t bytes = std::min(MachineBytes(files.proc), GroupBytes(files.cgroup));
  std::filesystem::path group = files.cgroup;
  // A limit of any group on the way down counts.
  for (const std::filesystem::path& name : std::filesystem::path(GroupName(files.proc))) {
    group /= name;
    bytes = std::min(bytes, GroupBytes(group));
  }
  return bytes;
}

}  // namespace switchyard
