#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "base/status.h"
#include "server/call/incoming_call.h"
#include "server/serving_state.h"
#include "switchyard/v1/experts.pb.h"

namespace switchyard {

// One StreamExpertStats RPC: an answer, a pause, the next answer, until the client cancels. One
// thing at a time is under way, so a client that does not read gets none. Thread-safe.
class ExpertStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                           public std::enable_shared_from_this<ExpertStream> {
 public:
  // `state` and `open_streams`, the count of those that are open, must outlive the RPC.
  ExpertStream(ServingState& state, std::atomic<int32_t>& open_streams)
      : state_(state), open_streams_(open_streams) {
    ++open_streams_;
  }
  ~ExpertStream() override { --open_streams_; }

  // Requires: a shared_ptr owns this.
  // Ends at once with what `admitted` says when that is not OK; keeps the call until its end.
  void Begin(const grpc::ByteBuffer& request, StatusOr<std::shared_ptr<IncomingCall>> admitted);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  Status Parse(const grpc::ByteBuffer& request);
  // On the inquiry thread, because it waits for the engine.
  void PostAnswer();
  void WriteAnswer();
  Status Answer();

  ServingState& state_;
  std::atomic<int32_t>& open_streams_;
  std::shared_ptr<IncomingCall> admitted_;
  v1::GetExpertStatsRequest asked_;
  std::chrono::milliseconds interval_{0};
  grpc::ByteBuffer outgoing_;  // of the write in flight
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);  // of the last pause; null at first
  std::shared_ptr<ExpertStream> self_;                          // until OnDone
};

}  // namespace switchyard
