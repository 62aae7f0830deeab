#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "server/call/grpc_status.h"
#include "server/call/incoming_call.h"
#include "server/generation/generation.h"
#include "server/generation/open_streams.h"
#include "server/serving_state.h"

namespace switchyard {

// What the RPCs that generate have in common: they begin with one request, hear of cancel,
// deadline and disconnect at once rather than with the failing of a write, and belong to gRPC until
// OnDone. `Reactor` is gRPC's base of the RPC, `Request` its message. Thread-safe.
template <typename Reactor, typename Request>
class GenerationReactor : public Reactor,
                          public OpenStream,
                          public std::enable_shared_from_this<GenerationReactor<Reactor, Request>> {
 public:
  // Hands the request to the engine; a bad one finishes the RPC at once. Requires: a shared_ptr
  // owns this.
  void Begin(const grpc::ByteBuffer& request, WakeWhen wake_when) {
    self_ = this->shared_from_this();
    if (const Status status = TryBegin(request, wake_when); !status.ok()) {
      state_.counters().CountRefusal(status.code());
      call_.Refuse(status);
      this->Finish(ToGrpcStatus(status));
      return;
    }
    Deliver();
  }

  // Sends what there is to send; the pump thread calls it when the engine made something.
  virtual void Deliver() = 0;

  void OnCancel() override {
    const MutexLock lock(mutex_);
    if (generation_ != nullptr) {
      generation_->Cancel();
    }
  }

  void OnDone() override {
    state_.streams().Close(*this);
    // May be the last owner: frees this on return.
    const std::shared_ptr<GenerationReactor> self = std::move(self_);
  }

 protected:
  // Both must outlive the RPC.
  GenerationReactor(ServingState& state, const char* method, grpc::CallbackServerContext& context)
      : state_(state), context_(context), call_(state, method, context) {}

  ServingState& state_;
  const grpc::ServerContextBase& context_;
  IncomingCall call_;
  Mutex mutex_;
  std::unique_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);  // null until accepted

 private:
  Status TryBegin(const grpc::ByteBuffer& request, WakeWhen wake_when) {
    RETURN_IF_ERROR(call_.Admit());
    // Before it counts as open, because those that are open hold up a shutdown.
    RETURN_IF_ERROR(state_.CheckNotDraining());
    RETURN_IF_ERROR(call_.EnterGeneration());
    const Status opened = state_.streams().Open(self_);
    if (!opened.ok()) {
      return state_.Full(RefusalReason::kStreams, opened);
    }
    ASSIGN_OR_RETURN(
        std::unique_ptr<Generation> generation,
        Generation::Start<Request>(
            state_, {.call = call_, .request = request, .wake_when = wake_when, .wake = Wake()}
        )
    );
    const MutexLock lock(mutex_);
    generation_ = std::move(generation);
    return OkStatus();
  }

  // Has the pump thread call Deliver, as long as this is there. Weak, because the engine may keep
  // the sink a moment longer than gRPC keeps the RPC.
  std::function<void()> Wake() {
    return [&pump = state_.pump(), deliver = [weak_call = this->weak_from_this()] {
      if (const std::shared_ptr<GenerationReactor> call = weak_call.lock()) {
        call->Deliver();
      }
    }] { pump.Post(deliver); };
  }

  std::shared_ptr<GenerationReactor> self_;  // until OnDone
};

}  // namespace switchyard
