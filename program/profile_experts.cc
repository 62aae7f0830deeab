#include "program/profile_experts.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/expert_statistics.h"
#include "program/route_text.h"
#include "program/specialisation_report.h"
#include "server/experts/expert_baseline.h"
#include "server/experts/expert_profile.h"
#include "server/experts/expert_report.h"
#include "text/tokenizer.h"

namespace switchyard {
namespace {

StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  if (!file || !(contents << file.rdbuf())) {
    return NotFound(path, ": cannot be read, or is empty");
  }
  return std::move(contents).str();
}

// One line on standard error that overwrites itself; nothing when that is not a terminal.
void ShowProgress(int64_t routed, size_t tokens) {
  if (isatty(STDERR_FILENO) != 0) {
    std::cerr << "\rrouted " << routed << " of " << tokens << " tokens\x1b[K" << std::flush;
  }
}

// The model's own counters have counted the same.
Status SaveBaseline(const Model& model, const std::string& name, const std::string& path) {
  ASSIGN_OR_RETURN(
      v1::GetExpertStatsResponse stats,
      SelectExpertStats({.routers = ReadRouterStatistics(model), .uptime_seconds = 0}, {})
  );
  stats.set_model(name);
  ASSIGN_OR_RETURN(const ExpertBaseline baseline, BaselineOf(stats));
  return WriteExpertBaseline(path, baseline);
}

std::string NameOfFolder(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  // "models/x/" ends in an empty name.
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void Print(
    const v1::ProfileExpertsResponse& profile, const std::string& path, const std::string& output
) {
  const SpecialisationReport report{
      .text_name = std::filesystem::path(path).filename().string(), .profile = profile};
  if (output == "json") {
    using Json = nlohmann::ordered_json;
    std::cout << ToJson(report).dump(1, ' ', false, Json::error_handler_t::replace) << std::endl;
  } else {
    std::cout << (output == "html" ? ToHtml(report) : ToTable(report)) << std::flush;
  }
}

}  // namespace

Status ProfileExperts(
    const ProfileFlags& flags, const std::string& output, const std::string& baseline_path
) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(flags.text_path));
  ASSIGN_OR_RETURN(const OfflineModel opened, OpenModel(flags.model));
  const Model& model = *opened.model;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Tokenizer> tokenizer,
      LoadTokenizer(flags.model.folder, TokenizerDefaultsOf(model.config()))
  );
  const auto tokens = tokenizer->Encode(text, EncodeOptions{.add_bos = false});
  if (!tokens.ok()) {
    return WithContext(tokens.status(), flags.text_path);
  }
  const std::optional<int32_t> lead = tokenizer->AddsBos() ? tokenizer->BosId() : std::nullopt;
  const StatusOr<TextRouting> routing = RouteText(model, *tokens, lead, [&tokens](int64_t routed) {
    ShowProgress(routed, tokens->size());
  });
  if (isatty(STDERR_FILENO) != 0) {
    std::cerr << "\r\x1b[K" << std::flush;
  }
  RETURN_IF_ERROR(routing.status());
  const std::string name = NameOfFolder(flags.model.folder);
  if (!baseline_path.empty()) {
    RETURN_IF_ERROR(SaveBaseline(model, name, baseline_path));
  }
  const v1::ProfileExpertsResponse profile = DescribeProfile(
      *routing,
      {.min_occurrences = flags.min_occurrences, .most_tokens = flags.most_tokens},
      *tokenizer,
      {.model = name,
       .device = opened.ops->Name(),
       .dtype = NameOf(model.summary().dtype),
       .sequence_tokens = model.config().context_tokens - (lead.has_value() ? 1 : 0)}
  );
  Print(profile, flags.text_path, output);
  return OkStatus();
}

Status ProfileExpertsOf(
    const Client& client, const ProfileFlags& flags, const std::string& output
) {
  v1::ProfileExpertsRequest request;
  ASSIGN_OR_RETURN(*request.mutable_text(), ReadText(flags.text_path));
  request.set_min_occurrences(flags.min_occurrences);
  request.set_most_tokens(flags.most_tokens);
  ASSIGN_OR_RETURN(const v1::ProfileExpertsResponse profile, client.ProfileExperts(request));
  Print(profile, flags.text_path, output);
  return OkStatus();
}

}  // namespace switchyard
