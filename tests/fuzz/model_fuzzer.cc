#include <vector>

#include "engine/model/model.h"
#include "kernels/reference/reference_ops.h"
#include "program/offline_runner.h"
#include "tests/fuzz/input_files.h"

// A whole model folder, config.json and then its weights: what loads can be run, so that no
// contradiction between config and shapes reaches the arithmetic.

namespace switchyard {
namespace {

constexpr int64_t kTokens = 3;

void LoadAndRun(const uint8_t* data, size_t bytes) {
  std::vector<std::string_view> files = FilesOf(data, bytes);
  if (files.size() < 2) {
    return;
  }
  const TemporaryFolder& folder = EmptyInputFolder();
  folder.Write("config.json", files.front());
  files.erase(files.begin());
  WriteWeights(folder, files);

  ReferenceOps ops;
  // The context of the config decides how large tables are, and a large one is no mistake.
  const auto model = Model::Load(folder.path(), {.context_tokens = kTokens}, ops);
  if (!model.ok()) {
    const std::string message = MessageOf(model.status());
    Expect(message.find(folder.path().string()) != std::string::npos, "no file in: " + message);
    return;
  }
  const std::vector<int32_t> tokens(kTokens, 0);
  const StatusOr<ForwardTrace> trace = RunForward(**model, tokens, std::vector<int64_t>{2, 1});
  Expect(trace.ok(), trace.ok() ? "" : MessageOf(trace.status()));
  Expect((*model)->summary().parameters_total > 0, "a model without parameters");
}

}  // namespace
}  // namespace switchyard

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  switchyard::LoadAndRun(data, bytes);
  return 0;
}
