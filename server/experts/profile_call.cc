#include "server/experts/profile_call.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "server/call/grpc_status.h"
#include "server/experts/profile_sink.h"
#include "server/generation/message_bytes.h"
#include "server/validation/prompt_validation.h"

namespace switchyard {
namespace {

// What is counted of one may take hundreds of megabytes.
constexpr int32_t kMaxOpenProfiles = 1;

Status Cancelled() {
  return Status(StatusCode::kCancelled, "the client cancelled");
}

Status Thrown(const std::exception& error) {
  return Internal("profiling the text failed: ", error.what());
}

}  // namespace

ProfileCall::ProfileCall(
    ServingState& state,
    std::atomic<int32_t>& open_profiles,
    grpc::CallbackServerContext& context,
    grpc::ByteBuffer& response
)
    : state_(state),
      open_profiles_(open_profiles),
      response_(response),
      call_(state, "ProfileExperts", context),
      began_at_(state.options().now()) {}

void ProfileCall::LeavePlace() {
  if (std::exchange(is_counted_, false)) {
    --open_profiles_;
  }
}

void ProfileCall::Begin(const grpc::ByteBuffer& request, Door door) {
  self_ = shared_from_this();
  Status status;
  try {
    status = TryBegin(request, door);
  } catch (const std::exception& error) {
    status = Thrown(error);
  }
  if (!status.ok()) {
    state_.counters().CountRefusal(status.code());
    call_.Refuse(status);
    LeavePlace();
    Finish(ToGrpcStatus(status));
  }
}

Status ProfileCall::TryBegin(const grpc::ByteBuffer& bytes, Door door) {
  RETURN_IF_ERROR(call_.Admit(door));
  RETURN_IF_ERROR(CheckAdminDoor("ProfileExperts", door));
  RETURN_IF_ERROR(state_.CheckNotDraining());
  RETURN_IF_ERROR(call_.EnterGeneration());
  RETURN_IF_ERROR(TakePlace());
  if (const Status opened = state_.streams().Open(self_); !opened.ok()) {
    return state_.Full(RefusalReason::kStreams, opened);
  }
  v1::ProfileExpertsRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, request));
  ASSIGN_OR_RETURN(model_, state_.ModelForNewWork(request.model()));
  ASSIGN_OR_RETURN(ProfiledText text, ReadProfileRequest(request, *model_));
  text_ = std::make_shared<ProfiledText>(std::move(text));
  RETURN_IF_ERROR(call_.TakeTokens(text_->counts.tokens));
  ASSIGN_OR_RETURN(registration_, state_.requests().Register(""));
  call_.record().request_id = registration_.id();
  call_.record().prompt_tokens = static_cast<int32_t>(text_->counts.tokens);
  const MutexLock lock(mutex_);
  const Status submitted = SubmitNext();
  if (submitted.code() == StatusCode::kResourceExhausted) {
    return state_.Full(refused_for_, submitted);
  }
  RETURN_IF_ERROR(submitted);
  call_.Accept();
  return OkStatus();
}

Status ProfileCall::TakePlace() {
  is_counted_ = true;
  if (open_profiles_++ < kMaxOpenProfiles) {
    return OkStatus();
  }
  return state_.Full(
      RefusalReason::kStreams,
      ResourceExhausted(
          "a text is being profiled, and this server profiles ",
          kMaxOpenProfiles,
          " at a time; try again later"
      )
  );
}

GenerationRequest ProfileCall::NextRequest() {
  const size_t end =
      std::min(next_token_ + static_cast<size_t>(text_->sequence_tokens), text_->tokens.size());
  std::vector<int32_t> sequence;
  sequence.reserve(end - next_token_ + 1);
  if (text_->lead.has_value()) {
    sequence.push_back(*text_->lead);
  }
  sequence.insert(
      sequence.end(),
      text_->tokens.begin() + static_cast<std::ptrdiff_t>(next_token_),
      text_->tokens.begin() + static_cast<std::ptrdiff_t>(end)
  );
  GenerationRequest request;
  request.prompt = {sequence.front()};
  // As something to score it may fill the context to its end.
  if (sequence.size() > 1) {
    request.continuations = {{sequence.begin() + 1, sequence.end()}};
  }
  request.trace_routing = true;
  request.counts_as_warm_up = true;
  request.sampling.temperature = 0;
  request.priority = -kMaxPriority;
  // A token that is found in the cache is not routed.
  request.prefix_sharing.enabled = false;
  request.deadline = call_.deadline();
  // Weak, because the engine may keep the sink a moment longer than gRPC keeps the RPC.
  const auto on_end = [&thread = state_.inquiries(),
                       self = weak_from_this()](const FinishEvent& event) {
    thread.Post([self, event] {
      if (const std::shared_ptr<ProfileCall> call = self.lock()) {
        call->OnSequenceEnded(event);
      }
    });
  };
  request.sink = std::make_shared<ProfileSink>(text_, next_token_, on_end);
  next_token_ = end;
  return request;
}

