#include "server/experts/expert_query.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <sstream>

namespace switchyard {
namespace {

template <typename Value>
struct Named {
  const char* name;
  Value value;
};
constexpr std::array<Named<v1::Window>, 5> kWindows = {
    {{"life", v1::WINDOW_LIFE},
     {"10s", v1::WINDOW_10_SECONDS},
     {"1m", v1::WINDOW_1_MINUTE},
     {"10m", v1::WINDOW_10_MINUTES},
     {"reset", v1::WINDOW_SINCE_RESET}}};
constexpr std::array<Named<v1::Phase>, 4> kPhaseNames = {
    {{"prefill", v1::PHASE_PREFILL},
     {"decode", v1::PHASE_DECODE},
     {"recompute", v1::PHASE_RECOMPUTE},
     {"warm_up", v1::PHASE_WARM_UP}}};

template <typename Names>
auto Find(const Names& names, const std::string& parameter, const std::string& value)
    -> StatusOr<decltype(names[0].value)> {
  std::string known;
  for (const auto& named : names) {
    if (value == named.name) {
      return named.value;
    }
    known += known.empty() ? Concat(named.name) : Concat(", ", named.name);
  }
  return InvalidArgument(parameter, " is \"", value, "\"; use one of ", known);
}

StatusOr<int32_t> ParseLayer(const std::string& value) {
  int32_t layer = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), layer);
  if (error != std::errc() || end != value.data() + value.size()) {
    return InvalidArgument("layer is \"", value, "\"; give the number of a layer, from 0");
  }
  return layer;
}

// CSV as RFC 4180 quotes it.
std::string Quoted(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter;
    if (letter == '"') {
      quoted += '"';
    }
  }
  return quoted + '"';
}

// As short as it can be read back from.
std::string Short(double value) {
  std::array<char, 32> text = {};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

const char* NameOf(v1::Window window) {
  for (const auto& named : kWindows) {
    if (named.value == window) {
      return named.name;
    }
  }
  return "life";
}

// Of the head's own router.
const v1::RouterFigures& FiguresOf(const v1::RouterStats& router, int32_t head) {
  for (const v1::HeadFigures& own : router.head_figures()) {
    if (own.head() == head) {
      return own.figures();
    }
  }
  return router.heads() > 1 ? v1::RouterFigures::default_instance() : router.figures();
}

}  // namespace

StatusOr<v1::GetExpertStatsRequest> ParseExpertQuery(const QueryParameters& parameters) {
  v1::GetExpertStatsRequest request;
  for (const auto& [name, value] : parameters) {
    if (name == "window") {
      ASSIGN_OR_RETURN(const v1::Window window, Find(kWindows, name, value));
      request.set_window(window);
    } else if (name == "phase") {
      ASSIGN_OR_RETURN(const v1::Phase phase, Find(kPhaseNames, name, value));
      request.add_phases(phase);
    } else if (name == "layer") {
      ASSIGN_OR_RETURN(const int32_t layer, ParseLayer(value));
      request.add_layers(layer);
    } else if (name == "kind") {
      request.add_kinds(value);
    } else if (name != "format") {
      return InvalidArgument(
          "there is no parameter \"", name, "\"; use window, layer, kind, phase or format"
      );
    }
  }
  return request;
}

std::string ExpertCsv(const v1::GetExpertStatsResponse& response) {
  std::ostringstream csv;
  csv << "model,window,window_seconds,layer,kind,head,expert,tokens,gate_weight_sum,utilization,"
         "margin,drift\n";
  for (const v1::RouterStats& router : response.routers()) {
    for (const v1::ExpertStats& expert : router.stats()) {
      csv << Quoted(response.model()) << ',' << NameOf(response.window()) << ','
          << Short(response.window_seconds()) << ',' << router.layer() << ',' << router.kind()
          << ',' << expert.head() << ',' << expert.expert() << ',' << expert.tokens() << ','
          << Short(expert.gate_weight_sum()) << ',';
      if (expert.has_utilization()) {
        csv << Short(expert.utilization());
      }
      const v1::RouterFigures& figures = FiguresOf(router, expert.head());
      csv << ',' << (figures.has_margin() ? Short(figures.margin()) : "") << ','
          << (figures.has_drift() ? Short(figures.drift()) : "") << '\n';
    }
  }
  return std::move(csv).str();
}

}  // namespace switchyard
