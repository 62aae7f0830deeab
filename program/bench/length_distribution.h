#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "program/bench/seeded_random.h"

namespace switchyard {

// How long prompts or completions are, in tokens. A value.
class LengthDistribution {
 public:
  static LengthDistribution Fixed(int32_t tokens);
  // "fixed:128", "uniform:16-256" (both ends included) or "lognormal:100,0.8,1000": median, sigma
  // of the logarithm, and the most, to which longer draws are cut. A number alone is fixed. Lengths
  // are 1 to 2^24. INVALID_ARGUMENT that shows the text and the three forms.
  static StatusOr<LengthDistribution> Parse(const std::string& text);

  int32_t Draw(SeededRandom& random) const;
  // The longest that Draw gives.
  int32_t MaxTokens() const { return most_; }
  // As Parse takes it.
  std::string ToString() const;

 private:
  enum class Kind : uint8_t { kFixed, kUniform, kLogNormal };

  Kind kind_ = Kind::kFixed;
  int32_t least_ = 1;
  int32_t most_ = 1;
  double median_ = 0;  // these two of kLogNormal
  double sigma_ = 0;
};

}  // namespace switchyard
