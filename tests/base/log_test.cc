#include "base/log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/captured_log.h"

namespace switchyard {
namespace {

std::string Text(std::string_view fields, const std::vector<LogValue>& values) {
  return RenderLogFields(LogFormat::kText, fields, values);
}

nlohmann::json Json(std::string_view fields, const std::vector<LogValue>& values) {
  return nlohmann::json::parse("{" + RenderLogFields(LogFormat::kJson, fields, values) + "}");
}

TEST(Log, KnowsItsLevels) {
  for (const char* level : {"debug", "info", "warning", "error", "off"}) {
    EXPECT_TRUE(SetLogLevel(level)) << level;
  }
  EXPECT_FALSE(SetLogLevel("loud"));
}

TEST(Log, WritesOneEventALineInEitherFormat) {
  CapturedLog log;

  LogInfo("event=ready port={} share={:.2f} tls={}", 50051, 0.256, true);
  log.Use(LogFormat::kJson);
  LogWarning("event=ready port={} share={:.2f} tls={}", 50051, 0.256, true);

  const std::vector<std::string> lines = log.Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(
      lines[0].substr(lines[0].find("Z ")),
      "Z level=info event=ready port=50051 share=0.26 tls=true"
  );
  const nlohmann::json json = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["event"], "ready");
  EXPECT_EQ(json["port"], 50051);
  EXPECT_EQ(json["share"], 0.26);
  EXPECT_EQ(json["tls"], true);
  EXPECT_EQ(json["time"].get<std::string>().back(), 'Z');
}

TEST(Log, IsSilentBelowItsLevel) {
  CapturedLog log;

  LogDebug("event=step running={}", 1);

  EXPECT_TRUE(log.Lines().empty());
}

TEST(LogLine, QuotesWhatIsMoreThanAWord) {
  EXPECT_EQ(Text("event=a path={}", {LogValue("/m/x-1.b")}), "event=a path=/m/x-1.b");
  EXPECT_EQ(Text("event=a reason=\"{}\"", {LogValue("no file")}), "event=a reason=\"no file\"");
  EXPECT_EQ(Text("event=a reason={}", {LogValue("")}), "event=a reason=\"\"");
  EXPECT_EQ(Text("event=a reason={}", {LogValue("a=b")}), "event=a reason=\"a=b\"");
  EXPECT_EQ(
      Text("event=a note=\"two words\" n={}", {LogValue(int64_t{7})}),
      "event=a note=\"two words\" n=7"
  );
}

TEST(LogLine, CannotBeForgedByAValue) {
  const std::string evil = "x\r\n2026-01-01T00:00:00.000Z level=error event=\"stolen\" {}";

  EXPECT_EQ(
      Text("event=refused request_id={} code={}", {LogValue(evil), LogValue("OK")}),
      R"(event=refused request_id="x\r\n2026-01-01T00:00:00.000Z level=error )"
      R"(event=\"stolen\" {}" code=OK)"
  );
  EXPECT_EQ(Json("event=refused request_id={}", {LogValue(evil)})["request_id"], evil);
}

TEST(LogLine, EscapesTerminalControlsAndForeignLineEnds) {
  // Escape, delete, C1 next line, line separator, and a byte that is no UTF-8.
  const std::string evil = "\x1b[2J\x7f\xc2\x85\xe2\x80\xa8\xff";

  EXPECT_EQ(
      Text("event=a b={}", {LogValue(evil)}), R"(event=a b="\u001b[2J\u007f\u0085\u2028\ufffd")"
  );
}

TEST(LogLine, KeepsNumbersThatAreNoneOutOfJson) {
  const double nan = std::nan("");

  EXPECT_EQ(Json("event=a value={} other={}", {LogValue(nan), LogValue(1.5)})["value"], "nan");
  EXPECT_EQ(Json("event=a value={} other={}", {LogValue(nan), LogValue(1.5)})["other"], 1.5);
}

}  // namespace
}  // namespace switchyard
