#include "tests/fuzz/tokenizer_input.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "tests/fuzz/input_files.h"
#include "text/streaming_detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// Texts are cut to this, so that a fuzzer spends its time on files.
constexpr size_t kMaxTextBytes = 512;

void UseIds(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  StreamingDetokenizer stream(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    Expect(0 <= id && id < tokenizer.VocabularySize(), Concat("id ", id));
    static_cast<void>(tokenizer.TokenPiece(id));
    static_cast<void>(tokenizer.IsControl(id));
    streamed += stream.Append(id);
  }
  streamed += stream.Flush();
  Expect(!FindInvalidUtf8(streamed), "streamed text is not UTF-8");
  const StatusOr<std::string> decoded = tokenizer.Decode(ids);
  Expect(decoded.ok() && !FindInvalidUtf8(*decoded), "ids of the tokenizer's own do not decode");
}

void UseText(const Tokenizer& tokenizer, const std::string& text) {
  for (const bool parse_special : {false, true}) {
    const StatusOr<std::vector<int32_t>> ids =
        tokenizer.Encode(text, {.parse_special = parse_special});
    if (ids.ok()) {  // a pattern may be too costly, a character unknown to a model without unk
      UseIds(tokenizer, *ids);
    }
  }
}

}  // namespace

void LoadAndUseTokenizer(const std::string& file_name, const uint8_t* data, size_t bytes) {
  const TemporaryFolder& folder = EmptyInputFolder();
  const std::string_view file(reinterpret_cast<const char*>(data), bytes);
  folder.Write(file_name, file);
  const StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder.path(), {});
  if (!tokenizer.ok()) {
    const std::string message = MessageOf(tokenizer.status());
    Expect(message.find(file_name) != std::string::npos, "no file in: " + message);
    return;
  }
  std::vector<int32_t> ids(static_cast<size_t>(std::min((*tokenizer)->VocabularySize(), 400)));
  std::iota(ids.begin(), ids.end(), 0);
  UseIds(**tokenizer, ids);

  UseText(**tokenizer, " In the  beginning\n\tﷺ 😀12</s>");
  const std::string_view end = file.substr(file.size() - std::min(file.size(), kMaxTextBytes));
  UseText(**tokenizer, ReplaceInvalidUtf8(end));
  std::string spelled;
  for (size_t i = 0; i < ids.size() && spelled.size() < kMaxTextBytes; ++i) {
    spelled += (*tokenizer)->TokenPiece(ids[i]);
  }
  UseText(**tokenizer, ReplaceInvalidUtf8(spelled));
}

}  // namespace switchyard
