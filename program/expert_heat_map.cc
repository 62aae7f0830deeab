#include "program/expert_heat_map.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <set>
#include <sstream>

#include "base/status.h"

namespace switchyard {
namespace {

constexpr int kLabelWidth = 14;
constexpr int kCellWidth = 6;

// Of the 256-color palette: backgrounds from nothing to the fair share, and from there to three
// times as much. Black and white writing read well on them.
struct Shade {
  double up_to;
  int background;
  int foreground;
};
constexpr std::array<Shade, 8> kShades = {
    {{0.25, 18, 255},
     {0.5, 25, 255},
     {0.75, 68, 255},
     {1.25, 252, 16},
     {1.5, 223, 16},
     {2, 208, 16},
     {3, 160, 255},
     {1e300, 88, 255}}};

std::string Fixed(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << value;
  return std::move(text).str();
}

std::string Padded(const std::string& text, int width) {
  const auto missing = std::max<int64_t>(0, width - static_cast<int64_t>(text.size()));
  return std::string(static_cast<size_t>(missing), ' ') + text;
}

std::string Cell(const v1::ExpertStats& expert, HeatMapStyle style) {
  if (!expert.has_utilization()) {
    return Padded("-", kCellWidth);
  }
  const double utilization = expert.utilization();
  std::string text = Padded(expert.tokens() == 0 ? "dead" : Fixed(utilization), kCellWidth);
  if (style == HeatMapStyle::kPlain) {
    return text;
  }
  const Shade& shade = *std::ranges::find_if(kShades, [utilization](const Shade& candidate) {
    return utilization <= candidate.up_to;
  });
  return Concat("\033[48;5;", shade.background, ";38;5;", shade.foreground, "m", text, "\033[0m");
}

void AddRouter(const v1::RouterStats& router, HeatMapStyle style, std::ostringstream& map) {
  for (int begin = 0; begin < router.stats_size(); begin += router.experts()) {
    const int head = begin / router.experts();
    std::string label = Concat("  layer ", router.layer());
    if (router.heads() > 1) {
      label += Concat(".", head);
    }
    map << std::left << std::setw(kLabelWidth) << label << std::right;
    const int end = std::min(begin + router.experts(), router.stats_size());
    for (int i = begin; i < end; ++i) {
      map << Cell(router.stats(i), style);
    }
    if (head == 0 && router.has_figures()) {
      map << "  " << Fixed(router.figures().effective_experts()) << " of " << router.experts();
      if (router.figures().has_margin()) {
        map << ", margin " << Fixed(router.figures().margin());
      }
      if (router.figures().has_drift()) {
        map << ", drift " << Fixed(router.figures().drift());
      }
    }
    map << "\n";
  }
}

}  // namespace

std::string ExpertHeatMap(const v1::GetExpertStatsResponse& stats, HeatMapStyle style) {
  std::ostringstream map;
  std::set<std::string> shown;
  for (const v1::RouterStats& first : stats.routers()) {
    if (!shown.insert(first.kind()).second || first.experts() < 1) {
      continue;
    }
    map << first.kind() << ": tokens of each expert over its fair share; then effective experts\n"
        << std::string(kLabelWidth, ' ');
    for (int expert = 0; expert < first.experts(); ++expert) {
      map << std::setw(kCellWidth) << expert;
    }
    map << "\n";
    for (const v1::RouterStats& router : stats.routers()) {
      if (router.kind() == first.kind() && router.experts() > 0) {
        AddRouter(router, style, map);
      }
    }
    map << "\n";
  }
  return std::move(map).str();
}

}  // namespace switchyard
