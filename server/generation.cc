#include "server/generation.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "base/log.h"
#include "server/message_bytes.h"
#include "server/request_validation.h"

namespace switchyard {
namespace {

uint64_t DrawSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      break;
  }
  return "error";
}

// When the client stops waiting; absent when it never does.
std::optional<Clock::time_point> DeadlineOf(const grpc::ServerContextBase& context) {
  // Counted from now in gRPC's own arithmetic, which saturates: a client may ask for a thousand
  // years.
  constexpr int64_t kLongestSeconds = 10LL * 365 * 24 * 3600;
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kLongestSeconds) {
    return std::nullopt;
  }
  return Clock::now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

}  // namespace

StatusOr<std::unique_ptr<Generation>> Generation::Start(ServingState& state, GenerationCall call) {
  try {
    return TryStart(state, call);
  } catch (const std::exception& error) {
    return Internal("accepting the request failed: ", error.what());
  }
}

StatusOr<std::unique_ptr<Generation>> Generation::TryStart(
    ServingState& state, GenerationCall& call
) {
  v1::GenerateRequest request;
  RETURN_IF_ERROR(ParseMessage(call.request, request));
  ASSIGN_OR_RETURN(LoadedModel * model, state.ModelForNewWork(request.model()));
  ASSIGN_OR_RETURN(ValidatedRequest valid, ValidateRequest(request, *model));

  std::unique_ptr<Generation> generation(new Generation(*model));
  ASSIGN_OR_RETURN(generation->registration_, state.requests().Register(valid.request_id));
  RETURN_IF_ERROR(generation->Submit(std::move(valid), call));
  return generation;
}

Status Generation::Submit(ValidatedRequest valid, GenerationCall& call) {
  GenerationRequest& request = valid.generation;
  if (!valid.has_seed) {
    request.sampling.seed = DrawSeed();
  }
  seed_ = request.sampling.seed;
  ignores_eos_ = request.stopping.ignore_eos;
  if (valid.echo_prompt_tokens) {
    echoed_prompt_ = request.prompt;
  }
  TokenStreamOptions options{
      .text =
          {.stop_strings = std::move(valid.stop_strings),
           .include_stop = valid.include_stop,
           .min_tokens = request.stopping.min_tokens},
      .wants_logprobs = request.sampling.top_logprobs.has_value(),
      .wake_when = call.wake_when};
  stream_ = std::make_shared<TokenStream>(
      model_.tokenizer.get(), std::move(options), std::move(call.wake)
  );
  request.deadline = DeadlineOf(call.context);
  request.sink = stream_;
  LogDebug(
      "event=accepted request_id={} prompt_tokens={} max_tokens={}",
      registration_.id(),
      request.prompt.size(),
      request.stopping.max_tokens
  );
  ASSIGN_OR_RETURN(engine_id_, model_.engine->Submit(std::move(request)));
  return OkStatus();
}

void Generation::Cancel() {
  client_cancelled_ = true;
  model_.engine->Cancel(engine_id_);
}

GenerationEnd Generation::End(const TokenStream::Taken& taken) {
  const FinishEvent& event = *taken.finished;
  LogDebug(
      "event=finished request_id={} reason={} completion_tokens={} total_seconds={:.3f}",
      registration_.id(),
      NameOf(event.reason),
      event.completion_tokens,
      event.total_seconds
  );
  GenerationEnd end{.status = StatusOf(event), .finished = {}};
  if (end.status.ok()) {
    end.finished = Describe(taken);
  }
  registration_.Release();
  return end;
}

Status Generation::StatusOf(const FinishEvent& event) const {
  switch (event.reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      return OkStatus();
    case FinishReason::kCancelled:
      return client_cancelled_
                 ? Status(StatusCode::kCancelled, "the client cancelled")
                 : Unavailable("the server is stopping and ended the request; try another replica");
    case FinishReason::kDeadline:
      return Status(
          StatusCode::kDeadlineExceeded,
          Concat(
              "the request's deadline passed after ",
              event.completion_tokens,
              " tokens; give it more time or lower stopping.max_tokens"
          )
      );
    case FinishReason::kError:
      break;
  }
  return event.status.ok() ? Internal("the engine ended the request without saying why")
                           : event.status;
}

bool Generation::IsEos(const FinishEvent& event) const {
  const std::vector<int32_t>& extra = model_.extra_eos_token_ids;
  return event.stop_is_eos ||
         (!ignores_eos_ &&
          std::find(extra.begin(), extra.end(), *event.stop_token_id) != extra.end());
}

v1::Finished Generation::Describe(const TokenStream::Taken& taken) const {
  const FinishEvent& event = *taken.finished;
  v1::Finished finished;
  finished.set_request_id(registration_.id());
  finished.set_seed(seed_);
  finished.mutable_prompt_token_ids()->Add(echoed_prompt_.begin(), echoed_prompt_.end());

  finished.set_reason(v1::FINISH_REASON_LENGTH);
  if (event.stop_token_id) {
    finished.set_reason(v1::FINISH_REASON_STOP);
    if (IsEos(event)) {
      finished.set_eos_token_id(*event.stop_token_id);
    } else {
      finished.set_stop_token_id(*event.stop_token_id);
    }
  } else if (taken.matched_stop) {
    // Also when the same token was the last that max_tokens allows: the text ends because of the
    // stop string.
    finished.set_reason(v1::FINISH_REASON_STOP);
    finished.set_stop_string(*taken.matched_stop);
  }

  finished.mutable_usage()->set_prompt_tokens(event.prompt_tokens);
  finished.mutable_usage()->set_completion_tokens(event.completion_tokens);
  finished.mutable_usage()->set_cached_prompt_tokens(event.cached_prompt_tokens);
  finished.mutable_timings()->set_queue_seconds(event.queue_seconds);
  finished.mutable_timings()->set_time_to_first_token_seconds(event.time_to_first_token_seconds);
  finished.mutable_timings()->set_decode_seconds(event.decode_seconds);
  finished.mutable_timings()->set_total_seconds(event.total_seconds);
  return finished;
}

}  // namespace switchyard
