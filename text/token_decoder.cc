#include "text/token_decoder.h"

#include <cstddef>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/byte_piece.h"
#include "text/text_normalizer.h"
#include "text/typed_field.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

std::string Joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) {
    text += token;
  }
  return text;
}

class ByteLevelStep final : public DecoderStep {
 public:
  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      ApplyToRunningToken(token);
    }
    tokens = {ReplaceInvalidUtf8(Joined(tokens))};
  }
  // Added tokens need not be spelled in the byte alphabet; then they are what they say.
  void ApplyToRunningToken(std::string& token) const override {
    token = UnspellBytes(token).value_or(token);
  }
};

class ByteFallbackStep final : public DecoderStep {
 public:
  // The library takes a run of byte tokens as a whole: if it is not valid, each of its bytes
  // becomes U+FFFD.
  void Apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> decoded;
    std::string bytes;
    const auto flush = [&] {
      if (!FindInvalidUtf8(bytes)) {
        decoded.push_back(bytes);
      } else {
        decoded.insert(decoded.end(), bytes.size(), std::string(kReplacementCharacter));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const std::optional<uint8_t> byte = ParseBytePiece(token)) {
        bytes.push_back(static_cast<char>(*byte));
        continue;
      }
      if (!bytes.empty()) {
        flush();
      }
      decoded.push_back(std::move(token));
    }
    if (!bytes.empty()) {
      flush();
    }
    tokens = std::move(decoded);
  }
  void ApplyToRunningToken(std::string& token) const override {
    if (const std::optional<uint8_t> byte = ParseBytePiece(token)) {
      token.assign(1, static_cast<char>(*byte));
    }
  }
};

class FuseStep final : public DecoderStep {
 public:
  void Apply(std::vector<std::string>& tokens) const override { tokens = {Joined(tokens)}; }
  void ApplyToRunningToken(std::string&) const override {}
};

// Removes up to so many of one character from both ends of each token. After Fuse that is the ends
// of the text, so it says nothing about a token in running text.
class StripStep final : public DecoderStep {
 public:
  StripStep(std::string content, int32_t start, int32_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (int32_t i = 0; i < start_ && token.starts_with(content_); ++i) {
        token.erase(0, content_.size());
      }
      for (int32_t i = 0; i < stop_ && token.ends_with(content_); ++i) {
        token.resize(token.size() - content_.size());
      }
    }
  }
  void ApplyToRunningToken(std::string&) const override {}

 private:
  std::string content_;
  int32_t start_;
  int32_t stop_;
};

class ReplaceStep final : public DecoderStep {
 public:
  ReplaceStep(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      ApplyToRunningToken(token);
    }
  }
  void ApplyToRunningToken(std::string& token) const override {
    token = ReplaceAll(token, from_, to_);
  }

 private:
  std::string from_;
  std::string to_;
};

class MetaspaceStep final : public DecoderStep {
 public:
  MetaspaceStep(std::string replacement, bool prepends)
      : replacement_(std::move(replacement)), prepends_(prepends) {}

  // If encoding puts a metaspace in front, the first token gives all of its own up.
  void Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = ReplaceAll(tokens[i], replacement_, i == 0 && prepends_ ? "" : " ");
    }
  }
  void ApplyToRunningToken(std::string& token) const override {
    token = ReplaceAll(token, replacement_, " ");
  }

 private:
  std::string replacement_;
  bool prepends_;
};

StatusOr<std::unique_ptr<DecoderStep>> MakeStrip(const JsonField& field) {
  ASSIGN_OR_RETURN(const JsonField content_field, field.Require("content"));
  ASSIGN_OR_RETURN(const std::string content, content_field.String());
  if (content.empty()) {
    return InvalidArgument(content_field.Where(), " is empty");
  }
  ASSIGN_OR_RETURN(const int32_t start, field.RequireId("start"));
  ASSIGN_OR_RETURN(const int32_t stop, field.RequireId("stop"));
  return std::make_unique<StripStep>(content, start, stop);
}

StatusOr<std::unique_ptr<DecoderStep>> MakeReplace(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string from, ReadLiteralPattern(field));
  ASSIGN_OR_RETURN(const std::string to, field.RequireString("content"));
  return std::make_unique<ReplaceStep>(from, to);
}

StatusOr<std::unique_ptr<DecoderStep>> MakeMetaspace(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string replacement, field.StringOr("replacement", "\xE2\x96\x81"));
  if (replacement.empty()) {
    return InvalidArgument(field.Where(), ".replacement is empty");
  }
  ASSIGN_OR_RETURN(const bool adds, field.BoolOr("add_prefix_space", true));
  ASSIGN_OR_RETURN(
      const std::string scheme, field.StringOr("prepend_scheme", adds ? "always" : "never")
  );
  return std::make_unique<MetaspaceStep>(replacement, scheme != "never");
}

StatusOr<std::unique_ptr<DecoderStep>> MakeStep(const std::string& type, const JsonField& field) {
  if (type == "ByteLevel") {
    return std::make_unique<ByteLevelStep>();
  }
  if (type == "ByteFallback") {
    return std::make_unique<ByteFallbackStep>();
  }
  if (type == "Fuse") {
    return std::make_unique<FuseStep>();
  }
  if (type == "Strip") {
    return MakeStrip(field);
  }
  if (type == "Replace") {
    return MakeReplace(field);
  }
  if (type == "Metaspace") {
    return MakeMetaspace(field);
  }
  return Unimplemented(
      field.Where(),
      ".type is ",
      type,
      "; this server reads ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace and Sequence"
  );
}

}  // namespace

StatusOr<TokenDecoder> TokenDecoder::Create(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::vector<TypedField> parts, FlattenSequence(field, "decoders"));
  TokenDecoder decoder;
  for (const TypedField& part : parts) {
    ASSIGN_OR_RETURN(std::unique_ptr<DecoderStep> step, MakeStep(part.type, part.field));
    decoder.steps_.push_back(std::move(step));
  }
  return decoder;
}

std::string TokenDecoder::Decode(std::vector<std::string> tokens) const {
  for (const std::unique_ptr<DecoderStep>& step : steps_) {
    step->Apply(tokens);
  }
  return Joined(tokens);
}

std::string TokenDecoder::RunningBytes(std::string_view token) const {
  std::string bytes(token);
  for (const std::unique_ptr<DecoderStep>& step : steps_) {
    step->ApplyToRunningToken(bytes);
  }
  return bytes;
}

}  // namespace switchyard
