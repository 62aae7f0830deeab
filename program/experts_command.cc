#include <unistd.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "clients/cpp/client.h"
#include "program/command.h"
#include "program/connection_flags.h"
#include "program/expert_heat_map.h"
#include "program/profile_experts.h"
#include "program/text_table.h"
#include "server/experts/expert_baseline.h"
#include "server/http/message_json.h"

namespace switchyard {
namespace {

struct ExpertsFlags {
  ConnectionFlags connection;
  ProfileFlags profile;  // of a server, or of a model folder when that is not given
  std::string baseline_path;
  std::string output = "table";
  std::vector<std::string> kinds;
  bool attention_only = false;
  bool json = false;
  bool watch = false;
  bool reset = false;
  std::string window = "life";
  double interval_seconds = 1;
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
StatusOr<std::vector<int64_t>> TokensByPhase(const Client& client, v1::Window window) {
  std::vector<int64_t> tokens;
  for (const NamedPhase& named : kNamedPhases) {
    v1::GetExpertStatsRequest request;
    request.add_phases(named.phase);
    request.set_window(window);
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

std::string Fixed(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << value;
  return std::move(text).str();
}

// Of the head's own router.
const v1::RouterFigures& FiguresOf(const v1::RouterStats& router, int head) {
  const auto own = std::ranges::find_if(router.head_figures(), [head](const auto& figures) {
    return figures.head() == head;
  });
  if (own != router.head_figures().end()) {
    return own->figures();
  }
  return router.heads() > 1 ? v1::RouterFigures::default_instance() : router.figures();
}

// One row for each layer (and head) of this kind: tokens, margin, drift, and each expert's count
// and share of the assignments.
std::string TableOf(const v1::GetExpertStatsResponse& response, const std::string& kind) {
  int most_experts = 0;
  bool has_drift = false;
  for (const v1::RouterStats& router : response.routers()) {
    most_experts = router.kind() == kind ? std::max(most_experts, router.experts()) : most_experts;
    has_drift = has_drift || router.figures().has_drift();
  }
  std::vector<std::string> header = {"  layer", "tokens", "margin"};
  if (has_drift) {
    header.emplace_back("drift");
  }
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
      const v1::RouterFigures& figures = FiguresOf(router, begin / router.experts());
      row.push_back(figures.has_margin() ? Fixed(figures.margin()) : "-");
      if (has_drift) {
        row.push_back(figures.has_drift() ? Fixed(figures.drift()) : "-");
      }
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
            << std::setprecision(1) << response.window_seconds() << " s. Tokens routed:";
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
    if (router.has_figures()) {
      report["routers"].back()["figures"] = ToJson(router.figures());
    }
  }
  std::cout << report.dump(1) << std::endl;
}

void KeepAttention(v1::GetExpertStatsResponse& response) {
  auto& routers = *response.mutable_routers();
  const auto is_feed_forward = [](const v1::RouterStats& router) { return router.kind() == "ffn"; };
  routers.erase(std::remove_if(routers.begin(), routers.end(), is_feed_forward), routers.end());
}

const std::map<std::string, v1::Window> kWindows = {
    {"life", v1::WINDOW_LIFE},
    {"10s", v1::WINDOW_10_SECONDS},
    {"1m", v1::WINDOW_1_MINUTE},
    {"10m", v1::WINDOW_10_MINUTES},
    {"reset", v1::WINDOW_SINCE_RESET}};

// Until the reader goes away or the server stops. On a terminal each map takes the place of the
// one before.
Status WatchExperts(
    const Client& client, const ExpertsFlags& flags, const v1::GetExpertStatsRequest& stats
) {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  v1::StreamExpertStatsRequest request;
  *request.mutable_stats() = stats;
  request.set_interval_ms(static_cast<int32_t>(1000 * flags.interval_seconds));
  return client.StreamExpertStats(request, [&](v1::GetExpertStatsResponse response) {
    if (flags.attention_only) {
      KeepAttention(response);
    }
    std::cout << (is_terminal ? "\033[H\033[2J" : "") << "model " << response.model() << ", "
              << std::fixed << std::setprecision(1) << response.window_seconds() << " s ("
              << flags.window << ")\n\n"
              << ExpertHeatMap(response, is_terminal ? HeatMapStyle::kColor : HeatMapStyle::kPlain)
              << std::flush;
    return std::cout.good() ? StreamVerdict::kContinue : StreamVerdict::kCancel;
  });
}

// Of the whole model, whatever is shown.
Status SaveBaseline(const Client& client, const ExpertsFlags& flags) {
  v1::GetExpertStatsRequest request;
  request.set_window(kWindows.at(flags.window));
  ASSIGN_OR_RETURN(const v1::GetExpertStatsResponse response, client.GetExpertStats(request));
  ASSIGN_OR_RETURN(const ExpertBaseline baseline, BaselineOf(response));
  return WriteExpertBaseline(flags.baseline_path, baseline);
}

Status Reset(const Client& client) {
  RETURN_IF_ERROR(client.ResetExpertWindow());
  std::cout << "--window reset begins now\n" << std::flush;
  return OkStatus();
}

Status ShowExperts(const ExpertsFlags& flags) {
  if (flags.connection.server.empty()) {
    return ProfileExperts(flags.profile, flags.output, flags.baseline_path);
  }
  const bool profiles = !flags.profile.text_path.empty();
  if (profiles && !flags.baseline_path.empty()) {
    return InvalidArgument(
        "--save-baseline of a server is of its clients' tokens, not of --profile; leave one of "
        "them out, or profile the --model"
    );
  }
  if (!profiles && flags.output == "html") {
    return InvalidArgument(
        "--output html is of --profile; a server's counts are table or json, and "
        "its dashboard is the page of `serve --http`"
    );
  }
  ASSIGN_OR_RETURN(const ClientOptions options, ReadConnectionFlags(flags.connection));
  const Client client(flags.connection.server, options);
  if (flags.reset) {
    return Reset(client);
  }
  if (profiles) {
    return ProfileExpertsOf(client, flags.profile, flags.output);
  }
  if (!flags.baseline_path.empty()) {
    RETURN_IF_ERROR(SaveBaseline(client, flags));
  }
  v1::GetExpertStatsRequest request;
  request.set_window(kWindows.at(flags.window));
  for (const std::string& kind : flags.kinds) {
    request.add_kinds(kind);
  }
  if (flags.watch) {
    return WatchExperts(client, flags, request);
  }
  ASSIGN_OR_RETURN(v1::GetExpertStatsResponse response, client.GetExpertStats(request));
  if (flags.attention_only) {
    KeepAttention(response);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> by_phase, TokensByPhase(client, request.window()));
  if (flags.output == "json") {
    PrintJson(response, by_phase);
  } else {
    PrintTables(response, by_phase);
  }
  return OkStatus();
}

// Option groups let CLI11 check that exactly one of their options is given.
void AddSourceFlags(CLI::App& command, ExpertsFlags& flags) {
  const std::string title = "Of what (one of these)";
  CLI::Option_group* const source = command.add_option_group(title);
  CLI::Option* const server =
      source->add_option("--server", flags.connection.server, "A running server, HOST:PORT")
          ->type_name("ADDRESS")
          ->group(title);
  CLI::Option* const model =
      source->add_option("--model", flags.profile.model.folder, "A model folder, with --profile")
          ->type_name("DIR")
          ->group(title);
  source->require_option(1);
  CLI::Option* const profile =
      command
          .add_option(
              "--profile",
              flags.profile.text_path,
              "Text file, UTF-8: tell the tokens that each expert gets more often than chance. A "
              "--server answers it at its --admin-listen address"
          )
          ->type_name("FILE");
  model->needs(profile);
  command
      .add_flag(
          "--reset",
          flags.reset,
          "Have --window reset begin now, for everybody; at a server's --admin-listen address"
      )
      ->needs(server)
      ->excludes(profile);
  command
      .add_option(
          "--min-count",
          flags.profile.min_occurrences,
          "Of --profile: leave out tokens that occur less often in the text"
      )
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command.add_option("--top", flags.profile.most_tokens, "Of --profile: tokens of each expert")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  AddComputeFlags(command, flags.profile.model);
}

}  // namespace

void AddExpertsCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<ExpertsFlags>();
  CLI::App* const command = app.add_subcommand(
      "experts",
      "Show how many tokens each expert of a running server handled, or what the experts of a "
      "model "
      "specialise in"
  );
  AddSourceFlags(*command, *flags);
  command
      ->add_option(
          "--save-baseline",
          flags->baseline_path,
          "Write how the experts share the work to a file, for `serve --expert-baseline`"
      )
      ->type_name("FILE");
  command->add_option("--output", flags->output, "What to print")
      ->check(CLI::IsMember({"table", "json", "html"}))
      ->capture_default_str();
  command
      ->add_option("--kind", flags->kinds, "Only these routers; may be repeated. All when absent")
      ->check(CLI::IsMember({"attn", "attn_q", "attn_k", "attn_v", "attn_o", "ffn"}))
      ->allow_extra_args(false);
  command->add_flag("--attention", flags->attention_only, "Leave out the feed-forward experts");
  command->add_flag("--watch", flags->watch, "Show a heat map and keep it fresh until Ctrl-C");
  command->add_option("--window", flags->window, "What time the counts are of")
      ->check(CLI::IsMember({"life", "10s", "1m", "10m", "reset"}))
      ->capture_default_str();
  command->add_option("--interval", flags->interval_seconds, "Between two maps of --watch")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "The same as --output json");
  AddConnectionFlags(*command, flags->connection);
  command->callback([flags, &run] {
    run = [flags] {
      flags->output = flags->json ? "json" : flags->output;
      return ShowExperts(*flags);
    };
  });
}

}  // namespace switchyard
