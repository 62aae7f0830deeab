#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "engine/mutex.h"
#include "server/generation.h"
#include "server/serving_state.h"

namespace switchyard {

// One running Generate RPC. gRPC calls the On... methods; the pump thread calls Deliver when the
// engine made something. At most one write is in flight, and whoever finds none starts the next
// with all that is there. A client that does not read leaves its write in flight: nobody waits for
// it, and its tokens pile up in the TokenStream. Cancel, deadline and disconnect reach the engine
// at once, not with the failing of a write. Thread-safe.
class GenerateStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                             public std::enable_shared_from_this<GenerateStream> {
 public:
  // Begins the RPC; a bad request finishes it at once. Owned by gRPC from here on: freed after
  // OnDone. `state` must outlive it.
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(
      ServingState& state, const grpc::ServerContextBase& context, const grpc::ByteBuffer& request
  );

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Starts the next write, or the end, if there is something and nothing is in flight.
  void Deliver();

 private:
  // What to ask of gRPC, decided under the lock and done without it: gRPC may call back from
  // inside.
  enum class Step { kNone, kWrite, kWriteAndFinish, kFinish };

  Status Begin(
      ServingState& state, const grpc::ServerContextBase& context, const grpc::ByteBuffer& bytes
  );
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Step EndStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Step Fail(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<GenerateStream> self_;  // until OnDone

  Mutex mutex_;
  std::unique_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);  // null until accepted
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // a write failed; no other is tried
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // gRPC was told to finish
  std::optional<GenerationEnd> end_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_;  // belongs to whoever set writing_ or ended_, until the write is done
};

}  // namespace switchyard
