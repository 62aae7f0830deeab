#include "server/validation/generation_defaults.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "engine/model/config_reader.h"
#include "server/generation/forbidden_tokens.h"

namespace switchyard {
namespace {

struct Range {
  double least = 0;
  double most = 0;
  bool least_is_included = true;
};

void ReadNumber(ConfigReader& reader, const char* key, const Range& range, float& value) {
  const double read = reader.NumberOr({key}, value);
  const bool above = range.least_is_included ? read >= range.least : read > range.least;
  if (above && read <= range.most) {
    value = static_cast<float>(read);
    return;
  }
  reader.Fail(Concat(
      key,
      " is ",
      read,
      "; it must be in ",
      range.least_is_included ? "[" : "(",
      range.least,
      ", ",
      range.most,
      "]"
  ));
}

void ReadEosTokenIds(ConfigReader& reader, int32_t vocabulary_size, std::vector<int32_t>& ids) {
  ids = reader.TokenIds("eos_token_id");
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size) {
      reader.Fail(
          Concat("eos_token_id ", id, " is not in [0, ", vocabulary_size, "), the vocabulary")
      );
    }
  }
}

void ReadNoRepeatNgramSize(ConfigReader& reader, int32_t& tokens) {
  const int64_t read = reader.NonNegativeOr({"no_repeat_ngram_size"}, tokens);
  if (read > kMaxNoRepeatNgramSize) {
    reader.Fail(
        Concat("no_repeat_ngram_size is ", read, "; it must be in [0, ", kMaxNoRepeatNgramSize, "]")
    );
    return;
  }
  tokens = static_cast<int32_t>(read);
}

}  // namespace

StatusOr<GenerationDefaults> ReadGenerationDefaults(
    const std::filesystem::path& model_folder,
    int32_t vocabulary_size,
    const GenerationDefaults& base
) {
  GenerationDefaults defaults = base;
  const std::filesystem::path path = model_folder / "generation_config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return defaults;
  }
  ASSIGN_OR_RETURN(ConfigReader reader, ConfigReader::Open(path));
  SamplingParameters& sampling = defaults.sampling;
  ReadNumber(reader, "temperature", {.least = 0, .most = 100}, sampling.temperature);
  ReadNumber(reader, "top_p", {.least = 0, .most = 1, .least_is_included = false}, sampling.top_p);
  ReadNumber(reader, "min_p", {.least = 0, .most = 1}, sampling.min_p);
  ReadNumber(
      reader, "typical_p", {.least = 0, .most = 1, .least_is_included = false}, sampling.typical_p
  );
  ReadNumber(
      reader,
      "repetition_penalty",
      {.least = 0, .most = 100, .least_is_included = false},
      sampling.repetition_penalty
  );
  ReadNoRepeatNgramSize(reader, sampling.no_repeat_ngram_tokens);
  // A file written for a larger vocabulary means the same with every token kept.
  sampling.top_k = static_cast<int32_t>(
      std::min<int64_t>(reader.NonNegativeOr({"top_k"}, sampling.top_k), vocabulary_size)
  );
  if (!reader.FlagOr({"do_sample"}, true)) {
    sampling.temperature = 0;
  }
  defaults.max_tokens = static_cast<int32_t>(std::min<int64_t>(
      reader.PositiveOr({"max_new_tokens"}, defaults.max_tokens),
      std::numeric_limits<int32_t>::max()
  ));
  ReadEosTokenIds(reader, vocabulary_size, defaults.eos_token_ids);
  RETURN_IF_ERROR(reader.status());
  return defaults;
}

}  // namespace switchyard
