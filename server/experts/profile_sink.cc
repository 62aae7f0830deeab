#include "server/experts/profile_sink.h"

#include <span>
#include <utility>

#include "base/check.h"

namespace switchyard {

ProfileSink::ProfileSink(std::shared_ptr<ProfiledText> text, size_t begin, OnEnd on_end)
    : text_(std::move(text)), begin_(begin), on_end_(std::move(on_end)) {}

void ProfileSink::OnRouting(const RoutingEvent& event) {
  CHECK(!event.cached && event.routers.size() == text_->counts.routers.size())
      << event.routers.size() << " routers, cached=" << event.cached;
  // Positions begin with the lead, if there is one.
  const size_t lead = text_->lead.has_value() ? 1 : 0;
  const auto first = static_cast<size_t>(event.first_token);
  const size_t skipped = first < lead ? lead - first : 0;
  const size_t count = static_cast<size_t>(event.tokens) - skipped;
  const auto places = std::span(text_->places).subspan(begin_ + first + skipped - lead, count);
  for (size_t i = 0; i < event.routers.size(); ++i) {
    const RoutedTokens& router = event.routers[i];
    const size_t width = static_cast<size_t>(router.heads) * static_cast<size_t>(router.top_k);
    CountAssignments(places, router.expert_ids.subspan(skipped * width), text_->counts.routers[i]);
  }
}

}  // namespace switchyard
