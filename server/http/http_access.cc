#include "server/http/http_access.h"

#include <httplib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "server/access/access_control.h"

namespace switchyard {
namespace {

// The dashboard itself says nothing of this server: it asks for a key and gets the rest with it.
bool NeedsKey(const std::string& path, HttpOpen open) {
  return open != HttpOpen::kAll && path != "/" && path != "/healthz" && path != "/readyz" &&
         (open != HttpOpen::kMetrics || path != "/metrics");
}

Status CheckKey(const AccessControl& access, const httplib::Request& request) {
  const bool is_one = request.get_header_value_count("Authorization") == 1;
  ASSIGN_OR_RETURN(
      const std::shared_ptr<KeyAccount> account,
      access.Authenticate(is_one ? request.get_header_value("Authorization") : "")
  );
  return account->TakeRequest();
}

}  // namespace

void GuardPages(ServingState& state, HttpOpen open, httplib::Server& server) {
  server.set_pre_routing_handler([&state, open](const auto& request, auto& response) {
    using Routed = httplib::Server::HandlerResponse;
    const AccessControl* const access = state.options().access.get();
    if (access == nullptr || !NeedsKey(request.path, open)) {
      return Routed::Unhandled;
    }
    const Status status = CheckKey(*access, request);
    if (status.ok()) {
      return Routed::Unhandled;
    }
    const bool is_limit = status.code() == StatusCode::kResourceExhausted;
    response.status = is_limit ? 429 : 401;
    if (!is_limit) {
      response.set_header("WWW-Authenticate", "Bearer");
    }
    response.set_content(
        nlohmann::json{{"error", MessageOf(status)}}.dump() + "\n", "application/json"
    );
    return Routed::Handled;
  });
}

}  // namespace switchyard
