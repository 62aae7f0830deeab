#include "program/model_report.h"

#include <sstream>
#include <utility>

#include "program/text_table.h"

namespace switchyard {
namespace {

constexpr int64_t kBytesPerKvValue = 4;  // keys and values are kept in float32

const char* NameOf(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kMoa:
      return "moa";
    case AttentionKind::kSwitchHead:
      return "switchhead";
  }
  return "unknown";
}

const char* NameOf(GateKind gate) {
  switch (gate) {
    case GateKind::kSoftmaxAll:
      return "softmax over all";
    case GateKind::kSoftmaxSelected:
      return "softmax over the chosen";
    case GateKind::kSigmoid:
      return "sigmoid";
  }
  return "unknown";
}

const char* NameOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kIdentity:
      return "identity";
    case ActivationKind::kRelu:
      return "relu";
    case ActivationKind::kSilu:
      return "silu";
    case ActivationKind::kGelu:
      return "gelu";
    case ActivationKind::kGeluTanh:
      return "gelu_tanh";
    case ActivationKind::kSigmoid:
      return "sigmoid";
  }
  return "unknown";
}

const char* NameOf(FeedForwardKind kind) {
  return kind == FeedForwardKind::kDense ? "dense" : "experts";
}

const char* NameOf(NormKind kind) {
  return kind == NormKind::kRms ? "rms" : "layer";
}

const char* NameOf(PositionKind kind) {
  switch (kind) {
    case PositionKind::kNone:
      return "none";
    case PositionKind::kRotary:
      return "rotary";
    case PositionKind::kTransformerXl:
      return "transformer_xl";
    case PositionKind::kStickBreaking:
      return "stick_breaking";
  }
  return "unknown";
}

// "value, output": which projections of the attention are experts.
std::string RoutedProjections(const AttentionConfig& attention) {
  if (attention.kind == AttentionKind::kMoa) {
    return "query, output";
  }
  std::string names;
  const std::pair<bool, const char*> projections[] = {
      {attention.query_routed, "query"},
      {attention.key_routed, "key"},
      {attention.value_routed, "value"},
      {attention.output_routed, "output"}};
  for (const auto& [routed, name] : projections) {
    if (routed) {
      names += names.empty() ? name : Concat(", ", name);
    }
  }
  return names.empty() ? "none" : names;
}

std::string AttentionLine(const AttentionConfig& attention) {
  std::string line = Concat(
      NameOf(attention.kind),
      ", ",
      attention.kv_heads,
      " kv heads of ",
      attention.key_dim,
      " (key) and ",
      attention.value_dim,
      " (value)"
  );
  if (attention.kind == AttentionKind::kMoa) {
    line += Concat(", ", attention.router.top_k, " query heads on each");
  }
  return line;
}

std::string PositionLine(const AttentionConfig& attention) {
  if (attention.positions != PositionKind::kRotary) {
    return NameOf(attention.positions);
  }
  return Concat(
      "rotary, ",
      attention.rotary_dims,
      " of ",
      attention.key_dim,
      " dimensions, base ",
      attention.rotary_base
  );
}

std::string FeedForwardLine(const FeedForwardConfig& feed_forward) {
  const std::string activation =
      Concat(feed_forward.gated ? "gated " : "", NameOf(feed_forward.activation));
  if (feed_forward.kind == FeedForwardKind::kDense) {
    return Concat("dense, ", feed_forward.hidden_dim, " hidden, ", activation);
  }
  return Concat(
      feed_forward.router.experts,
      " experts of ",
      feed_forward.hidden_dim,
      " hidden, ",
      feed_forward.router.top_k,
      " for each token, ",
      activation
  );
}

std::string KvLine(const KvLayout& kv) {
  return Concat(
      kv.BytesPerToken(),
      " bytes for each token = ",
      kv.layers,
      " layers x ",
      kv.kv_heads,
      " kv heads x (",
      kv.key_dim,
      " key + ",
      kv.value_dim,
      " value) x ",
      kBytesPerKvValue,
      " bytes"
  );
}

std::string TokenizerLine(const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) {
    return "none; this model takes token ids only";
  }
  std::string line = Concat(tokenizer->VocabularySize(), " pieces");
  if (tokenizer->BosId().has_value()) {
    line += Concat(
        ", beginning of sequence ",
        *tokenizer->BosId(),
        tokenizer->AddsBos() ? " (added)" : " (not added)"
    );
  }
  if (tokenizer->EosId().has_value()) {
    line += Concat(", end of sequence ", *tokenizer->EosId());
  }
  return line;
}

std::string RouterTable(const Model& model) {
  TextTable table({"  layer", "router", "heads", "experts", "top-k", "gate"});
  for (const Router* const router : model.routers()) {
    const RouterConfig& config = router->config();
    table.AddRow(
        {Concat("  ", router->layer()),
         NameOf(router->kind()),
         std::to_string(config.groups),
         std::to_string(config.experts),
         std::to_string(config.top_k),
         NameOf(config.gate)}
    );
  }
  return table.ToString();
}

