#include "base/available_memory.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

// A machine of 8000 KiB available memory; its group is "outer/inner".
class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() {
    std::filesystem::create_directories(folder_.path() / "proc" / "self");
    std::filesystem::create_directories(folder_.path() / "cgroup" / "outer" / "inner");
    folder_.Write(
        "proc/meminfo",
        "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n"
    );
    folder_.Write("proc/self/cgroup", "4:memory:/elsewhere\n0::/outer/inner\n");
  }

  void Limit(const std::string& group, const std::string& most, const std::string& used) {
    folder_.Write("cgroup/" + group + "memory.max", most + "\n");
    folder_.Write("cgroup/" + group + "memory.current", used + "\n");
  }

  int64_t Bytes() const {
    return AvailableMemoryBytes(
        {.proc = folder_.path() / "proc", .cgroup = folder_.path() / "cgroup"}
    );
  }

  TemporaryFolder folder_;
};

TEST_F(AvailableMemory, IsTheMachinesWithoutAGroup) {
  EXPECT_EQ(Bytes(), 8'192'000);
}

TEST_F(AvailableMemory, IsTheMachinesWhenTheGroupHasNoLimit) {
  Limit("outer/inner/", "max", "5000");

  EXPECT_EQ(Bytes(), 8'192'000);
}

TEST_F(AvailableMemory, IsWhatTheGroupsLimitLeaves) {
  Limit("outer/inner/", "6000000", "1500000");

  EXPECT_EQ(Bytes(), 4'500'000);
}

TEST_F(AvailableMemory, CountsTheGroupsPageCacheAsAvailable) {
  Limit("outer/inner/", "6000000", "5900000");
  folder_.Write(
      "cgroup/outer/inner/memory.stat",
      "anon 400000\nfile 5500000\ninactive_file 5000000\nactive_file 300000\n"
  );

  EXPECT_EQ(Bytes(), 5'400'000);
}

TEST_F(AvailableMemory, IsWhatTheTightestGroupOnTheWayLeaves) {
  Limit("", "7000000", "1000000");
  Limit("outer/", "3000000", "2500000");
  Limit("outer/inner/", "6000000", "1500000");

  EXPECT_EQ(Bytes(), 500'000);
}

TEST_F(AvailableMemory, IsNothingWhenTheGroupIsOverItsLimit) {
  Limit("outer/inner/", "1000", "2000");

  EXPECT_EQ(Bytes(), 0);
}

TEST_F(AvailableMemory, IsLessThanTheMachineHasWhenTheGroupIsLarger) {
  Limit("outer/inner/", "99000000", "1500000");

  EXPECT_EQ(Bytes(), 8'192'000);
}

}  // namespace
}  // namespace switchyard
