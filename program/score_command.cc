#include <unistd.h>

#include <fstream>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program/command.h"
#include "program/model_flags.h"
#include "program/perplexity.h"
#include "text/tokenizer.h"

namespace switchyard {
namespace {

struct ScoreFlags {
  ModelFlags model;
  std::string text_path;
  bool json = false;
};

StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  if (!file || !(contents << file.rdbuf())) {
    return NotFound(path, ": cannot be read, or is empty");
  }
  return std::move(contents).str();
}

// One line on standard error that overwrites itself; nothing when that is not a terminal.
void ShowProgress(const Prediction& so_far) {
  if (isatty(STDERR_FILENO) != 0) {
    std::cerr << "\rscored " << so_far.predicted_tokens << " of " << so_far.tokens
              << " tokens, perplexity so far " << std::fixed << std::setprecision(2)
              << so_far.Perplexity() << "   " << std::flush;
  }
}

void EndProgress() {
  if (isatty(STDERR_FILENO) != 0) {
    std::cerr << "\r\x1b[K" << std::flush;
  }
}

void Print(const Prediction& prediction, int64_t text_bytes, bool as_json) {
  const double bits_per_byte = prediction.BitsPerByte(text_bytes);
  if (as_json) {
    const nlohmann::ordered_json report = {
        {"tokens", prediction.tokens},
        {"predicted_tokens", prediction.predicted_tokens},
        {"text_bytes", text_bytes},
        {"perplexity", prediction.Perplexity()},
        {"bits_per_byte", bits_per_byte}};
    std::cout << report.dump(1) << std::endl;
    return;
  }
  std::cout << std::fixed << "tokens          " << prediction.tokens << "\npredicted       "
            << prediction.predicted_tokens << "\nperplexity      " << std::setprecision(4)
            << prediction.Perplexity() << "\nbits per byte   " << bits_per_byte << std::endl;
}

Status Score(const ScoreFlags& flags) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.text_path));
  ASSIGN_OR_RETURN(const OfflineModel opened, OpenModel(flags.model));
  const ModelConfig& config = opened.model->config();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Tokenizer> tokenizer,
      LoadTokenizer(flags.model.folder, TokenizerDefaultsOf(config))
  );
  const auto tokens = tokenizer->Encode(text, EncodeOptions{.add_bos = false});
  if (!tokens.ok()) {
    return WithContext(tokens.status(), flags.text_path);
  }
  const std::optional<int32_t> lead = tokenizer->AddsBos() ? tokenizer->BosId() : std::nullopt;
  const StatusOr<Prediction> prediction =
      PredictWindows(*opened.model, *tokens, lead, ShowProgress);
  EndProgress();
  RETURN_IF_ERROR(prediction.status());
  Print(*prediction, static_cast<int64_t>(text.size()), flags.json);
  return OkStatus();
}

}  // namespace

void AddScoreCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<ScoreFlags>();
  CLI::App* const command = app.add_subcommand(
      "score", "Measure how well a model predicts a text: perplexity, bits per byte"
  );
  command->add_option("--model", flags->model.folder, "Model folder")->type_name("DIR")->required();
  command->add_option("text", flags->text_path, "Text file, UTF-8")->type_name("FILE")->required();
  command->add_flag("--json", flags->json, "Print one JSON object");
  AddComputeFlags(*command, flags->model);
  command->callback([flags, &run] { run = [flags] { return Score(*flags); }; });
}

}  // namespace switchyard
