#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "engine/mutex.h"
#include "server/generation.h"
#include "server/serving_state.h"

namespace switchyard {

// One running GenerateOnce RPC: waits, without a thread, until the generation is over. Thread-safe.
class GenerateOnce final : public grpc::ServerUnaryReactor,
                           public std::enable_shared_from_this<GenerateOnce> {
 public:
  explicit GenerateOnce(grpc::ByteBuffer& response) : response_(response) {}

  // Begins the RPC; a bad request finishes it at once. Owned by gRPC from here on: freed after
  // OnDone. `state` and `response` must outlive it.
  static grpc::ServerUnaryReactor* Start(
      ServingState& state,
      const grpc::ServerContextBase& context,
      const grpc::ByteBuffer& request,
      grpc::ByteBuffer& response
  );

  void OnCancel() override;
  void OnDone() override;

  // Finishes the RPC if the generation is over.
  void Deliver();

 private:
  Status Begin(
      ServingState& state, const grpc::ServerContextBase& context, const grpc::ByteBuffer& bytes
  );
  void Collect(const v1::Delta& delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Answer(GenerationEnd end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::ByteBuffer& response_;
  std::shared_ptr<GenerateOnce> self_;  // until OnDone

  Mutex mutex_;
  std::unique_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);  // null until accepted
  v1::GenerateOnceResponse collected_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
