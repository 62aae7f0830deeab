#include "program/bench/length_distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace switchyard {
namespace {

constexpr int32_t kMostTokens = 1 << 24;
constexpr double kMostSigma = 10;

// The whole text as a number; absent otherwise.
template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return number;
}

std::optional<int32_t> TokensOf(std::string_view text) {
  const std::optional<int32_t> tokens = NumberOf<int32_t>(text);
  return tokens.has_value() && *tokens >= 1 && *tokens <= kMostTokens ? tokens : std::nullopt;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

LengthDistribution LengthDistribution::Fixed(int32_t tokens) {
  LengthDistribution fixed;
  fixed.least_ = tokens;
  fixed.most_ = tokens;
  return fixed;
}

StatusOr<LengthDistribution> LengthDistribution::Parse(const std::string& text) {
  const Status wrong = InvalidArgument(
      "\"",
      text,
      "\" is no distribution of lengths; give fixed:N, uniform:A-B with A <= B, or "
      "lognormal:MEDIAN,SIGMA,MAX with MEDIAN <= MAX and SIGMA in 0..10; tokens are 1 to ",
      kMostTokens
  );
  const size_t colon = text.find(':');
  const std::string kind = colon == std::string::npos ? "fixed" : text.substr(0, colon);
  const std::string_view rest =
      std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1);
  LengthDistribution result;
  std::optional<int32_t> least;
  std::optional<int32_t> most;
  if (kind == "fixed") {
    least = most = TokensOf(rest);
  } else if (kind == "uniform") {
    const std::vector<std::string_view> ends = Split(rest, '-');
    result.kind_ = Kind::kUniform;
    if (ends.size() == 2) {
      least = TokensOf(ends[0]);
      most = TokensOf(ends[1]);
    }
  } else if (kind == "lognormal") {
    const std::vector<std::string_view> parts = Split(rest, ',');
    result.kind_ = Kind::kLogNormal;
    least = 1;
    const auto median = parts.size() == 3 ? TokensOf(parts[0]) : std::nullopt;
    const auto sigma = parts.size() == 3 ? NumberOf<double>(parts[1]) : std::nullopt;
    most = parts.size() == 3 ? TokensOf(parts[2]) : std::nullopt;
    if (!median.has_value() || !sigma.has_value() || !(*sigma >= 0 && *sigma <= kMostSigma) ||
        median > most) {
      return wrong;
    }
    result.median_ = *median;
    result.sigma_ = *sigma;
  }
  if (!least.has_value() || !most.has_value() || *least > *most) {
    return wrong;
  }
  result.least_ = *least;
  result.most_ = *most;
  return result;
}

int32_t LengthDistribution::Draw(SeededRandom& random) const {
  switch (kind_) {
    case Kind::kFixed:
      return most_;
    case Kind::kUniform:
      return least_ +
             static_cast<int32_t>(random.NextBelow(static_cast<uint64_t>(most_ - least_) + 1));
    case Kind::kLogNormal:
      break;
  }
  const double drawn = std::round(median_ * std::exp(sigma_ * random.NextNormal()));
  return static_cast<int32_t>(std::clamp(drawn, 1.0, static_cast<double>(most_)));
}

std::string LengthDistribution::ToString() const {
  switch (kind_) {
    case Kind::kFixed:
      return Concat("fixed:", most_);
    case Kind::kUniform:
      return Concat("uniform:", least_, "-", most_);
    case Kind::kLogNormal:
      break;
  }
  return Concat("lognormal:", median_, ",", sigma_, ",", most_);
}

}  // namespace switchyard
