#include "text/pattern.h"

#include <algorithm>
#include <limits>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/utf8.h"

namespace switchyard {
namespace {

// Steps that one match may take. Real patterns need a handful per byte; the constant part lets
// short texts through whatever the pattern.
constexpr size_t kMatchStepsBase = 100'000;
constexpr size_t kMatchStepsPerByte = 32;
// Memory for backtracking, in KiB.
constexpr uint32_t kMatchHeapKib = 64 * 1024;

// Lets unique_ptr own what PCRE2 hands out, at no cost in size.
template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using CompileContext = std::unique_ptr<pcre2_compile_context, Free<&pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<&pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<&pcre2_match_data_free>>;

std::string PcreMessage(int code) {
  char message[256];
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof(message));
  return message;
}

// Escapes that both libraries know but take differently: word characters and boundaries (PCRE2
// leaves marks out), \h (a hexadecimal digit to Oniguruma, a blank to PCRE2), \K. And && intersects
// classes in Oniguruma only.
constexpr std::string_view kAmbiguousEscapes = "wWbBhHK";

bool MeansSomethingElse(std::string_view two) {
  const bool is_escape = two.size() == 2 && two[0] == '\\';
  return two == "&&" || (is_escape && kAmbiguousEscapes.find(two[1]) != std::string_view::npos);
}

// \s is Unicode's White_Space to Oniguruma; PCRE2's \s has U+180E besides. What has no exact
// counterpart is refused rather than approximated, because a slightly different split changes the
// ids.
StatusOr<std::string> Translate(const std::string& expression, const std::string& where) {
  std::string translated;
  size_t i = 0;
  while (i < expression.size()) {
    const std::string_view two = std::string_view(expression).substr(i, 2);
    if (MeansSomethingElse(two)) {
      return Unimplemented(where, " uses ", two, " in ", expression, ", which is not supported");
    }
    // An escape is taken as a whole, so that the second half of \\ does not begin another one.
    const std::string_view unit = two.substr(0, two[0] == '\\' ? 2 : 1);
    if (unit == "\\s") {
      translated += "\\p{White_Space}";
    } else if (unit == "\\S") {
      translated += "\\P{White_Space}";
    } else {
      translated += unit;
    }
    i += unit.size();
  }
  return translated;
}

}  // namespace

void Pattern::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

StatusOr<Pattern> Pattern::CompilePcre(
    const std::string& expression, uint32_t extra_options, const std::string& where
) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) {
    return ResourceExhausted(where, ": no memory to compile it");
  }
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Pattern pattern;
  pattern.where_ = where;
  pattern.code_.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(expression.data()),
      expression.size(),
      PCRE2_UTF | extra_options,
      &error,
      &offset,
      context.get()
  ));
  if (pattern.code_ == nullptr) {
    return InvalidArgument(
        where,
        " is not a regular expression: ",
        PcreMessage(error),
        " at byte ",
        offset,
        " of ",
        expression
    );
  }
  return pattern;
}

StatusOr<Pattern> Pattern::Compile(const std::string& expression, const std::string& where) {
  ASSIGN_OR_RETURN(const std::string translated, Translate(expression, where));
  // Oniguruma's ^ and $ always match at line ends.
  return CompilePcre(translated, PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, where);
}

StatusOr<Pattern> Pattern::CompileLiteral(const std::string& text, const std::string& where) {
  return CompilePcre(text, PCRE2_LITERAL, where);
}

StatusOr<std::vector<Pattern::Span>> Pattern::Matches(std::string_view text) const {
  const MatchContext context(pcre2_match_context_create(nullptr));
  const MatchData data(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  if (context == nullptr || data == nullptr) {
    return ResourceExhausted(where_, ": no memory to match it");
  }
  const size_t steps = kMatchStepsBase + kMatchStepsPerByte * text.size();
  pcre2_set_match_limit(
      context.get(),
      static_cast<uint32_t>(std::min<size_t>(steps, std::numeric_limits<uint32_t>::max()))
  );
  pcre2_set_heap_limit(context.get(), kMatchHeapKib);
  // Interpreted, not compiled to machine code: PCRE2's compiled matcher has a small fixed stack of
  // its own, counts its steps differently, and splitting into words is far from dominating a
  // prompt's cost.
  std::vector<Span> spans;
  size_t offset = 0;
  while (offset < text.size()) {
    // The text is known to be valid; checking it again for every match would make matching
    // quadratic.
    const int result = pcre2_match(
        code_.get(),
        reinterpret_cast<PCRE2_SPTR>(text.data()),
        text.size(),
        offset,
        PCRE2_NO_UTF_CHECK,
        data.get(),
        context.get()
    );
    if (result == PCRE2_ERROR_NOMATCH) {
      break;
    }
    if (result < 0) {
      return ResourceExhausted(
          where_,
          " cannot be matched against a text of ",
          text.size(),
          " bytes: ",
          PcreMessage(result),
          "; simplify the expression or shorten the text"
      );
    }
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(data.get());
    if (bounds[1] > bounds[0]) {
      spans.push_back({.begin = bounds[0], .end = bounds[1]});
      offset = bounds[1];
    } else if (bounds[0] < text.size()) {
      offset = bounds[0] + NextUtf8(text.substr(bounds[0])).bytes;
    } else {
      break;
    }
  }
  return spans;
}

}  // namespace switchyard
