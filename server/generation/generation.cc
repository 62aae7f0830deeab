#include "server/generation/generation.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "base/log.h"
#include "engine/request_check.h"
#include "server/generation/message_bytes.h"
#include "server/validation/request_validation.h"

namespace switchyard {
namespace {

uint64_t DrawSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Before anything is spent on a request that is refused in the end: under overload most are.
Status CheckRoom(ServingState& state, const Engine& engine) {
  const Status requests =
      CheckQueue(engine.Load().waiting_requests, engine.options().max_queued_requests);
  if (!requests.ok()) {
    return state.Full(RefusalReason::kQueuedRequests, requests);
  }
  const Status tokens = state.prompts().CheckRoom();
  return tokens.ok() ? tokens : state.Full(RefusalReason::kQueuedTokens, tokens);
}

// Tokens that have to be computed before one is generated, if none is cached.
int64_t GivenTokens(const GenerationRequest& request) {
  auto tokens = static_cast<int64_t>(request.prompt.size());
  for (const std::vector<int32_t>& continuation : request.continuations) {
    tokens += static_cast<int64_t>(continuation.size());
  }
  return tokens;
}

// Tokens that may be generated.
int64_t MostTokens(const GenerationRequest& request) {
  const int64_t completions =
      request.beam_search ? request.beam_search->width : request.completions;
  return request.continuations.empty() ? completions * request.stopping.max_tokens : 0;
}

// See Generation::size_remedy_.
const char* SizeRemedy(const ValidatedRequest& valid, WakeWhen wake_when) {
  if (!valid.generation.continuations.empty()) {
    return "ask for fewer top_logprobs, or score fewer continuations in one call";
  }
  if (valid.best.has_value() || valid.generation.beam_search.has_value()) {
    return "ask for fewer tokens, completions or output.top_logprobs";
  }
  return wake_when == WakeWhen::kFinished
             ? "ask for fewer tokens, completions or output.top_logprobs, or use Generate"
             : nullptr;
}

// Of a client's, nothing longer comes into the log.
constexpr size_t kMaxLoggedIdBytes = 128;
constexpr size_t kMaxLoggedTextBytes = 16 << 10;

void AppendForLog(const std::string& text, std::string& logged) {
  logged.append(text, 0, kMaxLoggedTextBytes - std::min(logged.size(), kMaxLoggedTextBytes));
}

template <typename Request>
std::string PromptForLog(const Request& request) {
  std::string prompt;
  if (request.has_prompt_text()) {
    AppendForLog(request.prompt_text(), prompt);
  }
  for (const int32_t id : request.prompt_tokens().ids()) {
    AppendForLog(Concat(prompt.empty() ? "" : " ", id), prompt);
  }
  return prompt;
}

}  // namespace

template <typename Request>
StatusOr<std::unique_ptr<Generation>> Generation::Start(ServingState& state, GenerationCall call) {
  try {
    return TryStart<Request>(state, call);
  } catch (const std::exception& error) {
    return Internal("accepting the request failed: ", error.what());
  }
}

template <typename Request>
StatusOr<std::unique_ptr<Generation>> Generation::TryStart(
    ServingState& state, GenerationCall& call
) {
  Request request;
  RETURN_IF_ERROR(ParseMessage(call.request, request));
  CallRecord& record = call.call.record();
  record.request_id = request.request_id().substr(0, kMaxLoggedIdBytes);
  if (call.call.KeepsTexts()) {
    record.prompt = PromptForLog(request);
  }
  ASSIGN_OR_RETURN(LoadedModel * model, state.ModelForNewWork(request.model()));
  RETURN_IF_ERROR(CheckRoom(state, *model->engine));
  ASSIGN_OR_RETURN(ValidatedRequest valid, ValidateRequest(request, *model));
  RETURN_IF_ERROR(call.call.ApplyPriority(request.scheduling(), valid.generation.priority));

  std::unique_ptr<Generation> generation(new Generation(state, *model, call.call));
  ASSIGN_OR_RETURN(generation->registration_, state.requests().Register(valid.request_id));
  record.request_id = generation->registration_.id();
  RETURN_IF_ERROR(generation->Submit(std::move(valid), call));
  call.call.Accept();
  return generation;
}

Status Generation::Submit(ValidatedRequest valid, GenerationCall& call) {
  GenerationRequest& request = valid.generation;
  RETURN_IF_ERROR(call_.TakeTokens(GivenTokens(request) + MostTokens(request)));
  auto place = state_.prompts().Enter(GivenTokens(request));
  if (!place.ok()) {
    return state_.Full(RefusalReason::kQueuedTokens, place.status());
  }
  if (!valid.has_seed && !request.beam_search.has_value()) {
    request.sampling.seed = DrawSeed();
  }
  seed_ = request.sampling.seed;
  ignores_eos_ = request.stopping.ignore_eos;
  prompt_tokens_ = static_cast<int32_t>(request.prompt.size());
  if (valid.echo_prompt_tokens) {
    echoed_prompt_ = request.prompt;
  }
  size_remedy_ = SizeRemedy(valid, call.wake_when);
  TokenStreamOptions options{
      .text =
          {.stop_strings = std::move(valid.stop_strings),
           .include_stop = valid.include_stop,
           .min_tokens = request.stopping.min_tokens},
      .completions = request.continuations.empty()
                         ? request.completions
                         : static_cast<int32_t>(request.continuations.size()),
      .best = valid.best,
      .wants_logprobs = request.sampling.top_logprobs.has_value(),
      .prompt_top_logprobs = valid.prompt_top_logprobs,
      .wake_when = call.wake_when,
      .max_bytes = size_remedy_ != nullptr ? state_.options().max_answer_bytes
                                           : state_.options().outbox_bytes,
      .metrics = &state_.request_metrics()};
  stream_ = std::make_shared<TokenStream>(
      model_.tokenizer.get(), std::move(options), std::move(call.wake)
  );
  stream_->KeepPlace(*std::move(place));
  request.deadline = call_.deadline();
  request.sink = stream_;
  // Of those that are not told, nobody counts the tokens.
  unused_tokens_ = valid.best.has_value() || request.beam_search ? 0 : MostTokens(request);
  call_.record().prompt_tokens = prompt_tokens_;
  call_.record().max_tokens = request.stopping.max_tokens;
  const StatusOr<RequestId> submitted = model_.engine->Submit(std::move(request));
  if (submitted.status().code() == StatusCode::kResourceExhausted) {
    return state_.Full(RefusalReason::kQueuedRequests, submitted.status());
  }
  RETURN_IF_ERROR(submitted.status());
  engine_id_ = *submitted;
  return OkStatus();
}

void Generation::Cancel() {
  client_cancelled_ = true;
  model_.engine->Cancel(engine_id_);
}

TokenStream::Taken Generation::Take() {
  TokenStream::Taken taken = stream_->Take();
  if (call_.KeepsTexts()) {
    for (const TokenStream::Part& part : taken.parts) {
      AppendForLog(part.delta.text(), completion_);
    }
  }
  return taken;
}

void Generation::TellEnd(const TokenStream::Taken& taken, const Status& status) {
  const FinishEvent& first = taken.ends.front().event;
  CallEnd end{
      .status = status,
      .reason = taken.overflowed ? "outbox_full" : NameOf(first.reason),
      .cached_prompt_tokens = taken.cached_prompt_tokens,
      .queue_seconds = first.queue_seconds,
      .time_to_first_token_seconds = first.time_to_first_token_seconds,
      .completion = completion_};
  for (const TokenStream::End& one : taken.ends) {
    end.completion_tokens += one.event.completion_tokens;
    end.total_seconds = std::max(end.total_seconds, one.event.total_seconds);
  }
  call_.ReturnTokens(unused_tokens_ - end.completion_tokens);
  call_.Finish(end);
}

GenerationEnd Generation::End(const TokenStream::Taken& taken) {
  GenerationEnd end{.status = StatusOf(taken), .finished = {}, .completions = taken.ends};
  if (end.status.ok()) {
    end.finished = Describe(taken);
  } else {
    // Its other completions, if there are any.
    model_.engine->Cancel(engine_id_);
  }
  TellEnd(taken, end.status);
  registration_.Release();
  return end;
}

GenerationEnd Generation::EndStalled(std::chrono::milliseconds waited) {
  state_.counters().CountStall();
  LogWarning(
      "event=stalled request_id={} waited_seconds={:.3f}",
      registration_.id(),
      std::chrono::duration<double>(waited).count()
  );
  model_.engine->Cancel(engine_id_);
  // What is there already is not sent, so that it need not be kept.
  stream_->Take();
  registration_.Release();
  const Status status = ResourceExhausted(
      "the client has not read its stream for ",
      std::chrono::duration<double>(waited).count(),
      " seconds, the most that this server waits; read faster, or start the server with a ",
      "larger --stall-timeout"
  );
  call_.Finish({.status = status, .reason = "stalled", .completion = completion_});
  return {.status = status, .finished = {}};
}

Status Generation::OverflowStatus() const {
  if (size_remedy_ != nullptr) {
    return ResourceExhausted(
        "the answer is over ",
        state_.options().max_answer_bytes,
        " bytes, the most that this server sends in one message; ",
        size_remedy_
    );
  }
  state_.counters().CountStall();
  LogWarning("event=outbox_full request_id={}", registration_.id());
  return ResourceExhausted(
      "the client reads too slowly: over ",
      state_.options().outbox_bytes,
      " bytes were waiting for it, the most that this server keeps for a stream; read faster, ask ",
      "for fewer output.top_logprobs, or start the server with a larger --outbox-bytes"
  );
}

Status Generation::StatusOf(const TokenStream::Taken& taken) const {
  if (taken.overflowed) {
    return OverflowStatus();
  }
  const FinishEvent& event = taken.ends.front().event;
  switch (event.reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
    case FinishReason::kScored:
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

v1::CompletionEnd Generation::DescribeEnd(const TokenStream::End& end) const {
  v1::CompletionEnd described;
  described.set_completion_tokens(end.event.completion_tokens);
  described.set_logprob_sum(end.logprob_sum);
  described.set_reason(v1::FINISH_REASON_LENGTH);
  if (end.event.stop_token_id) {
    described.set_reason(v1::FINISH_REASON_STOP);
    if (IsEos(end.event)) {
      described.set_eos_token_id(*end.event.stop_token_id);
    } else {
      described.set_stop_token_id(*end.event.stop_token_id);
    }
  } else if (end.matched_stop) {
    // Also when the same token was the last that max_tokens allows: the text ends because of the
    // stop string.
    described.set_reason(v1::FINISH_REASON_STOP);
    described.set_stop_string(*end.matched_stop);
  }
  return described;
}

v1::Finished Generation::Describe(const TokenStream::Taken& taken) const {
  v1::Finished finished;
  finished.set_request_id(registration_.id());
  finished.set_seed(seed_);
  finished.mutable_prompt_token_ids()->Add(echoed_prompt_.begin(), echoed_prompt_.end());
  v1::Usage& usage = *finished.mutable_usage();
  v1::Timings& timings = *finished.mutable_timings();
  usage.set_prompt_tokens(prompt_tokens_);
  usage.set_cached_prompt_tokens(taken.cached_prompt_tokens);
  // The whole request: from the first that began to the last that ended.
  const FinishEvent& first = taken.ends.front().event;
  timings.set_queue_seconds(first.queue_seconds);
  timings.set_time_to_first_token_seconds(first.time_to_first_token_seconds);
  for (const TokenStream::End& end : taken.ends) {
    const FinishEvent& event = end.event;
    *finished.add_completions() = DescribeEnd(end);
    usage.set_completion_tokens(usage.completion_tokens() + event.completion_tokens);
    timings.set_queue_seconds(std::min(timings.queue_seconds(), event.queue_seconds));
    timings.set_time_to_first_token_seconds(
        std::min(timings.time_to_first_token_seconds(), event.time_to_first_token_seconds)
    );
    timings.set_decode_seconds(std::max(timings.decode_seconds(), event.decode_seconds));
    timings.set_total_seconds(std::max(timings.total_seconds(), event.total_seconds));
  }
  const v1::CompletionEnd& best = finished.completions(0);
  finished.set_reason(best.reason());
  if (best.has_eos_token_id()) {
    finished.set_eos_token_id(best.eos_token_id());
  } else if (best.has_stop_token_id()) {
    finished.set_stop_token_id(best.stop_token_id());
  } else if (best.has_stop_string()) {
    finished.set_stop_string(best.stop_string());
  }
  return finished;
}

template StatusOr<std::unique_ptr<Generation>> Generation::Start<v1::GenerateRequest>(
    ServingState& state, GenerationCall call
);
template StatusOr<std::unique_ptr<Generation>> Generation::Start<v1::ScoreRequest>(
    ServingState& state, GenerationCall call
);

}  // namespace switchyard
