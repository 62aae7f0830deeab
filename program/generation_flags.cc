#include "program/generation_flags.h"

#include "program/token_file.h"

namespace switchyard {
namespace {

Status SetForbiddenTokens(const GenerationFlags& flags, v1::SamplingParameters& sampling) {
  if (flags.no_repeat_ngram_size.has_value()) {
    sampling.set_no_repeat_ngram_size(*flags.no_repeat_ngram_size);
  }
  for (const std::string& word : flags.bad_words) {
    sampling.add_bad_words(word);
  }
  for (const std::string& word : flags.bad_word_tokens) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ReadTokenList(word));
    sampling.add_bad_word_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  }
  sampling.mutable_allowed_token_ids()->Add(
      flags.allowed_token_ids.begin(), flags.allowed_token_ids.end()
  );
  return OkStatus();
}

Status SetSampling(const GenerationFlags& flags, v1::SamplingParameters& sampling) {
  const auto set = [&sampling](const auto& flag, auto setter) {
    if (flag.has_value()) {
      (sampling.*setter)(*flag);
    }
  };
  set(flags.temperature, &v1::SamplingParameters::set_temperature);
  set(flags.top_k, &v1::SamplingParameters::set_top_k);
  set(flags.top_p, &v1::SamplingParameters::set_top_p);
  set(flags.min_p, &v1::SamplingParameters::set_min_p);
  set(flags.typical_p, &v1::SamplingParameters::set_typical_p);
  set(flags.repetition_penalty, &v1::SamplingParameters::set_repetition_penalty);
  set(flags.presence_penalty, &v1::SamplingParameters::set_presence_penalty);
  set(flags.frequency_penalty, &v1::SamplingParameters::set_frequency_penalty);
  set(flags.seed, &v1::SamplingParameters::set_seed);
  return SetForbiddenTokens(flags, sampling);
}

void SetStopping(const GenerationFlags& flags, v1::StoppingParameters& stopping) {
  if (flags.max_tokens.has_value()) {
    stopping.set_max_tokens(*flags.max_tokens);
  }
  if (flags.min_tokens.has_value()) {
    stopping.set_min_tokens(*flags.min_tokens);
  }
  for (const std::string& stop : flags.stop_strings) {
    stopping.add_stop_strings(stop);
  }
  stopping.mutable_stop_token_ids()->Add(flags.stop_token_ids.begin(), flags.stop_token_ids.end());
  stopping.set_ignore_eos(flags.ignore_eos);
  stopping.set_include_stop(flags.include_stop);
}

void SetCompletions(const GenerationFlags& flags, v1::GenerateRequest& request) {
  if (flags.completions.has_value()) {
    request.set_n(*flags.completions);
  }
  if (flags.best_of.has_value()) {
    request.set_best_of(*flags.best_of);
  }
  if (flags.beam_width.has_value()) {
    request.mutable_beam_search()->set_width(*flags.beam_width);
  }
  if (flags.length_penalty.has_value()) {
    request.mutable_beam_search()->set_length_penalty(*flags.length_penalty);
  }
}

void SetScheduling(const GenerationFlags& flags, v1::SchedulingOptions& scheduling) {
  if (flags.priority.has_value()) {
    scheduling.set_priority(*flags.priority);
  }
  scheduling.set_cache_salt(flags.cache_salt);
  if (flags.bypass_prefix_cache) {
    scheduling.set_bypass_prefix_cache(true);
  }
}

// An option group lets CLI11 check that exactly one of its options is given.
void AddPromptFlags(CLI::App& command, GenerationFlags& flags) {
  const std::string prompt_title = "Prompt (one of these)";
  CLI::Option_group* const prompt = command.add_option_group(prompt_title);
  prompt->add_option("--prompt", flags.prompt, "Text to continue")->group(prompt_title);
  prompt
      ->add_option(
          "--prompt-tokens",
          flags.prompt_tokens,
          "Token ids to continue: 12,7,9 or a safetensors file with a tensor `tokens`"
      )
      ->type_name("IDS|FILE")
      ->group(prompt_title);
  prompt->require_option(1);
}

void AddSamplingFlags(CLI::App& command, GenerationFlags& flags) {
  command.add_option(
      "--temperature", flags.temperature, "Randomness, 0 to 100; 0 always takes the likeliest token"
  );
  command.add_option("--top-k", flags.top_k, "Choose among the K likeliest tokens; 0 is all");
  command.add_option(
      "--top-p",
      flags.top_p,
      "Choose among the likeliest tokens with this share together, above 0 to 1"
  );
  command.add_option(
      "--min-p",
      flags.min_p,
      "Leave out tokens less likely than this share of the likeliest, 0 to 1"
  );
  command.add_option(
      "--typical-p",
      flags.typical_p,
      "Choose among the tokens whose surprise is nearest to the mean with this share together, "
      "above "
      "0 to 1"
  );
  command.add_option(
      "--repetition-penalty",
      flags.repetition_penalty,
      "Divides logits of tokens seen before, above 0 to 100; 1 is none"
  );
  command.add_option(
      "--presence-penalty",
      flags.presence_penalty,
      "Subtracted from logits of tokens generated before, -100 to 100"
  );
  command.add_option(
      "--frequency-penalty",
      flags.frequency_penalty,
      "Subtracted for each time a token was generated, -100 to 100"
  );
  command
      .add_option(
          "--seed", flags.seed, "The same seed gives the same completion; drawn when absent"
      )
      ->check(CLI::NonNegativeNumber);
}

