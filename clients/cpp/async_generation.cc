#include "clients/cpp/async_generation.h"

#include "clients/cpp/call_status.h"

namespace switchyard {

void AsyncGeneration::Start(
    const Client& client,
    const v1::GenerateRequest& request,
    std::optional<std::chrono::milliseconds> time_limit
) {
  address_ = client.address();
  if (time_limit.has_value()) {
    context_.set_deadline(std::chrono::system_clock::now() + *time_limit);
  }
  client.AddKey(context_);
  client.inference_->async()->Generate(&context_, &request, this);
  StartRead(&event_);
  StartCall();
}

void AsyncGeneration::Pause() {
  // Reads are started from outside a reaction from now on, which gRPC allows under a hold only.
  AddHold();
  is_pausing_ = true;
}

void AsyncGeneration::OnReadDone(bool ok) {
  if (!ok) {
    return;
  }
  observer_.OnEvent(event_);
  if (is_pausing_) {
    is_pausing_ = false;
    ReadWhenBothAreDone();
  } else {
    StartRead(&event_);
  }
}

void AsyncGeneration::ReadWhenBothAreDone() {
  if (ends_of_pause_.fetch_add(1) == 1) {
    ends_of_pause_ = 0;
    StartRead(&event_);
    RemoveHold();
  }
}

void AsyncGeneration::OnDone(const grpc::Status& status) {
  observer_.OnDone(StatusOfCall(status, address_));
}

}  // namespace switchyard
