#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/benchmarks/random_jetmoe.h"

namespace switchyard {

enum class ModelKind : uint8_t { kJetMoe, kMoeut };

// A model to measure: of the shape of a published one, or small enough for a test on the CPU.
struct ModelShape {
  std::string name;
  ModelKind kind = ModelKind::kJetMoe;
  int64_t vocabulary_size = 0;
  int64_t model_dim = 0;
  int64_t layers = 0;         // executed
  int64_t stored_layers = 0;  // kMoeut: run in rotation
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t attention_experts = 0;  // kMoeut: of each head
  int64_t attention_top_k = 0;
  int64_t experts = 0;
  int64_t top_k = 0;
  int64_t feed_forward_dim = 0;
  int64_t context_tokens = 0;

  // kJetMoe: one for each expert of a token.
  int64_t QueryGroups() const { return kind == ModelKind::kJetMoe ? attention_top_k : 1; }
  // Of attention: one, or one for each head.
  int64_t RouterGroups() const { return kind == ModelKind::kJetMoe ? 1 : kv_heads; }
  int64_t RotaryDims() const { return kind == ModelKind::kJetMoe ? head_dim : head_dim / 2; }
};

std::vector<std::string> ModelShapeNames();
// Null for any other name.
const ModelShape* FindModelShape(const std::string& name);

nlohmann::json ConfigOf(const ModelShape& shape);
std::vector<NamedShape> TensorsOf(const ModelShape& shape);

// Multiplications and additions of a prefill of `tokens` tokens whose last one gets logits: twice
// the matrices that each token meets, and the products of queries, keys and values.
int64_t PrefillFlops(const ModelShape& shape, int64_t tokens);

}  // namespace switchyard
