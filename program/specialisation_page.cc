#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>

#include "program/specialisation_report.h"

namespace switchyard {
namespace {

// Colors by name, so that light and dark differ in one place.
constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>What the experts do</title>
<style>
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1f24; --soft: #5b6570; --line: #d9dee4;
        --bar: #7aa7d8; --chip: 34, 110, 190; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171b; --ink: #e6e9ec; --soft: #98a2ad; --line: #2c333b; --bar: #3d6ea5;
          --chip: 110, 170, 240; }
}
body { margin: 0 auto; padding: 1rem; max-width: 70rem; background: var(--ground); color: var(--ink);
       font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, .soft { color: var(--soft); }
.expert { display: grid; grid-template-columns: 2rem 5.5rem 1fr; gap: .5rem; align-items: baseline;
          padding: .25rem 0; border-top: 1px solid var(--line); }
.share { position: relative; font-variant-numeric: tabular-nums; text-align: right; }
.share i { position: absolute; left: 0; bottom: -2px; height: 3px; background: var(--bar); }
.chip { display: inline-block; margin: 1px 3px 1px 0; padding: 0 .35rem; border-radius: .3rem;
        font-family: ui-monospace, monospace; font-size: .85rem; white-space: pre; }
</style>
</head>
<body>
)";

// So that nothing of a text or a vocabulary is markup. Control characters are shown as what they
// are not: a browser would show nothing, or stop.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped +=
            static_cast<unsigned char>(letter) < 0x20 ? "\xEF\xBF\xBD" : std::string(1, letter);
    }
  }
  return escaped;
}

void WriteToken(
    const v1::RouterSpecialities& router, const v1::TokenAffinity& token, std::ostringstream& page
) {
  // As many as a token can have that always comes to one of equal experts.
  const double most_bits =
      std::log2(static_cast<double>(router.experts()) / static_cast<double>(router.top_k()));
  const double strength = std::clamp(0.5 * token.information_bits() / most_bits, 0.05, 0.6);
  page << "<span class=\"chip\" style=\"background: rgba(var(--chip), " << strength
       << ")\" title=\"" << token.information_bits() << " bits; " << token.routed() << " of "
       << token.occurrences() << " times\">" << Escaped(token.piece()) << "</span>";
}

void WriteExpert(
    const v1::RouterSpecialities& router,
    const v1::ExpertSpeciality& expert,
    std::ostringstream& page
) {
  const double percent = 100 * expert.share();
  page << "<div class=\"expert\"><span class=\"soft\">" << expert.expert()
       << "</span><span class=\"share\">" << percent
       << " %<i style=\"width: " << std::min(percent, 100.0) << "%\"></i></span><span>";
  for (const v1::TokenAffinity& token : expert.tokens()) {
    WriteToken(router, token, page);
  }
  page << "</span></div>\n";
}

}  // namespace

std::string ToHtml(const SpecialisationReport& report) {
  const v1::ProfileExpertsResponse& profile = report.profile;
  std::ostringstream page;
  page
      << std::fixed << std::setprecision(2) << kHead << "<h1>What the experts of "
      << Escaped(profile.model()) << " do</h1>\n<p>" << profile.tokens() << " tokens, "
      << profile.distinct_tokens() << " of them distinct, of " << Escaped(report.text_name)
      << "; routed on " << Escaped(profile.device()) << " with " << Escaped(profile.dtype())
      << " weights.</p>\n<p>For each expert: its share of the router's choices, and the tokens "
         "that come to it more often than chance, those with the highest pointwise mutual "
         "information first: log2 of p(expert | token) / p(expert), where p(expert | token) is "
         "estimated as if the token had come once more in the way that all tokens do. Tokens that "
         "occur fewer than "
      << profile.min_occurrences()
      << " times are left out. The stronger the color, the more; hold the pointer over a token for "
         "the numbers.</p>"
         "\n";
  for (const v1::RouterSpecialities& router : profile.routers()) {
    int32_t head = -1;
    for (const v1::ExpertSpeciality& expert : router.specialities()) {
      if (expert.head() != head) {
        head = expert.head();
        page << "<h2>" << TitleOf(router, head) << " <span class=\"soft\">" << router.top_k()
             << " of " << router.experts() << "</span></h2>\n";
      }
      WriteExpert(router, expert, page);
    }
  }
  page << "</body>\n</html>\n";
  return std::move(page).str();
}

}  // namespace switchyard
