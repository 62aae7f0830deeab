#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <optional>

#include "server/generation/generation_reactor.h"

namespace switchyard {

// One running Generate RPC. At most one write is in flight, and whoever finds none starts the next
// with all that is there. A client that does not read leaves its write in flight: nobody waits for
// it, its tokens pile up in the TokenStream, and after the stall timeout the request ends. The RPC
// then ends with the client's next read, or is reset when that takes as long again. Thread-safe.
class GenerateStream final
    : public GenerationReactor<grpc::ServerWriteReactor<grpc::ByteBuffer>, v1::GenerateRequest> {
 public:
  // `state` and `context` must outlive the RPC.
  GenerateStream(ServingState& state, grpc::CallbackServerContext& context)
      : GenerationReactor(state, "Generate", context) {}

  void OnWriteDone(bool ok) override;
  // Ends the stream if its client has not read for too long.
  void OnTick(Clock::time_point now) override;
  // Starts the next write, or the end, if there is something and nothing is in flight.
  void Deliver() override;

 private:
  // What to ask of gRPC, decided under the lock and done without it: gRPC may call back from
  // inside.
  enum class Step { kNone, kWrite, kFinish };

  // Puts what came into events_.
  void Collect(TokenStream::Taken taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Step Write(const v1::GenerateResponse& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Step EndStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Step Fail(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the RPC has to be reset.
  bool CheckStall(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::deque<v1::GenerateResponse> events_ ABSL_GUARDED_BY(mutex_);  // to be written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point write_began_ ABSL_GUARDED_BY(mutex_);  // of the write in flight
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;           // ended because of its client
  bool was_reset_ ABSL_GUARDED_BY(mutex_) = false;
  bool resetting_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC must keep context_: no Finish meanwhile
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;     // a write failed; no other is tried
  bool last_written_ ABSL_GUARDED_BY(mutex_) = false;  // the `finished` event is out
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;         // gRPC was told to finish
  std::optional<GenerationEnd> end_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_;  // belongs to whoever set writing_, until the write is done
};

}  // namespace switchyard
