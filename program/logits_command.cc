#include <algorithm>

#include "engine/model/safetensors.h"
#include "program/command.h"
#include "program/model_flags.h"
#include "program/offline_runner.h"
#include "program/token_file.h"

namespace switchyard {
namespace {

constexpr int64_t kFirstCachedChunkTokens = 3;

struct LogitsFlags {
  ModelFlags model;
  std::string tokens_path;
  std::string output_path;
  int64_t greedy_tokens = 0;
  bool cached = false;
};

// The whole sequence at once, or a first chunk and then token by token.
std::vector<int64_t> ChunksOf(int64_t tokens, bool cached) {
  if (!cached) {
    return {tokens};
  }
  const int64_t first = std::clamp<int64_t>(tokens - 1, 1, kFirstCachedChunkTokens);
  std::vector<int64_t> chunks(static_cast<size_t>(tokens - first) + 1, 1);
  chunks[0] = first;
  return chunks;
}

template <typename Element>
TensorToWrite Tensor(
    const std::string& name,
    const char* dtype,
    const std::vector<int64_t>& shape,
    const std::vector<Element>& data
) {
  return TensorToWrite{
      .name = name,
      .dtype = dtype,
      .shape = shape,
      .data = data.data(),
      .bytes = static_cast<int64_t>(data.size() * sizeof(Element))};
}

// Views of `trace` and `greedy` under the names of the reference outputs.
std::vector<TensorToWrite> TensorsOf(
    const ForwardTrace& trace, const ModelConfig& config, const std::vector<int64_t>& greedy
) {
  const int64_t tokens = trace.tokens;
  std::vector<TensorToWrite> tensors;
  tensors.push_back(Tensor("logits", "F32", {tokens, config.vocabulary_size}, trace.logits));
  tensors.push_back(Tensor("embed", "F32", {tokens, config.model_dim}, trace.embedding));
  for (size_t layer = 0; layer < trace.hidden.size(); ++layer) {
    tensors.push_back(
        Tensor(Concat("hidden.", layer), "F32", {tokens, config.model_dim}, trace.hidden[layer])
    );
  }
  for (const auto& [name, routing] : trace.routing) {
    std::vector<int64_t> shape = {tokens, routing.groups, routing.top_k};
    if (routing.groups == 1) {
      shape.erase(shape.begin() + 1);
    }
    tensors.push_back(Tensor(name + ".ids", "I32", shape, routing.ids));
    tensors.push_back(Tensor(name + ".weights", "F32", shape, routing.weights));
  }
  if (!greedy.empty()) {
    tensors.push_back(Tensor("greedy", "I64", {static_cast<int64_t>(greedy.size())}, greedy));
  }
  return tensors;
}

Status WriteLogits(const LogitsFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadTokenFile(flags.tokens_path));
  if (tokens.empty()) {
    return InvalidArgument(flags.tokens_path, ": `tokens` is empty; at least one token is needed");
  }
  ASSIGN_OR_RETURN(const OfflineModel opened, OpenModel(flags.model));
  const std::vector<int64_t> chunks = ChunksOf(static_cast<int64_t>(tokens.size()), flags.cached);
  ASSIGN_OR_RETURN(const ForwardTrace trace, RunForward(*opened.model, tokens, chunks));
  std::vector<int64_t> greedy;
  if (flags.greedy_tokens > 0) {
    ASSIGN_OR_RETURN(
        const std::vector<int32_t> continuation,
        GreedyContinuation(*opened.model, tokens, flags.greedy_tokens)
    );
    greedy.assign(continuation.begin(), continuation.end());
  }
  return WriteSafetensors(flags.output_path, TensorsOf(trace, opened.model->config(), greedy));
}

}  // namespace

void AddLogitsCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<LogitsFlags>();
  CLI::App* const command = app.add_subcommand(
      "logits", "Write a sequence's logits, hidden states and routing to a safetensors file"
  );
  command->add_option("--model", flags->model.folder, "Model folder")->type_name("DIR")->required();
  command
      ->add_option(
          "--tokens", flags->tokens_path, "Safetensors file with an I64 tensor `tokens` [T]"
      )
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--output",
          flags->output_path,
          "Safetensors file to write: logits [T,V], embed, hidden.L, layerL.ROUTER.ids and "
          ".weights, greedy"
      )
      ->type_name("FILE")
      ->required();
  command->add_option("--greedy", flags->greedy_tokens, "Also continue with the N likeliest tokens")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_flag(
      "--cached",
      flags->cached,
      "Feed three tokens and then one at a time through the KV cache; the results are the same"
  );
  AddComputeFlags(*command, flags->model);
  command->callback([flags, &run] { run = [flags] { return WriteLogits(*flags); }; });
}

}  // namespace switchyard
