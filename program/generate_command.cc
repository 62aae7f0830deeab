#include <iostream>
#include <map>
#include <optional>

#include "clients/cpp/client.h"
#include "program/command.h"
#include "program/completion_printer.h"
#include "program/local_generation.h"
#include "program/model_flags.h"
#include "program/token_file.h"
#include "server/loaded_model.h"

namespace switchyard {
namespace {

struct GenerateFlags {
  std::string server;
  ModelFlags model;
  std::string prompt;
  std::string prompt_tokens;
  std::optional<float> temperature;
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> typical_p;
  std::optional<float> repetition_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::optional<int32_t> no_repeat_ngram_size;
  std::vector<std::string> bad_words;
  std::vector<std::string> bad_word_tokens;
  std::vector<int32_t> allowed_token_ids;
  std::optional<uint64_t> seed;
  std::optional<int32_t> max_tokens;
  std::optional<int32_t> min_tokens;
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_token_ids;
  std::optional<int32_t> top_logprobs;
  bool ignore_eos = false;
  bool include_stop = false;
  bool stats = false;
  CompletionFormat format = CompletionFormat::kText;
};

Status SetForbiddenTokens(const GenerateFlags& flags, v1::SamplingParameters& sampling) {
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

Status SetSampling(const GenerateFlags& flags, v1::SamplingParameters& sampling) {
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

void SetStopping(const GenerateFlags& flags, v1::StoppingParameters& stopping) {
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

// Ranges are the server's business: its messages name the field, the value and the limit.
StatusOr<v1::GenerateRequest> RequestOf(const GenerateFlags& flags) {
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
  return request;
}

StatusOr<v1::Finished> GenerateHere(
    const ModelFlags& flags, const v1::GenerateRequest& request, CompletionPrinter& printer
) {
  // A terminal may take its time.
  ServingState state{ServingOptions{.outbox_bytes = INT64_MAX}};
  LoadOptions options;
  options.backend = BackendOptions{.device = flags.device, .threads = flags.threads};
  options.weights = WeightOptionsOf(flags);
  ASSIGN_OR_RETURN(std::unique_ptr<LoadedModel> model, LoadModel(flags.folder, options));
  state.SetModel(std::move(model));
  return GenerateLocally(state, request, [&printer](const v1::Delta& delta) {
    printer.OnDelta(delta);
  });
}

Status Generate(const GenerateFlags& flags) {
  ASSIGN_OR_RETURN(const v1::GenerateRequest request, RequestOf(flags));
  CompletionPrinter printer(flags.format);
  StatusOr<v1::Finished> finished = v1::Finished();
  if (flags.server.empty()) {
    finished = GenerateHere(flags.model, request, printer);
  } else {
    finished = Client(flags.server).Generate(request, [&printer](const v1::Delta& delta) {
      printer.OnDelta(delta);
      return StreamVerdict::kContinue;
    });
  }
  RETURN_IF_ERROR(finished.status());
  printer.OnFinished(*finished);
  if (flags.stats) {
    std::cerr << DescribeCompletion(*finished) << std::endl;
  }
  return OkStatus();
}

// Option groups let CLI11 check that exactly one of their options is given.
void AddPromptFlags(CLI::App& command, GenerateFlags& flags) {
  const std::string where_title = "Where (one of these)";
  CLI::Option_group* const where = command.add_option_group(where_title);
  where->add_option("--server", flags.server, "A running server, HOST:PORT")
      ->type_name("ADDRESS")
      ->group(where_title);
  where
      ->add_option(
          "--model", flags.model.folder, "A model folder, run in this process without a server"
      )
      ->type_name("DIR")
      ->group(where_title);
  where->require_option(1);

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

void AddSamplingFlags(CLI::App& command, GenerateFlags& flags) {
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

void AddForbiddenTokenFlags(CLI::App& command, GenerateFlags& flags) {
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

void AddStoppingFlags(CLI::App& command, GenerateFlags& flags) {
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

void AddOutputFlags(CLI::App& command, GenerateFlags& flags) {
  const std::map<std::string, CompletionFormat> formats = {
      {"text", CompletionFormat::kText},
      {"ids", CompletionFormat::kIds},
      {"json", CompletionFormat::kJson}};
  command.add_option(
      "--logprobs",
      flags.top_logprobs,
      "Show each token's log-probability and the N likeliest beside it, 0 to 20"
  );
  command
      .add_option(
          "--format",
          flags.format,
          "text as it comes, token ids, or json: one object a line for each event"
      )
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("text|ids|json [text]");
  command.add_flag(
      "--stats", flags.stats, "Print tokens/s and the time to the first token to standard error"
  );
}

}  // namespace

void AddGenerateCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<GenerateFlags>();
  CLI::App* const command = app.add_subcommand(
      "generate", "Continue a prompt and print the completion to standard output as it is produced"
  );
  command->footer(
      "What is not given takes the model's default (generation_config.json). --device, --dtype and "
      "--threads\n"
      "are for --model only."
  );
  AddPromptFlags(*command, *flags);
  AddSamplingFlags(*command, *flags);
  AddForbiddenTokenFlags(*command, *flags);
  AddStoppingFlags(*command, *flags);
  AddOutputFlags(*command, *flags);
  AddComputeFlags(*command, flags->model);
  command->callback([flags, &run] { run = [flags] { return Generate(*flags); }; });
}

}  // namespace switchyard
