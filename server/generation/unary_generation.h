#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/generation/generation_reactor.h"

namespace switchyard {

// An RPC that answers once: waits, without a thread, until the generation is over, and collects
// meanwhile what comes of it. Thread-safe.
template <typename Request>
class UnaryGeneration : public GenerationReactor<grpc::ServerUnaryReactor, Request> {
 public:
  // Finishes the RPC if the generation is over.
  void Deliver() final {
    Status status;
    {
      const MutexLock lock(this->mutex_);
      if (this->generation_ == nullptr) {
        return;
      }
      TokenStream::Taken taken = this->generation_->Take();
      for (const TokenStream::Part& part : taken.parts) {
        Collect(part);
      }
      if (taken.ends.empty()) {
        return;
      }
      status = Answer(this->generation_->End(taken), response_);
    }
    this->Finish(ToGrpcStatus(status));
  }
  void OnTick(Clock::time_point /*now*/) final {}

 protected:
  // `state`, `context` and `response` must outlive the RPC.
  UnaryGeneration(
      ServingState& state,
      const char* method,
      grpc::CallbackServerContext& context,
      grpc::ByteBuffer& response
  )
      : GenerationReactor<grpc::ServerUnaryReactor, Request>(state, method, context),
        response_(response) {}

 private:
  // One call of either at a time; Answer once, after the last Collect.
  virtual void Collect(const TokenStream::Part& part) = 0;
  virtual Status Answer(GenerationEnd end, grpc::ByteBuffer& bytes) = 0;

  grpc::ByteBuffer& response_;
};

}  // namespace switchyard
