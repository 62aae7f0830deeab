#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/status.h"
#include "server/call/incoming_call.h"
#include "server/experts/expert_profile.h"
#include "server/generation/open_streams.h"
#include "server/generation/prompt_queue.h"
#include "server/generation/request_registry.h"
#include "server/metrics/serving_counters.h"
#include "server/serving_state.h"
#include "switchyard/v1/experts.pb.h"

namespace switchyard {

// One ProfileExperts RPC: hands the text to the engine, a sequence at a time so that it never takes
// more than one place there, and answers when the last has been routed. Has no thread. Thread-safe.
class ProfileCall final : public grpc::ServerUnaryReactor,
                          public OpenStream,
                          public std::enable_shared_from_this<ProfileCall> {
 public:
  // All of them must outlive the RPC. `open_profiles` is the count of those that were admitted.
  ProfileCall(
      ServingState& state,
      std::atomic<int32_t>& open_profiles,
      grpc::CallbackServerContext& context,
      grpc::ByteBuffer& response
  );

  // Requires: a shared_ptr owns this.
  void Begin(const grpc::ByteBuffer& request, Door door);

  void OnCancel() override;
  void OnDone() override;
  // Tries again what found no room.
  void OnTick(Clock::time_point now) override;

 private:
  // How the RPC ends; absent while it goes on.
  using End = std::optional<Status>;

  Status TryBegin(const grpc::ByteBuffer& bytes, Door door);
  // Among those that may be open at a time.
  Status TakePlace();
  void LeavePlace();
  // The sequence that comes next, as the engine takes it.
  GenerationRequest NextRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // RESOURCE_EXHAUSTED, and refused_for_, when there is no room at present.
  Status SubmitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  End GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the inquiry thread: the answer takes a while, and the pump must not wait for it.
  void OnSequenceEnded(const FinishEvent& event);
  End AfterSequence(const FinishEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWith(const Status& status);

  ServingState& state_;
  std::atomic<int32_t>& open_profiles_;
  grpc::ByteBuffer& response_;
  IncomingCall call_;
  const Clock::time_point began_at_;
  bool is_counted_ = false;  // in open_profiles_
  RequestRegistry::Registration registration_;
  LoadedModel* model_ = nullptr;        // null until accepted, as the next one
  std::shared_ptr<ProfiledText> text_;  // shared with the engine
  Mutex mutex_;
  size_t next_token_ ABSL_GUARDED_BY(mutex_) = 0;  // of those that the engine has not had
  bool is_in_engine_ ABSL_GUARDED_BY(mutex_) = false;
  bool waits_for_room_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  RequestId engine_id_ ABSL_GUARDED_BY(mutex_) = {};
  RefusalReason refused_for_ ABSL_GUARDED_BY(mutex_) = RefusalReason::kQueuedTokens;
  PromptQueue::Place place_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ProfileCall> self_;  // until OnDone
};

}  // namespace switchyard
