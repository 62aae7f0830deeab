#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/safetensors.h"
#include "kernels/ops.h"

namespace switchyard {

// One folder of tests/golden/data: a checkpoint and what its reference implementation makes of
// three prompts. CHECKs that everything is there: the files are part of the project.
class GoldenSet {
 public:
  static constexpr int kPrompts = 3;

  GoldenSet(const std::string& name, const std::string& backend);

  const Model& model() const { return *model_; }
  std::vector<int32_t> Tokens(int prompt) const { return Ids(prompt, "tokens"); }
  std::vector<int32_t> Greedy(int prompt) const { return Ids(prompt, "greedy"); }
  std::vector<float> Floats(int prompt, const std::string& key) const;
  std::vector<int32_t> Int32s(int prompt, const std::string& key) const;
  // The routers that the reference recorded for a prompt: "layer0.attn_v", ...
  std::vector<std::string> Routers(int prompt) const;

 private:
  const StoredTensor& Expected(int prompt, const std::string& key, const std::string& dtype) const;
  std::vector<int32_t> Ids(int prompt, const std::string& key) const;

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SafetensorsFile> expected_;
};

}  // namespace switchyard
