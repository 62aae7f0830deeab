#include "text/pre_tokenizer.h"

#include <utility>

#include "text/byte_alphabet.h"
#include "text/pattern.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// How GPT-2 splits: English contractions, then runs of letters, of digits and of anything else,
// each with the space before it, then white space.
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Cuts at every match. What lies between matches is a word as well, or is dropped.
class SplitStep final : public PreTokenizerStep {
 public:
  enum class Between { kKept, kDropped };

  SplitStep(Pattern pattern, Between between) : pattern_(std::move(pattern)), between_(between) {}

  Status Split(const PreToken& token, std::vector<PreToken>& words) const override {
    const std::string_view text = token.text;
    ASSIGN_OR_RETURN(const std::vector<Pattern::Span> spans, pattern_.Matches(text));
    const auto add = [&](size_t begin, size_t end) {
      if (begin < end) {
        words.push_back(
            {.text = std::string(text.substr(begin, end - begin)),
             .is_text_start = token.is_text_start && begin == 0,
             .continues = token.continues && begin == 0}
        );
      }
    };
    size_t done = 0;
    for (const Pattern::Span& span : spans) {
      if (between_ == Between::kKept) {
        add(done, span.begin);
      }
      add(span.begin, span.end);
      done = span.end;
    }
    if (between_ == Between::kKept) {
      add(done, text.size());
    }
    return OkStatus();
  }

 private:
  Pattern pattern_;
  Between between_;
};

class AddSpaceStep final : public PreTokenizerStep {
 public:
  Status Split(const PreToken& token, std::vector<PreToken>& words) const override {
    const bool stays = token.continues || token.text.starts_with(' ');
    words.push_back(
        {.text = stays ? token.text : Concat(" ", token.text),
         .is_text_start = token.is_text_start,
         .continues = token.continues}
    );
    return OkStatus();
  }
};

class SpellBytesStep final : public PreTokenizerStep {
 public:
  Status Split(const PreToken& token, std::vector<PreToken>& words) const override {
    words.push_back(
        {.text = SpellBytes(token.text),
         .is_text_start = token.is_text_start,
         .continues = token.continues}
    );
    return OkStatus();
  }
};

// Writes spaces as the replacement character, puts one in front, and cuts before each.
class MetaspaceStep final : public PreTokenizerStep {
 public:
  enum class Prepend { kAlways, kFirst, kNever };

  MetaspaceStep(std::string replacement, Prepend prepend, bool splits)
      : replacement_(std::move(replacement)), prepend_(prepend), splits_(splits) {}

  Status Split(const PreToken& token, std::vector<PreToken>& words) const override {
    std::string text;
    for (const char byte : token.text) {
      byte == ' ' ? text += replacement_ : text += byte;
    }
    const bool may_prepend =
        prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && token.is_text_start);
    if (may_prepend && !token.continues && !text.starts_with(replacement_)) {
      text.insert(0, replacement_);
    }
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t next = splits_ ? text.find(replacement_, begin + 1) : std::string::npos;
      const size_t end = next == std::string::npos ? text.size() : next;
      words.push_back(
          {.text = text.substr(begin, end - begin),
           .is_text_start = token.is_text_start && begin == 0,
           .continues = token.continues && begin == 0}
      );
      begin = end;
    }
    return OkStatus();
  }

 private:
  std::string replacement_;
  Prepend prepend_;
  bool splits_;
};

StatusOr<std::unique_ptr<PreTokenizerStep>> MakeSplit(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string behavior, field.StringOr("behavior", ""));
  ASSIGN_OR_RETURN(const bool invert, field.BoolOr("invert", false));
  const bool keeps = behavior == "Isolated";
  if (!keeps && !(behavior == "Removed" && invert)) {
    return Unimplemented(
        field.Where(),
        ".behavior is \"",
        behavior,
        "\" with invert ",
        invert ? "true" : "false",
        "; supported are Isolated, and Removed with invert true"
    );
  }
  ASSIGN_OR_RETURN(const JsonField pattern, field.Require("pattern"));
  ASSIGN_OR_RETURN(const std::optional<JsonField> literal, pattern.Find("String"));
  ASSIGN_OR_RETURN(const JsonField expression, literal ? *literal : pattern.Require("Regex"));
  ASSIGN_OR_RETURN(const std::string text, expression.String());
  ASSIGN_OR_RETURN(
      Pattern compiled,
      literal ? Pattern::CompileLiteral(text, expression.Where())
              : Pattern::Compile(text, expression.Where())
  );
  return std::make_unique<SplitStep>(
      std::move(compiled), keeps ? SplitStep::Between::kKept : SplitStep::Between::kDropped
  );
}

