#include "server/experts/expert_baseline.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace switchyard {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "switchyard-expert-baseline";
constexpr int32_t kVersion = 1;
constexpr int64_t kMaxFileBytes = int64_t{64} << 20;
constexpr int64_t kMostOfADimension = 1 << 20;
// So that no sum of loads overflows.
constexpr int64_t kMaxLoad = int64_t{1} << 53;

StatusOr<std::string> ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::vector<char> part(size_t{64} << 10);
  while (file.good()) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<size_t>(file.gcount()));
    if (static_cast<int64_t>(text.size()) > kMaxFileBytes) {
      return InvalidArgument(
          "is over ", kMaxFileBytes, " bytes, more than any expert baseline has"
      );
    }
  }
  if (!file.eof()) {
    return NotFound("cannot be read; name a file that `switchyard experts --save-baseline` wrote");
  }
  return text;
}

// For messages: nothing long, and nothing that recurses as deep as the file likes.
std::string Shown(const Json* value) {
  if (value == nullptr) {
    return "missing";
  }
  return value->is_number() ? value->dump() : Concat("of type ", value->type_name());
}

// Null when there is none.
const Json* Field(const Json& object, const char* name) {
  const auto field = object.find(name);
  return field == object.end() ? nullptr : &*field;
}

StatusOr<int64_t> IntegerOf(const Json* value, const std::string& field, int64_t most) {
  // Negative and fractional numbers have other types.
  if (value == nullptr || !value->is_number_unsigned() ||
      value->get<uint64_t>() > static_cast<uint64_t>(most)) {
    return InvalidArgument(
        field, " is ", Shown(value), "; it must be an integer in [0, ", most, "]"
    );
  }
  return value->get<int64_t>();
}

StatusOr<int32_t> DimensionOf(const Json& router, const std::string& place, const char* name) {
  ASSIGN_OR_RETURN(
      const int64_t value,
      IntegerOf(Field(router, name), Concat(place, ".", name), kMostOfADimension)
  );
  return static_cast<int32_t>(value);
}

StatusOr<std::vector<int64_t>> LoadsOf(
    const Json& router, const std::string& place, const RouterBaseline& sizes
) {
  const size_t wanted = static_cast<size_t>(sizes.heads) * static_cast<size_t>(sizes.experts);
  const Json* const list = Field(router, "loads");
  if (list == nullptr || !list->is_array() || list->size() != wanted) {
    return InvalidArgument(
        place, ".loads must be a list of heads * experts = ", wanted, " integers"
    );
  }
  std::vector<int64_t> loads;
  for (const Json& value : *list) {
    ASSIGN_OR_RETURN(
        const int64_t load, IntegerOf(&value, Concat(place, ".loads[", loads.size(), "]"), kMaxLoad)
    );
    loads.push_back(load);
  }
  if (std::ranges::all_of(loads, [](int64_t load) { return load == 0; })) {
    return InvalidArgument(place, ".loads are all 0; a baseline needs routed tokens");
  }
  return loads;
}

StatusOr<RouterBaseline> RouterOf(const Json& router, const std::string& place) {
  if (!router.is_object()) {
    return InvalidArgument(place, " must be an object");
  }
  RouterBaseline baseline;
  const Json* const kind = Field(router, "kind");
  if (kind == nullptr || !kind->is_string()) {
    return InvalidArgument(place, ".kind is ", Shown(kind), "; it must be a text, as attn or ffn");
  }
  baseline.kind = kind->get<std::string>();
  ASSIGN_OR_RETURN(baseline.layer, DimensionOf(router, place, "layer"));
  ASSIGN_OR_RETURN(baseline.heads, DimensionOf(router, place, "heads"));
  ASSIGN_OR_RETURN(baseline.experts, DimensionOf(router, place, "experts"));
  ASSIGN_OR_RETURN(baseline.top_k, DimensionOf(router, place, "top_k"));
  ASSIGN_OR_RETURN(baseline.loads, LoadsOf(router, place, baseline));
  return baseline;
}

