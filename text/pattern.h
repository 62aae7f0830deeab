#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

struct pcre2_real_code_8;

namespace switchyard {

// A regular expression as tokenizer.json files write them (Oniguruma's dialect, Unicode
// throughout), run by PCRE2 with bounded effort. Immutable and thread-safe.
class Pattern {
 public:
  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };

  // Messages start with `where`. INVALID_ARGUMENT when it is no regular expression; UNIMPLEMENTED
  // for constructs that mean something else to PCRE2 than to Oniguruma.
  static StatusOr<Pattern> Compile(const std::string& expression, const std::string& where);
  // Matches `text` itself.
  static StatusOr<Pattern> CompileLiteral(const std::string& text, const std::string& where);

  // The non-empty matches from left to right. RESOURCE_EXHAUSTED when matching takes more
  // backtracking than a fixed amount per byte allows. Requires: text is valid UTF-8.
  StatusOr<std::vector<Span>> Matches(std::string_view text) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };

  Pattern() = default;
  static StatusOr<Pattern> CompilePcre(
      const std::string& expression, uint32_t extra_options, const std::string& where
  );

  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
  std::string where_;
};

}  // namespace switchyard