StatusOr<std::unique_ptr<PreTokenizerStep>> MakeDigits(const JsonField& field) {
  ASSIGN_OR_RETURN(const bool individual, field.BoolOr("individual_digits", false));
  ASSIGN_OR_RETURN(
      Pattern pattern, Pattern::Compile(individual ? "\\p{N}" : "\\p{N}+", field.Where())
  );
  return std::make_unique<SplitStep>(std::move(pattern), SplitStep::Between::kKept);
}

StatusOr<std::unique_ptr<PreTokenizerStep>> MakeMetaspace(const JsonField& field) {
  using Prepend = MetaspaceStep::Prepend;
  ASSIGN_OR_RETURN(const std::string replacement, field.StringOr("replacement", "\xE2\x96\x81"));
  if (replacement.empty() || NextUtf8(replacement).bytes != replacement.size()) {
    return InvalidArgument(
        field.Where(), ".replacement is \"", replacement, "\"; expected one character"
    );
  }
  // Older files have add_prefix_space instead of prepend_scheme, and always split.
  ASSIGN_OR_RETURN(const bool adds, field.BoolOr("add_prefix_space", true));
  ASSIGN_OR_RETURN(
      const std::string scheme, field.StringOr("prepend_scheme", adds ? "always" : "never")
  );
  ASSIGN_OR_RETURN(const bool splits, field.BoolOr("split", true));
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return InvalidArgument(
        field.Where(), ".prepend_scheme is \"", scheme, "\"; expected always, first or never"
    );
  }
  const Prepend prepend = scheme == "always"  ? Prepend::kAlways
                          : scheme == "first" ? Prepend::kFirst
                                              : Prepend::kNever;
  return std::make_unique<MetaspaceStep>(replacement, prepend, splits);
}

StatusOr<std::unique_ptr<PreTokenizerStep>> MakeStep(const TypedField& part) {
  if (part.type == "Split") {
    return MakeSplit(part.field);
  }
  if (part.type == "Digits") {
    return MakeDigits(part.field);
  }
  if (part.type == "Metaspace") {
    return MakeMetaspace(part.field);
  }
  return Unimplemented(
      part.field.Where(),
      ".type is ",
      part.type,
      "; this server reads ByteLevel, Metaspace, Split, Digits and Sequence"
  );
}

StatusOr<std::vector<PreToken>> SplitEach(
    const std::vector<PreToken>& words, const PreTokenizerStep& step
) {
  std::vector<PreToken> finer;
  finer.reserve(words.size());
  for (const PreToken& word : words) {
    RETURN_IF_ERROR(step.Split(word, finer));
  }
  return finer;
}

}  // namespace

StatusOr<PreTokenizer> PreTokenizer::Create(const std::optional<JsonField>& field) {
  ASSIGN_OR_RETURN(const std::vector<TypedField> parts, FlattenSequence(field, "pretokenizers"));
  PreTokenizer made;
  for (const TypedField& part : parts) {
    if (made.is_byte_level_) {
      return Unimplemented(
          part.field.Where(), " follows ByteLevel, which is only supported as the last step"
      );
    }
    RETURN_IF_ERROR(made.Add(part));
  }
  return made;
}

Status PreTokenizer::Add(const TypedField& part) {
  if (part.type == "ByteLevel") {
    return AddByteLevel(part.field);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<PreTokenizerStep> step, MakeStep(part));
  steps_.push_back(std::move(step));
  return OkStatus();
}

Status PreTokenizer::AddByteLevel(const JsonField& field) {
  ASSIGN_OR_RETURN(const bool adds_space, field.BoolOr("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool uses_regex, field.BoolOr("use_regex", true));
  if (adds_space) {
    steps_.push_back(std::make_unique<AddSpaceStep>());
  }
  if (uses_regex) {
    ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(kGpt2Pattern, field.Where()));
    steps_.push_back(std::make_unique<SplitStep>(std::move(pattern), SplitStep::Between::kKept));
  }
  steps_.push_back(std::make_unique<SpellBytesStep>());
  is_byte_level_ = true;
  return OkStatus();
}

StatusOr<std::vector<PreToken>> PreTokenizer::Split(PreToken text) const {
  std::vector<PreToken> words;
  words.push_back(std::move(text));
  for (const std::unique_ptr<PreTokenizerStep>& step : steps_) {
    ASSIGN_OR_RETURN(words, SplitEach(words, *step));
  }
  return words;
}

}  // namespace switchyard