StatusOr<ExpertBaseline> Parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json* const format = json.is_object() ? Field(json, "format") : nullptr;
  if (format == nullptr || *format != kFormat) {
    return InvalidArgument(
        "is no expert baseline (JSON with \"format\": \"",
        kFormat,
        "\"); `switchyard experts --save-baseline` writes one"
    );
  }
  const Json* const version = Field(json, "version");
  if (version == nullptr || *version != kVersion) {
    return InvalidArgument(
        "version is ",
        Shown(version),
        "; this program reads version ",
        kVersion,
        "; write the baseline again"
    );
  }
  const Json* const routers = Field(json, "routers");
  if (routers == nullptr || !routers->is_array()) {
    return InvalidArgument("routers is ", Shown(routers), "; it must be a list");
  }
  ExpertBaseline baseline;
  if (const Json* const model = Field(json, "model"); model != nullptr && model->is_string()) {
    baseline.model = model->get<std::string>();
  }
  for (const Json& router : *routers) {
    ASSIGN_OR_RETURN(
        RouterBaseline read, RouterOf(router, Concat("routers[", baseline.routers.size(), "]"))
    );
    baseline.routers.push_back(std::move(read));
  }
  return baseline;
}

std::string Describe(const RouterBaseline& router) {
  return Concat(
      "layer ",
      router.layer,
      " ",
      router.kind,
      " with ",
      router.heads,
      " x ",
      router.experts,
      " experts, top ",
      router.top_k
  );
}

}  // namespace

StatusOr<ExpertBaseline> ReadExpertBaseline(const std::filesystem::path& path) {
  const StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) {
    return WithContext(text.status(), path.string());
  }
  StatusOr<ExpertBaseline> baseline = Parse(*text);
  if (!baseline.ok()) {
    return WithContext(baseline.status(), path.string());
  }
  return baseline;
}

Status WriteExpertBaseline(const std::filesystem::path& path, const ExpertBaseline& baseline) {
  Json json = {{"format", kFormat}, {"version", kVersion}, {"model", baseline.model}};
  json["routers"] = Json::array();
  for (const RouterBaseline& router : baseline.routers) {
    json["routers"].push_back(
        {{"layer", router.layer},
         {"kind", router.kind},
         {"heads", router.heads},
         {"experts", router.experts},
         {"top_k", router.top_k},
         {"loads", router.loads}}
    );
  }
  std::ofstream file(path, std::ios::binary);
  file << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  return file.good() ? OkStatus()
                     : FailedPrecondition(
                           path.string(), ": cannot be written; choose another place, or make room"
                       );
}

Status CheckBaselineFits(const ExpertBaseline& baseline, const v1::GetModelInfoResponse& info) {
  if (baseline.routers.size() != static_cast<size_t>(info.routers_size())) {
    return FailedPrecondition(
        "the expert baseline is of ",
        baseline.routers.size(),
        " routers (model \"",
        baseline.model,
        "\"); this model has ",
        info.routers_size(),
        "; make one with this model"
    );
  }
  for (int i = 0; i < info.routers_size(); ++i) {
    const RouterBaseline& kept = baseline.routers[static_cast<size_t>(i)];
    const v1::RouterInfo& own = info.routers(i);
    const std::string was = Describe(kept);
    const std::string is = Describe(RouterBaseline{
        .layer = own.layer(),
        .kind = own.kind(),
        .heads = own.heads(),
        .experts = own.experts(),
        .top_k = own.top_k(),
        .loads = {}});
    if (was != is) {
      return FailedPrecondition(
          "router ",
          i,
          " of the expert baseline is ",
          was,
          "; this model's is ",
          is,
          "; make a baseline with this model"
      );
    }
  }
  return OkStatus();
}

StatusOr<ExpertBaseline> BaselineOf(const v1::GetExpertStatsResponse& stats) {
  ExpertBaseline baseline{.model = stats.model(), .routers = {}};
  for (const v1::RouterStats& router : stats.routers()) {
    if (router.tokens_routed() == 0) {
      return FailedPrecondition(
          "no token has been routed in this window; send requests first, or choose another --window"
      );
    }
    RouterBaseline& made = baseline.routers.emplace_back();
    made.layer = router.layer();
    made.kind = router.kind();
    made.heads = router.heads();
    made.experts = router.experts();
    made.top_k = router.top_k();
    for (const v1::ExpertStats& expert : router.stats()) {
      made.loads.push_back(expert.tokens());
    }
  }
  return baseline;
}

}  // namespace switchyard
