#include "server/generation/forbidden_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/validation/field_violation.h"
#include "server/validation/request_validation.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

constexpr int kMaxBadWords = 256;
constexpr size_t kMaxBadWordBytes = 256;
constexpr int kMaxBadWordTokens = 64;
constexpr int kMaxAllowedTokenIds = 16384;

using TokenSequences = std::vector<std::vector<int32_t>>;

Status ReadNoRepeatNgramSize(const v1::SamplingParameters& message, SamplingParameters& sampling) {
  if (!message.has_no_repeat_ngram_size()) {
    return OkStatus();
  }
  const int32_t size = message.no_repeat_ngram_size();
  if (size < 0 || size > kMaxNoRepeatNgramSize) {
    return FieldViolation(
        "sampling.no_repeat_ngram_size",
        Concat("is ", size, "; it must be in [0, ", kMaxNoRepeatNgramSize, "]; 0 is off")
    );
  }
  sampling.no_repeat_ngram_tokens = size;
  return OkStatus();
}

Status CheckBadWord(const std::string& field, const std::string& word) {
  if (word.empty() || word.size() > kMaxBadWordBytes) {
    return FieldViolation(
        field,
        Concat(
            "has ",
            word.size(),
            " bytes; a bad word has 1 to ",
            kMaxBadWordBytes,
            word.empty() ? "; leave it out" : "; shorten it"
        )
    );
  }
  const std::optional<size_t> invalid = FindInvalidUtf8(word);
  return invalid ? FieldViolation(field, Concat("is not valid UTF-8 at byte ", *invalid))
                 : OkStatus();
}

// The ways in which a tokenizer spells `word` in running text: first in a text, behind a space and
// inside a longer word. Many tokenizers have one way for all or two.
StatusOr<TokenSequences> SpellingsOf(const std::string& word, const Tokenizer& tokenizer) {
  TokenSequences spellings;
  const EncodeOptions as_first{.add_bos = false};
  const EncodeOptions as_continuation{.add_bos = false, .continues_text = true};
  ASSIGN_OR_RETURN(spellings.emplace_back(), tokenizer.Encode(word, as_first));
  ASSIGN_OR_RETURN(spellings.emplace_back(), tokenizer.Encode(word, as_continuation));
  if (!word.starts_with(' ')) {
    ASSIGN_OR_RETURN(
        spellings.emplace_back(), tokenizer.Encode(Concat(" ", word), as_continuation)
    );
  }
  std::erase_if(spellings, [](const std::vector<int32_t>& ids) { return ids.empty(); });
  return spellings;
}

Status AddBadWord(
    const std::string& field,
    const std::string& word,
    const LoadedModel& model,
    TokenSequences& bad_words
) {
  RETURN_IF_ERROR(CheckBadWord(field, word));
  StatusOr<TokenSequences> spellings = SpellingsOf(word, *model.tokenizer);
  if (spellings.status().code() == StatusCode::kInvalidArgument) {
    return FieldViolation(field, Concat("cannot be tokenized: ", MessageOf(spellings.status())));
  }
  RETURN_IF_ERROR(spellings.status());
  if (spellings->empty()) {
    return FieldViolation(field, "comes to no tokens at all; send a character that is not a space");
  }
  for (std::vector<int32_t>& ids : *spellings) {
    // A tokenizer may know more tokens than the model can choose.
    const auto is_known = [&](int32_t id) { return id < model.vocabulary_size; };
    if (std::ranges::all_of(ids, is_known)) {
      bad_words.push_back(std::move(ids));
    }
  }
  return OkStatus();
}

Status ReadBadWords(
    const v1::SamplingParameters& message, const LoadedModel& model, TokenSequences& bad_words
) {
  RETURN_IF_ERROR(CheckCount("sampling.bad_words", message.bad_words_size(), kMaxBadWords));
  if (!message.bad_words().empty()) {
    RETURN_IF_ERROR(CheckHasTokenizer("sampling.bad_words", model));
  }
  for (int i = 0; i < message.bad_words_size(); ++i) {
    const std::string field = Concat("sampling.bad_words[", i, "]");
    RETURN_IF_ERROR(AddBadWord(field, message.bad_words(i), model, bad_words));
  }
  return OkStatus();
}

Status ReadBadWordTokens(
    const v1::SamplingParameters& message, const LoadedModel& model, TokenSequences& bad_words
) {
  RETURN_IF_ERROR(
      CheckCount("sampling.bad_word_tokens", message.bad_word_tokens_size(), kMaxBadWords)
  );
  for (int i = 0; i < message.bad_word_tokens_size(); ++i) {
    const v1::TokenIds& word = message.bad_word_tokens(i);
    const std::string field = Concat("sampling.bad_word_tokens[", i, "].ids");
    if (word.ids().empty()) {
      return FieldViolation(field, "is empty; send at least one token id, or leave it out");
    }
    RETURN_IF_ERROR(CheckCount(field, word.ids_size(), kMaxBadWordTokens));
    for (int j = 0; j < word.ids_size(); ++j) {
      RETURN_IF_ERROR(CheckTokenId(Concat(field, "[", j, "]"), word.ids(j), model.vocabulary_size));
    }
    bad_words.emplace_back(word.ids().begin(), word.ids().end());
  }
  return OkStatus();
}

Status ReadAllowedTokenIds(
    const v1::SamplingParameters& message, int32_t vocabulary_size, std::vector<int32_t>& allowed
) {
  RETURN_IF_ERROR(CheckCount(
      "sampling.allowed_token_ids", message.allowed_token_ids_size(), kMaxAllowedTokenIds
  ));
  for (int i = 0; i < message.allowed_token_ids_size(); ++i) {
    const int32_t id = message.allowed_token_ids(i);
    if (id < 0 || id >= vocabulary_size) {
      return CheckTokenId(Concat("sampling.allowed_token_ids[", i, "]"), id, vocabulary_size);
    }
  }
  allowed.assign(message.allowed_token_ids().begin(), message.allowed_token_ids().end());
  return OkStatus();
}

template <typename Values>
void SortAndDropRepeats(Values& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

Status ReadForbiddenTokens(
    const v1::SamplingParameters& message, const LoadedModel& model, SamplingParameters& sampling
) {
  RETURN_IF_ERROR(ReadNoRepeatNgramSize(message, sampling));
  RETURN_IF_ERROR(ReadBadWords(message, model, sampling.bad_words));
  RETURN_IF_ERROR(ReadBadWordTokens(message, model, sampling.bad_words));
  RETURN_IF_ERROR(ReadAllowedTokenIds(message, model.vocabulary_size, sampling.allowed_token_ids));
  SortAndDropRepeats(sampling.bad_words);
  SortAndDropRepeats(sampling.allowed_token_ids);
  return OkStatus();
}

}  // namespace switchyard
