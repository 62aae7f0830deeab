#include "tests/fuzz/tokenizer_input.h"

// A SentencePiece .model file.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  switchyard::LoadAndUseTokenizer("tokenizer.model", data, bytes);
  return 0;
}
