#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "clients/cpp/client.h"
#include "program/command.h"
#include "program/text_table.h"

namespace switchyard {
namespace {

struct ExpertsFlags {
  std::string server;
  std::vector<std::string> kinds;
  bool attention_only = false;
  bool json = false;
};

struct NamedPhase {
  v1::Phase phase;
  const char* name;
};
constexpr std::array<NamedPhase, 4> kNamedPhases = {
    {{v1::PHASE_PREFILL, "prefill"},
     {v1::PHASE_DECODE, "decode"},
     {v1::PHASE_RECOMPUTE, "recompute"},
     {v1::PHASE_WARM_UP, "warm-up"}}};

const char* MeaningOf(const std::string& kind) {
  if (kind == "attn") {
    return "attention: query and output experts";
  }
  if (kind == "attn_q") {
    return "attention: query experts of each head";
  }
  if (kind == "attn_k") {
    return "attention: key experts of each head";
  }
  if (kind == "attn_v") {
    return "attention: value experts of each head";
  }
  if (kind == "attn_o") {
    return "attention: output experts of each head";
  }
  return kind == "ffn" ? "feed-forward experts" : "experts";
}

// How many tokens passed the first router in each phase; every router of a model sees the same
// tokens.
StatusOr<std::vector<int64_t>> TokensByPhase(const Client& client) {
  std::vector<int64_t> tokens;
  for (const NamedPhase& named : kNamedPhases) {
    v1::GetExpertStatsRequest request;
    request.add_phases(named.phase);
    request.add_layers(0);
    ASSIGN_OR_RETURN(const v1::GetExpertStatsResponse stats, client.GetExpertStats(request));
    tokens.push_back(stats.routers().empty() ? 0 : stats.routers(0).tokens_routed());
  }
  return tokens;
}

std::string Percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << 100 * share << "%";
  return std::move(text).str();
}

// One row for each layer (and head) of this kind: tokens, and each expert's count and share of the
// assignments.
std::string TableOf(const v1::GetExpertStatsResponse& response, const std::string& kind) {
  int most_experts = 0;
  for (const v1::RouterStats& router : response.routers()) {
    most_experts = router.kind() == kind ? std::max(most_experts, router.experts()) : most_experts;
  }
  std::vector<std::string> header = {"  layer", "tokens"};
  for (int expert = 0; expert < most_experts; ++expert) {
    header.insert(header.end(), {Concat("expert ", expert), ""});
  }
  TextTable table(header);
  for (const v1::RouterStats& router : response.routers()) {
    if (router.kind() != kind || router.experts() < 1) {
      continue;
    }
    const auto assignments = static_cast<double>(router.tokens_routed() * router.top_k());
    for (int begin = 0; begin < router.stats_size(); begin += router.experts()) {
      const std::string head = router.heads() > 1 ? Concat(" head ", begin / router.experts()) : "";
      std::vector<std::string> row = {
          Concat("  ", router.layer(), head), std::to_string(router.tokens_routed())};
      for (int i = begin; i < std::min(begin + router.experts(), router.stats_size()); ++i) {
        const int64_t tokens = router.stats(i).tokens();
        const double share = assignments > 0 ? static_cast<double>(tokens) / assignments : 0;
        row.insert(row.end(), {std::to_string(tokens), Percent(share)});
      }
      row.resize(header.size());
      table.AddRow(std::move(row));
    }
  }
  return table.ToString();
}

void PrintTables(const v1::GetExpertStatsResponse& response, const std::vector<int64_t>& by_phase) {
  std::cout << "model " << response.model() << ", counting for " << std::fixed
            << std::setprecision(1) << response.uptime_seconds() << " s. Tokens routed:";
  for (size_t i = 0; i < kNamedPhases.size(); ++i) {
    std::cout << (i == 0 ? " " : ", ") << by_phase[i] << " " << kNamedPhases[i].name;
  }
  std::cout << ".\n";
  std::set<std::string> shown;
  for (const v1::RouterStats& router : response.routers()) {
    if (shown.insert(router.kind()).second) {
      std::cout << "\n"
                << router.kind() << " (" << MeaningOf(router.kind()) << "; " << router.top_k()
                << " of " << router.experts() << " work on each token; prefill and decode)\n"
                << TableOf(response, router.kind());
    }
  }
  std::cout << std::flush;
}

void PrintJson(const v1::GetExpertStatsResponse& response, const std::vector<int64_t>& by_phase) {
  nlohmann::ordered_json report = {
      {"model", response.model()}, {"uptime_seconds", response.uptime_seconds()}};
  for (size_t i = 0; i < kNamedPhases.size(); ++i) {
    report["tokens_routed"][kNamedPhases[i].name] = by_phase[i];
  }
  report["routers"] = nlohmann::ordered_json::array();
  for (const v1::RouterStats& router : response.routers()) {
    nlohmann::ordered_json experts = nlohmann::ordered_json::array();
    for (const v1::ExpertStats& expert : router.stats()) {
      experts.push_back(
          {{"head", expert.head()},
           {"expert", expert.expert()},
           {"tokens", expert.tokens()},
           {"gate_weight_sum", expert.gate_weight_sum()}}
      );
    }
    report["routers"].push_back(
        {{"layer", router.layer()},
         {"kind", router.kind()},
         {"heads", router.heads()},
         {"experts", router.experts()},
         {"top_k", router.top_k()},
         {"tokens_routed", router.tokens_routed()},
         {"stats", experts}}
    );
  }
  std::cout << report.dump(1) << std::endl;
}

Status ShowExperts(const ExpertsFlags& flags) {
  const Client client(flags.server);
  v1::GetExpertStatsRequest request;
  for (const std::string& kind : flags.kinds) {
    request.add_kinds(kind);
  }
  ASSIGN_OR_RETURN(v1::GetExpertStatsResponse response, client.GetExpertStats(request));
  if (flags.attention_only) {
    auto& routers = *response.mutable_routers();
    const auto is_feed_forward = [](const v1::RouterStats& router) {
      return router.kind() == "ffn";
    };
    routers.erase(std::remove_if(routers.begin(), routers.end(), is_feed_forward), routers.end());
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> by_phase, TokensByPhase(client));
  if (flags.json) {
    PrintJson(response, by_phase);
  } else {
    PrintTables(response, by_phase);
  }
  return OkStatus();
}

}  // namespace

void AddExpertsCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<ExpertsFlags>();
  CLI::App* const command =
      app.add_subcommand("experts", "Show how many tokens each expert of a running server handled");
  command->add_option("--server", flags->server, "A running server, HOST:PORT")
      ->type_name("ADDRESS")
      ->required();
  command
      ->add_option("--kind", flags->kinds, "Only these routers; may be repeated. All when absent")
      ->check(CLI::IsMember({"attn", "attn_q", "attn_k", "attn_v", "attn_o", "ffn"}))
      ->allow_extra_args(false);
  command->add_flag("--attention", flags->attention_only, "Leave out the feed-forward experts");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &run] { run = [flags] { return ShowExperts(*flags); }; });
}

}  // namespace switchyard
