#include "text/tokenizer.h"

#include <system_error>

#include "text/hugging_face_tokenizer.h"
#include "text/sentencepiece_tokenizer.h"
#include "text/tokenizer_settings.h"

namespace switchyard {

StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::filesystem::path& model_folder, const TokenizerDefaults& defaults
) {
  ASSIGN_OR_RETURN(
      const TokenizerSettings settings,
      ReadTokenizerSettings(model_folder / "tokenizer_config.json", defaults)
  );
  // A folder may hold both, made from one another; only tokenizer.json has the tokens that were
  // added later.
  std::error_code error;
  const std::filesystem::path json = model_folder / "tokenizer.json";
  if (std::filesystem::exists(json, error)) {
    return LoadHuggingFaceTokenizer(json, settings);
  }
  const std::filesystem::path model = model_folder / "tokenizer.model";
  if (std::filesystem::exists(model, error)) {
    return LoadSentencePieceTokenizer(model, settings);
  }
  return NotFound(
      model_folder.string(),
      " has neither tokenizer.json nor tokenizer.model; put one of them there"
  );
}

}  // namespace switchyard
