#include <algorithm>
#include <iomanip>
#include <sstream>

#include "program/bench/bench_report.h"
#include "program/text_table.h"

namespace switchyard {
namespace {

// More mismatches than these are only counted.
constexpr size_t kShownMismatches = 5;

std::string Fixed(double value, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value;
  return std::move(text).str();
}

// Three significant digits or more: "0.123", "4.56", "78.9", "1234".
std::string Short(double value) {
  const int decimals = value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return Fixed(value, decimals);
}

std::string Milliseconds(double seconds) {
  return Short(1000 * seconds);
}

std::string LoadLine(const BenchReport& report) {
  const LoadSchedule& schedule = report.schedule;
  if (schedule.requests_per_second.has_value()) {
    return Concat(*schedule.requests_per_second, " requests/s arriving at random");
  }
  return Concat(
      schedule.concurrency, schedule.concurrency == 1 ? " stream" : " streams", " at a time"
  );
}

std::string LengthLine(const BenchReport& report) {
  const LoadShape& shape = report.shape;
  std::string text = Concat("prompts ", shape.prompt_tokens.ToString());
  if (!report.prompts_path.empty()) {
    text = Concat(shape.text_prompts.size(), " prompts of ", report.prompts_path);
  } else if (shape.shared_prefix_tokens > 0) {
    text += Concat(
        " after a common ",
        shape.shared_prefix_tokens,
        " in ",
        Short(100 * shape.shared_prefix_share),
        "%"
    );
  }
  return text + Concat(", outputs ", shape.output_tokens.ToString(), ", seed ", shape.seed);
}

std::string CountLines(const LoadResults& results) {
  TextTable table({"", "", "per second"});
  const auto add = [&table](const char* name, int64_t count, const std::string& rate) {
    table.AddRow({name, std::to_string(count), rate});
  };
  const auto add_if_any = [&add](const char* name, int64_t count) {
    if (count > 0) {
      add(name, count, "");
    }
  };
  add("requests sent", results.started, "");
  add("  completed", results.completed, Short(results.PerSecond(results.completed_within_window)));
  add_if_any("  cancelled by this client", results.cancelled);
  add_if_any("  past their short deadline", results.past_deadline);
  add_if_any("  stalled, ended by server", results.stall_ended);
  add("  failed", results.failed, "");
  add("tokens generated",
      results.received_tokens,
      Short(results.PerSecond(results.received_tokens_within_window)));
  add("prompt tokens",
      results.prompt_tokens,
      Short(results.PerSecond(results.prompt_tokens_within_window)));
  add_if_any("  of these cached", results.cached_prompt_tokens);
  return table.ToString();
}

std::string LatencyLines(const LoadResults& results) {
  TextTable table({"milliseconds", "mean", "p50", "p90", "p99", "max"});
  const auto add = [&table](const char* name, const LatencyHistogram& histogram) {
    table.AddRow(
        {name,
         Milliseconds(histogram.MeanSeconds()),
         Milliseconds(histogram.PercentileSeconds(50)),
         Milliseconds(histogram.PercentileSeconds(90)),
         Milliseconds(histogram.PercentileSeconds(99)),
         Milliseconds(histogram.MaxSeconds())}
    );
  };
  add("time to first token", results.time_to_first_token);
  add("between tokens", results.inter_token);
  add("between messages", results.message_gap);
  add("whole request", results.end_to_end);
  add("queue in the server", results.server_queue);
  return table.ToString();
}

std::string FailureLines(const LoadResults& results) {
  std::string text;
  for (const auto& [code, failure] : results.failures) {
    text += Concat(
        "\n",
        failure.count,
        " failed with ",
        NameOf(code),
        ", answered after ",
        Milliseconds(failure.until_answer.PercentileSeconds(50)),
        " ms (p50), ",
        Milliseconds(failure.until_answer.MaxSeconds()),
        " ms at most; the first:\n  ",
        failure.first_message,
        "\n"
    );
  }
  return text;
}

std::string CounterLines(const ServerCounters& counters) {
  if (counters.empty()) {
    return "";
  }
  TextTable table({"counted by the server", ""});
  for (const auto& [name, value] : counters) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    const bool is_whole = value == static_cast<double>(static_cast<int64_t>(value));
    table.AddRow({"  " + words, is_whole ? Fixed(value, 0) : Fixed(value, 6)});
  }
  return "\n" + table.ToString();
}

std::string VerificationLines(const Verification& verification) {
  const size_t different = verification.mismatches.size();
  std::string text = Concat("\n", verification.checked, " requests run again alone: ");
  if (different == 0) {
    return text + "all gave the same tokens\n";
  }
  text += Concat(different, " gave other tokens\n");
  for (size_t i = 0; i < std::min(different, kShownMismatches); ++i) {
    const Mismatch& mismatch = verification.mismatches[i];
    text += Concat(
        "  request ",
        mismatch.index,
        ", token ",
        mismatch.position,
        ": ",
        mismatch.under_load,
        " under load, ",
        mismatch.alone,
        " alone\n"
    );
  }
  return text;
}

}  // namespace

std::string TableOf(const BenchReport& report) {
  const LoadResults& results = report.results;
  std::string text = Concat(
      report.model.model(),
      " on ",
      report.server,
      ": ",
      LoadLine(report),
      ", ",
      Short(results.window_seconds),
      " s\n",
      LengthLine(report),
      "\n\n",
      CountLines(results)
  );
  if (results.time_to_first_token.count() > 0) {
    text += "\n" + LatencyLines(results);
  }
  text += CounterLines(report.server_counters) + FailureLines(results);
  if (report.verification.has_value()) {
    text += VerificationLines(*report.verification);
  }
  return text;
}

}  // namespace switchyard
