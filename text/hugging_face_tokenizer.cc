#include "text/hugging_face_tokenizer.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json_text.h"
#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/json_field.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/text_file.h"
#include "text/text_normalizer.h"
#include "text/token_decoder.h"

namespace switchyard {
namespace {

// The parts of the pipeline, in the order that text passes them.
struct Pipeline {
  AddedTokens added_tokens;
  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeModel model;
  TokenDecoder decoder;
  Vocabulary vocabulary;
  SequenceTokens sequence_tokens;
};

class HuggingFaceTokenizer final : public Tokenizer {
 public:
  explicit HuggingFaceTokenizer(Pipeline pipeline) : pipeline_(std::move(pipeline)) {
    bytes_.reserve(static_cast<size_t>(VocabularySize()));
    for (int32_t id = 0; id < VocabularySize(); ++id) {
      bytes_.push_back(IsControl(id) ? "" : pipeline_.decoder.RunningBytes(Spelling(id)));
    }
  }

  StatusOr<std::vector<int32_t>> Encode(std::string_view text, const EncodeOptions& options)
      const override;
  StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;

  std::string_view TokenBytes(int32_t id) const override {
    CHECK(id >= 0 && id < VocabularySize()) << "id=" << id << " size=" << VocabularySize();
    return bytes_[static_cast<size_t>(id)];
  }
  std::string_view TokenPiece(int32_t id) const override { return pipeline_.vocabulary.Piece(id); }
  bool IsControl(int32_t id) const override {
    return pipeline_.added_tokens.SpecialIds().contains(id);
  }
  int32_t VocabularySize() const override { return pipeline_.vocabulary.Size(); }
  bool AddsBos() const override { return pipeline_.sequence_tokens.add_bos.value_or(false); }
  std::optional<int32_t> BosId() const override { return pipeline_.sequence_tokens.bos_id; }
  std::optional<int32_t> EosId() const override { return pipeline_.sequence_tokens.eos_id; }

 private:
  // What the decoder gets to see of a token.
  std::string Spelling(int32_t id) const {
    return pipeline_.added_tokens.NormalizedSpelling(id).value_or(pipeline_.vocabulary.Piece(id));
  }
  Status AppendRaw(
      std::string_view text,
      bool is_text_start,
      const EncodeOptions& options,
      std::vector<int32_t>& ids
  ) const;

  Pipeline pipeline_;
  std::vector<std::string> bytes_;  // by id
};

StatusOr<std::vector<int32_t>> HuggingFaceTokenizer::Encode(
    std::string_view text, const EncodeOptions& options
) const {
  RETURN_IF_ERROR(CheckEncodable(text));
  std::vector<int32_t> ids;
  ASSIGN_OR_RETURN(const std::optional<int32_t> bos, BosFor(options, pipeline_.sequence_tokens));
  if (bos) {
    ids.push_back(*bos);
  }
  for (const AddedTokens::Piece& piece :
       pipeline_.added_tokens.SplitRaw(text, options.parse_special)) {
    if (piece.id) {
      ids.push_back(*piece.id);
      continue;
    }
    const bool is_text_start = piece.text.data() == text.data();
    RETURN_IF_ERROR(AppendRaw(piece.text, is_text_start, options, ids));
  }
  return ids;
}

// A stretch without any of the tokens that are looked for before normalization.
Status HuggingFaceTokenizer::AppendRaw(
    std::string_view text,
    bool is_text_start,
    const EncodeOptions& options,
    std::vector<int32_t>& ids
) const {
  const bool continues = is_text_start && options.continues_text;
  const std::string normalized = pipeline_.normalizer.Normalize(text, continues);
  for (const AddedTokens::Piece& piece :
       pipeline_.added_tokens.SplitNormalized(normalized, options.parse_special)) {
    if (piece.id) {
      ids.push_back(*piece.id);
      continue;
    }
    const bool is_first = is_text_start && piece.text.data() == normalized.data();
    ASSIGN_OR_RETURN(
        const std::vector<PreToken> words,
        pipeline_.pre_tokenizer.Split(
            {.text = std::string(piece.text),
             .is_text_start = is_first,
             .continues = is_first && options.continues_text}
        )
    );
    for (const PreToken& word : words) {
      pipeline_.model.AppendEncoded(word.text, ids);
    }
  }
  return OkStatus();
}

StatusOr<std::string> HuggingFaceTokenizer::Decode(std::span<const int32_t> ids) const {
  RETURN_IF_ERROR(CheckIds(ids, VocabularySize()));
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (!IsControl(id)) {
      tokens.push_back(Spelling(id));
    }
  }
  return pipeline_.decoder.Decode(std::move(tokens));
}

StatusOr<Pipeline> ReadPipeline(const JsonField& root, const TokenizerSettings& settings) {
  ASSIGN_OR_RETURN(const std::optional<JsonField> normalizer_field, root.Find("normalizer"));
  ASSIGN_OR_RETURN(TextNormalizer normalizer, TextNormalizer::Create(normalizer_field));
  ASSIGN_OR_RETURN(const std::optional<JsonField> pre_tokenizer_field, root.Find("pre_tokenizer"));
  ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::Create(pre_tokenizer_field));
  ASSIGN_OR_RETURN(const JsonField decoder_field, root.Require("decoder"));
  ASSIGN_OR_RETURN(TokenDecoder decoder, TokenDecoder::Create(decoder_field));

  // Added tokens come before the model: it must know which of its own tokens are special to keep
  // words from them.
  Vocabulary vocabulary;
  ASSIGN_OR_RETURN(const std::optional<JsonField> added_field, root.Find("added_tokens"));
  ASSIGN_OR_RETURN(
      AddedTokens added_tokens,
      AddedTokens::Create(
          added_field, [&](std::string_view text) { return normalizer.Normalize(text); }, vocabulary
      )
  );
  ASSIGN_OR_RETURN(const JsonField model_field, root.Require("model"));
  ASSIGN_OR_RETURN(
      BpeModel model, BpeModel::Create(model_field, added_tokens.SpecialIds(), vocabulary)
  );
  RETURN_IF_ERROR(model.CheckCoverage(pre_tokenizer.IsByteLevel(), model_field.Where()));
  RETURN_IF_ERROR(vocabulary.CheckComplete(root.Where()));

  ASSIGN_OR_RETURN(const std::optional<JsonField> post_field, root.Find("post_processor"));
  ASSIGN_OR_RETURN(const SequenceTokens own, ReadPostProcessor(post_field));
  if (own.bos_id && *own.bos_id >= vocabulary.Size()) {
    return InvalidArgument(
        post_field->Where(),
        " puts the token ",
        *own.bos_id,
        " in front of the text; ids lie in [0, ",
        vocabulary.Size(),
        ")"
    );
  }
  ASSIGN_OR_RETURN(
      const SequenceTokens sequence_tokens, ResolveSequenceTokens(own, settings, vocabulary)
  );
  return Pipeline{
      .added_tokens = std::move(added_tokens),
      .normalizer = std::move(normalizer),
      .pre_tokenizer = std::move(pre_tokenizer),
      .model = std::move(model),
      .decoder = std::move(decoder),
      .vocabulary = std::move(vocabulary),
      .sequence_tokens = sequence_tokens};
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> LoadHuggingFaceTokenizer(
    const std::filesystem::path& path, const TokenizerSettings& settings
) {
  ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(path));
  ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(text, path.string()));
  ASSIGN_OR_RETURN(Pipeline pipeline, ReadPipeline(JsonField(document, path.string()), settings));
  return std::make_unique<HuggingFaceTokenizer>(std::move(pipeline));
}

}  // namespace switchyard
