#include "server/generate_once.h"

#include <utility>

#include "server/message_bytes.h"

namespace switchyard {

void GenerateOnce::Deliver() {
  Status status;
  {
    const MutexLock lock(mutex_);
    if (generation_ == nullptr) {
      return;
    }
    TokenStream::Taken taken = generation_->Take();
    Collect(taken.delta);
    if (!taken.finished) {
      return;
    }
    status = Answer(generation_->End(taken));
  }
  Finish(ToGrpcStatus(status));
}

void GenerateOnce::Collect(const v1::Delta& delta) {
  collected_.mutable_text()->append(delta.text());
  collected_.mutable_token_ids()->MergeFrom(delta.token_ids());
  collected_.mutable_logprobs()->MergeFrom(delta.logprobs());
}

Status GenerateOnce::Answer(GenerationEnd end) {
  RETURN_IF_ERROR(end.status);
  collected_.mutable_finished()->Swap(&end.finished);
  return SerializeMessage(collected_, response_);
}

}  // namespace switchyard
