#include "tests/fuzz/tokenizer_input.h"

// A Hugging Face tokenizer.json.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  switchyard::LoadAndUseTokenizer("tokenizer.json", data, bytes);
  return 0;
}