void AddForbiddenTokenFlags(CLI::App& command, GenerationFlags& flags) {
  command.add_option(
      "--no-repeat-ngram-size",
      flags.no_repeat_ngram_size,
      "Never repeat a run of so many tokens of prompt and completion, 0 to 256; 0 is off"
  );
  command.add_option("--bad-word", flags.bad_words, "Never generate this text; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option(
          "--bad-word-tokens",
          flags.bad_word_tokens,
          "Never generate these token ids in a row, 12,7,9; may be repeated"
      )
      ->type_name("IDS")
      ->allow_extra_args(false);
  command
      .add_option(
          "--allowed-token-id",
          flags.allowed_token_ids,
          "Generate nothing but this token; may be repeated"
      )
      ->allow_extra_args(false);
}

void AddStoppingFlags(CLI::App& command, GenerationFlags& flags) {
  command.add_option("--max-tokens", flags.max_tokens, "Tokens to generate at most");
  command.add_option("--min-tokens", flags.min_tokens, "Tokens to generate at least");
  command.add_option("--stop", flags.stop_strings, "Stop before this text; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--stop-token-id", flags.stop_token_ids, "Stop at this token; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", flags.ignore_eos, "Go on after an end-of-sequence token");
  command.add_flag(
      "--include-stop", flags.include_stop, "Let the text end with the stop text that was found"
  );
}

void AddCompletionsFlags(CLI::App& command, GenerationFlags& flags) {
  command.add_option(
      "--n", flags.completions, "How many completions, sampled with --seed, --seed + 1, ..."
  );
  command.add_option(
      "--best-of",
      flags.best_of,
      "Sample so many and keep the --n with the highest mean log-probability"
  );
  CLI::Option* const width = command.add_option(
      "--beam-width", flags.beam_width, "Search with so many beams instead of sampling"
  );
  command
      .add_option(
          "--length-penalty",
          flags.length_penalty,
          "Of a beam search, -10 to 10: above 0 favours long completions; 1 when absent"
      )
      ->needs(width);
  command.add_option(
      "--priority", flags.priority, "-100 to 100; higher is served first, 0 when absent"
  );
  command.add_option(
      "--cache-salt",
      flags.cache_salt,
      "Share cached prompts only with requests of the same salt, at most 64 bytes"
  );
  command.add_flag(
      "--bypass-prefix-cache", flags.bypass_prefix_cache, "Share no cached prompt with anybody"
  );
}

void AddLogprobFlags(CLI::App& command, GenerationFlags& flags) {
  command.add_option(
      "--logprobs",
      flags.top_logprobs,
      "Show each token's log-probability and the N likeliest beside it, 0 to 20"
  );
  command.add_option(
      "--prompt-logprobs",
      flags.prompt_top_logprobs,
      "The same for the tokens of the prompt, from the second on"
  );
}

}  // namespace

void AddGenerationFlags(CLI::App& command, GenerationFlags& flags) {
  AddPromptFlags(command, flags);
  AddSamplingFlags(command, flags);
  AddForbiddenTokenFlags(command, flags);
  AddStoppingFlags(command, flags);
  AddCompletionsFlags(command, flags);
  AddLogprobFlags(command, flags);
}

StatusOr<v1::GenerateRequest> RequestOf(const GenerationFlags& flags) {
  v1::GenerateRequest request;
  if (flags.prompt_tokens.empty()) {
    request.set_prompt_text(flags.prompt);
  } else {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ReadTokenList(flags.prompt_tokens));
    request.mutable_prompt_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  }
  RETURN_IF_ERROR(SetSampling(flags, *request.mutable_sampling()));
  SetStopping(flags, *request.mutable_stopping());
  if (flags.top_logprobs.has_value()) {
    request.mutable_output()->set_top_logprobs(*flags.top_logprobs);
  }
  if (flags.prompt_top_logprobs.has_value()) {
    request.mutable_output()->set_prompt_top_logprobs(*flags.prompt_top_logprobs);
  }
  SetCompletions(flags, request);
  SetScheduling(flags, *request.mutable_scheduling());
  return request;
}

}  // namespace switchyard
