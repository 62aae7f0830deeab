#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "engine/token_sink.h"
#include "server/experts/expert_profile.h"

namespace switchyard {

// Takes the routing of one sequence of a profiled text, and counts it there. Used only by the
// engine thread; one sink of a text at a time.
class ProfileSink final : public TokenSink {
 public:
  using OnEnd = std::function<void(const FinishEvent& event)>;

  // The sequence is text->tokens from `begin` on, behind the lead. `on_end` must not wait.
  ProfileSink(std::shared_ptr<ProfiledText> text, size_t begin, OnEnd on_end);

  void OnRouting(const RoutingEvent& event) override;
  // A sequence of one token asks for another, because the engine has to have something to do.
  Verdict OnToken(const TokenEvent& /*event*/) override { return Verdict::kStop; }
  void OnFinished(const FinishEvent& event) override { on_end_(event); }

 private:
  const std::shared_ptr<ProfiledText> text_;
  const size_t begin_;
  const OnEnd on_end_;
};

}  // namespace switchyard
