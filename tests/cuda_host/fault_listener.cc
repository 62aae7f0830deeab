#include <gtest/gtest.h>

#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"

// Linked into every test program that runs on the stand-in: a test that leaves device memory
// behind, or a fault that it did not ask for, has failed.

namespace switchyard::cuda_host {
namespace {

class FaultListener : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& /*info*/) override {
    const std::string message = CurrentMessage();
    EXPECT_EQ(TakeFault(), Fault::kNone) << message;
    EXPECT_EQ(LiveAllocations(), "");
  }
};

const bool registered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new FaultListener);
  return true;
}();

}  // namespace
}  // namespace switchyard::cuda_host
