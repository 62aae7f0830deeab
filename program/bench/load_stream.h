#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "clients/cpp/async_generation.h"
#include "program/bench/load_plan.h"
#include "program/bench/load_results.h"

namespace switchyard {

// One planned request on its way: sends it, disturbs it as planned, and keeps its times.
class LoadStream final : public GenerationObserver {
 public:
  // Called from threads of gRPC; must not block them.
  class Owner {
   public:
    virtual ~Owner() = default;

    virtual void CancelAfter(LoadStream& stream, std::chrono::nanoseconds pause) = 0;
    virtual void ResumeAfterStall(LoadStream& stream) = 0;
    virtual void OnTokens(int32_t tokens, BenchClock::time_point now) = 0;
    // The last call. The stream may be destroyed in it.
    virtual void OnStreamDone(LoadStream& stream, RequestRecord record) = 0;
  };

  // The owner must outlive this object, and this object must live until OnStreamDone.
  LoadStream(uint64_t index, Owner& owner) : index_(index), owner_(owner), stream_(*this) {}

  // Once. The calls of the owner may come before this returns. `early_pause`: when a cancel that is
  // planned before the first token comes.
  void Start(
      const Client& client,
      const PlannedRequest& planned,
      std::optional<std::chrono::milliseconds> time_limit,
      std::chrono::nanoseconds early_pause
  );

  // From any thread, also before the start or after the end.
  void Cancel() { stream_.Cancel(); }
  // Once for each ResumeAfterStall.
  void Resume() { stream_.Resume(); }

  uint64_t index() const { return index_; }

 private:
  void OnEvent(const v1::GenerateResponse& event) override;
  void OnDone(const Status& status) override;
  void OnDelta(const v1::Delta& delta, BenchClock::time_point now);
  void Disturb();

  uint64_t index_;
  Owner& owner_;
  RequestRecord record_;
  int32_t disturbed_after_tokens_ = 0;
  bool was_disturbed_ = false;
  BenchClock::time_point started_;
  BenchClock::time_point last_tokens_;
  AsyncGeneration stream_;
};

}  // namespace switchyard