Status ProfileCall::SubmitNext() {
  RETURN_IF_ERROR(state_.CheckNotDraining());
  const size_t first = next_token_;
  GenerationRequest request = NextRequest();
  auto place = state_.prompts().Enter(static_cast<int64_t>(next_token_ - first));
  if (!place.ok()) {
    next_token_ = first;
    refused_for_ = RefusalReason::kQueuedTokens;
    return place.status();
  }
  const StatusOr<RequestId> submitted = model_->engine->Submit(std::move(request));
  if (!submitted.ok()) {
    next_token_ = first;
    refused_for_ = RefusalReason::kQueuedRequests;
    return submitted.status();
  }
  place_ = *std::move(place);
  engine_id_ = *submitted;
  is_in_engine_ = true;
  return OkStatus();
}

ProfileCall::End ProfileCall::GoOn() {
  const Status submitted = SubmitNext();
  waits_for_room_ = submitted.code() == StatusCode::kResourceExhausted;
  return submitted.ok() || waits_for_room_ ? std::nullopt : End(submitted);
}

void ProfileCall::OnSequenceEnded(const FinishEvent& event) {
  End end;
  {
    const MutexLock lock(mutex_);
    place_.Release();
    is_in_engine_ = false;
    try {
      end = AfterSequence(event);
    } catch (const std::exception& error) {
      end = Thrown(error);
    }
  }
  if (end.has_value()) {
    EndWith(*end);
  }
}

ProfileCall::End ProfileCall::AfterSequence(const FinishEvent& event) {
  if (is_cancelled_) {
    return Cancelled();
  }
  switch (event.reason) {
    case FinishReason::kCancelled:
      return Unavailable("the server is stopping and ended the profile; try another replica");
    case FinishReason::kDeadline:
      return Status(
          StatusCode::kDeadlineExceeded,
          Concat(
              "the deadline passed before all of the text's ",
              text_->tokens.size(),
              " tokens were routed; give it more time or send less"
          )
      );
    case FinishReason::kError:
      return event.status.ok() ? Internal("the engine ended the profile without saying why")
                               : event.status;
    case FinishReason::kStop:
    case FinishReason::kLength:
    case FinishReason::kScored:
      break;
  }
  return next_token_ < text_->tokens.size() ? GoOn() : End(Answer());
}

Status ProfileCall::Answer() {
  const v1::ProfileExpertsResponse response = DescribeProfile(
      text_->counts,
      text_->options,
      *model_->tokenizer,
      {.model = model_->name,
       .device = model_->info.device(),
       .dtype = model_->info.dtype(),
       .sequence_tokens = text_->sequence_tokens}
  );
  const auto bytes = static_cast<int64_t>(response.ByteSizeLong());
  if (bytes > state_.options().max_answer_bytes) {
    return ResourceExhausted(
        "the answer has ",
        bytes,
        " bytes; this server sends at most ",
        state_.options().max_answer_bytes,
        " in one message; ask for fewer most_tokens, or for a higher min_occurrences"
    );
  }
  return SerializeMessage(response, response_);
}

void ProfileCall::EndWith(const Status& status) {
  // Before the client hears of it, so that it may send another at once.
  registration_.Release();
  LeavePlace();
  const std::chrono::duration<double> passed = state_.options().now() - began_at_;
  call_.Finish(
      {.status = status,
       .reason = status.ok() ? "profiled" : "unfinished",
       .total_seconds = passed.count()}
  );
  Finish(ToGrpcStatus(status));
}

void ProfileCall::OnTick(Clock::time_point /*now*/) {
  End end;
  {
    const MutexLock lock(mutex_);
    if (!waits_for_room_) {
      return;
    }
    try {
      end = GoOn();
    } catch (const std::exception& error) {
      end = Thrown(error);
    }
  }
  if (end.has_value()) {
    EndWith(*end);
  }
}

void ProfileCall::OnCancel() {
  {
    const MutexLock lock(mutex_);
    is_cancelled_ = true;
    if (is_in_engine_) {
      // Ends the RPC when it has ended the sequence.
      model_->engine->Cancel(engine_id_);
      return;
    }
    if (!std::exchange(waits_for_room_, false)) {
      return;
    }
  }
  EndWith(Cancelled());
}

void ProfileCall::OnDone() {
  state_.streams().Close(*this);
  // May be the last owner: frees this on return.
  const std::shared_ptr<ProfileCall> self = std::move(self_);
}

}  // namespace switchyard
