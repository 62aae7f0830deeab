#include "server/http/http_pages.h"

#include <httplib.h>

#include <functional>
#include <string>

#include "server/experts/expert_metrics.h"
#include "server/experts/expert_query.h"
#include "server/http/dashboard.h"
#include "server/http/message_json.h"
#include "server/load_report.h"
#include "server/metrics/metrics_page.h"

namespace switchyard {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain; charset=utf-8";

struct Page {
  std::string body;
  const char* type = kJson;
};

// What it throws is the library's business: it answers 500.
std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

void AddPage(
    httplib::Server& server,
    const char* path,
    std::function<StatusOr<Page>(const httplib::Request&)> answer
) {
  server.Get(path, [answer = std::move(answer)](const auto& request, auto& response) {
    const StatusOr<Page> page = answer(request);
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    if (page.ok()) {
      response.set_content(page->body, page->type);
      return;
    }
    response.status = HttpStatusOf(page.status());
    response.set_content(Dump({{"error", std::string(MessageOf(page.status()))}}), kJson);
  });
}

StatusOr<Page> Health(const ServingState& state) {
  if (state.EngineHangs()) {
    return Unavailable("the engine has not finished a step for longer than --step-timeout");
  }
  return Page{.body = "ok\n", .type = kText};
}

StatusOr<Page> Readiness(const ServingState& state) {
  RETURN_IF_ERROR(Health(state).status());
  RETURN_IF_ERROR(state.ModelForNewWork("").status());
  return Page{.body = "ready\n", .type = kText};
}

StatusOr<Page> Info(const ServingState& state) {
  ASSIGN_OR_RETURN(const LoadedModel* model, state.Model(""));
  return Page{.body = Dump(ToJson(model->info))};
}

StatusOr<Page> Load(ServingState& state) {
  ASSIGN_OR_RETURN(const LoadedModel* model, state.Model(""));
  return Page{.body = Dump(ToJson(DescribeLoad(model->engine->Load(), state)))};
}

StatusOr<Page> Experts(ServingState& state, const httplib::Request& request) {
  const std::string format = request.has_param("format") ? request.get_param_value("format") : "";
  if (!format.empty() && format != "json" && format != "csv") {
    return InvalidArgument("format is \"", format, "\"; use json or csv");
  }
  const QueryParameters parameters(request.params.begin(), request.params.end());
  ASSIGN_OR_RETURN(const v1::GetExpertStatsRequest asked, ParseExpertQuery(parameters));
  ASSIGN_OR_RETURN(const LoadedModel* model, state.Model(""));
  ASSIGN_OR_RETURN(
      const ExpertSnapshot latest,
      state.experts().Snapshot(
          *model->engine, {.timeout = kScrapeTimeout, .max_age = kScrapeMaxAge}
      )
  );
  ASSIGN_OR_RETURN(v1::GetExpertStatsResponse stats, state.experts().Answer(*latest, asked));
  stats.set_model(model->name);
  if (format == "csv") {
    return Page{.body = ExpertCsv(stats), .type = "text/csv; charset=utf-8"};
  }
  return Page{.body = Dump(ToJson(stats))};
}

}  // namespace

void AddPages(ServingState& state, httplib::Server& server) {
  AddPage(server, "/healthz", [&state](const auto&) { return Health(state); });
  AddPage(server, "/readyz", [&state](const auto&) { return Readiness(state); });
  AddPage(server, "/v1/info", [&state](const auto&) { return Info(state); });
  AddPage(server, "/v1/load", [&state](const auto&) { return Load(state); });
  AddPage(server, "/v1/experts", [&state](const auto& request) { return Experts(state, request); });
  AddPage(server, "/metrics", [&state](const auto&) -> StatusOr<Page> {
    return Page{.body = MetricsPage(state), .type = "text/plain; version=0.0.4; charset=utf-8"};
  });
  server.Get("/", [](const auto&, auto& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    // The page is one file: nothing may come from anywhere else.
    response.set_header(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors "
        "'none'"
    );
    response.set_content(kDashboardHtml.data(), kDashboardHtml.size(), "text/html; charset=utf-8");
  });
}

}  // namespace switchyard
