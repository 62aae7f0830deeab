#pragma once

#include <cstdint>

namespace switchyard {

// The most that one request may ask for, beside what its model allows.
struct RequestLimits {
  int32_t max_prompt_tokens = 0;  // 0: what the context holds
  int32_t max_tokens = 0;         // to generate; 0: what the context holds
  int32_t max_stop_strings = 16;
  int32_t max_logit_bias = 1024;  // entries
  int32_t max_top_logprobs = 20;
  int32_t max_completions = 16;       // n, best_of and the width of a beam search
  int32_t max_continuations = 256;    // of a Score
  int64_t max_trace_bytes = 2 << 20;  // of output.routing
  // Of ProfileExperts: its text, and what is counted of it, which is 8 bytes for each distinct
  // token and expert.
  int64_t max_profile_text_bytes = 8 << 20;
  int64_t max_profile_tokens = 1 << 20;
  int64_t max_profile_count_bytes = 256 << 20;
};

}  // namespace switchyard
