#include "server/call/trace_context.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

constexpr char kValid[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, ContinuesTheTraceOfTheCaller) {
  const auto trace = ContinueTrace(kValid);

  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace->parent_id, "00f067aa0ba902b7");
  EXPECT_NE(trace->span_id, trace->parent_id);
  EXPECT_TRUE(trace->sampled);
  EXPECT_EQ(Traceparent(*trace), "00-4bf92f3577b34da6a3ce929d0e0e4736-" + trace->span_id + "-01");
}

TEST(TraceContext, KnowsOfTheFlagsOnlyWhetherItIsSampled) {
  const std::string base(kValid, 53);

  EXPECT_FALSE(ContinueTrace(base + "00")->sampled);
  EXPECT_FALSE(ContinueTrace(base + "fe")->sampled);
  EXPECT_TRUE(ContinueTrace(base + "ff")->sampled);
  EXPECT_EQ(Traceparent(*ContinueTrace(base + "ff")).substr(52), "-01");
}

TEST(TraceContext, IgnoresWhatTheSpecificationCallsInvalid) {
  for (const char* value :
       {"",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(ContinueTrace(value).has_value()) << value;
  }
}

TEST(TraceContext, ReadsWhatItKnowsOfALaterVersion) {
  const std::string later = "cc" + std::string(kValid + 2);

  EXPECT_TRUE(ContinueTrace(later).has_value());
  EXPECT_TRUE(ContinueTrace(later + "-what-comes").has_value());
  EXPECT_EQ(Traceparent(*ContinueTrace(later + "-what-comes")).substr(0, 3), "00-");
}

TEST(TraceContext, BeginsATraceThatIsValid) {
  const TraceContext trace = BeginTrace();

  EXPECT_TRUE(ContinueTrace(Traceparent(trace)).has_value());
  EXPECT_EQ(trace.parent_id, "");
  EXPECT_NE(trace.trace_id, BeginTrace().trace_id);
}

}  // namespace
}  // namespace switchyard