nlohmann::ordered_json ToJson(const AttentionConfig& attention) {
  return {
      {"kind", NameOf(attention.kind)},
      {"kv_heads", attention.kv_heads},
      {"query_groups", attention.QueryGroups()},
      {"key_dim", attention.key_dim},
      {"value_dim", attention.value_dim},
      {"routed", RoutedProjections(attention)},
      {"positions", NameOf(attention.positions)},
      {"rotary_dims", attention.rotary_dims},
      {"rotary_base", attention.rotary_base},
      {"scale", attention.scale}};
}

nlohmann::ordered_json ToJson(const FeedForwardConfig& feed_forward) {
  return {
      {"kind", NameOf(feed_forward.kind)},
      {"hidden_dim", feed_forward.hidden_dim},
      {"activation", NameOf(feed_forward.activation)},
      {"gated", feed_forward.gated}};
}

nlohmann::ordered_json ToJson(const Router& router) {
  const RouterConfig& config = router.config();
  return {
      {"layer", router.layer()},
      {"kind", NameOf(router.kind())},
      {"heads", config.groups},
      {"experts", config.experts},
      {"top_k", config.top_k},
      {"gate", NameOf(config.gate)}};
}

nlohmann::ordered_json ToJson(const Tokenizer& tokenizer) {
  nlohmann::ordered_json json = {
      {"vocabulary_size", tokenizer.VocabularySize()}, {"adds_bos", tokenizer.AddsBos()}};
  if (tokenizer.BosId().has_value()) {
    json["bos_id"] = *tokenizer.BosId();
  }
  if (tokenizer.EosId().has_value()) {
    json["eos_id"] = *tokenizer.EosId();
  }
  return json;
}

}  // namespace

std::string ToText(const ModelReport& report) {
  const ModelConfig& config = report.model.config();
  const WeightsSummary& summary = report.model.summary();
  std::ostringstream text;
  const auto line = [&text](const char* label, const auto&... parts) {
    text << label << Concat(parts...) << "\n";
  };
  line("folder        ", report.folder);
  line("family        ", config.family);
  line("vocabulary    ", config.vocabulary_size, " tokens");
  line("context       ", config.context_tokens, " tokens");
  line("model dim     ", config.model_dim);
  line("layers        ", config.layers);
  line("attention     ", AttentionLine(config.attention));
  line(
      "  experts     ",
      RoutedProjections(config.attention),
      "; ",
      config.attention.router.experts,
      " experts, ",
      config.attention.router.top_k,
      " for each token"
  );
  line("  positions   ", PositionLine(config.attention));
  line("feed-forward  ", FeedForwardLine(config.feed_forward));
  line(
      "norm          ",
      NameOf(config.norm.kind),
      ", epsilon ",
      config.norm.block_epsilon,
      " in layers, ",
      config.norm.final_epsilon,
      " before the logits"
  );
  line("output head   ", config.tied_head ? "tied to the embedding" : "a matrix of its own");
  line(
      "parameters    ",
      summary.parameters_total,
      " (",
      ShortCount(summary.parameters_total),
      "), of which ",
      summary.parameters_active,
      " (",
      ShortCount(summary.parameters_active),
      ") work on each token"
  );
  line("weights       ", summary.weights_bytes, " bytes (", ShortBytes(summary.weights_bytes), ")");
  line("kv cache      ", KvLine(report.model.kv_layout()));
  line("tokenizer     ", TokenizerLine(report.tokenizer));
  line("routers\n", RouterTable(report.model));
  std::string result = std::move(text).str();
  result.pop_back();  // the table ends with a newline of its own
  return result;
}

nlohmann::ordered_json ToJson(const ModelReport& report) {
  const ModelConfig& config = report.model.config();
  const WeightsSummary& summary = report.model.summary();
  const KvLayout kv = report.model.kv_layout();
  nlohmann::ordered_json json = {
      {"folder", report.folder},
      {"family", config.family},
      {"vocabulary_size", config.vocabulary_size},
      {"context_tokens", config.context_tokens},
      {"model_dim", config.model_dim},
      {"layers", config.layers},
      {"attention", ToJson(config.attention)},
      {"feed_forward", ToJson(config.feed_forward)},
      {"norm",
       {{"kind", NameOf(config.norm.kind)},
        {"block_epsilon", config.norm.block_epsilon},
        {"final_epsilon", config.norm.final_epsilon}}},
      {"tied_head", config.tied_head},
      {"parameters_total", summary.parameters_total},
      {"parameters_active", summary.parameters_active},
      {"weights_bytes", summary.weights_bytes},
      {"kv_bytes_per_token", kv.BytesPerToken()},
      {"kv_bytes_formula", KvLine(kv)}};
  json["tokenizer"] =
      report.tokenizer == nullptr ? nlohmann::ordered_json() : ToJson(*report.tokenizer);
  json["routers"] = nlohmann::ordered_json::array();
  for (const Router* const router : report.model.routers()) {
    json["routers"].push_back(ToJson(*router));
  }
  return json;
}

}  // namespace switchyard
