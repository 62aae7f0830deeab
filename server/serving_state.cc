#include "server/serving_state.h"

#include <utility>

#include "base/check.h"
#include "server/call/retry_info.h"

namespace switchyard {

ServingState::ServingState(const ServingOptions& options)
    : options_(options),
      call_log_(options.now),
      prompts_(options.max_queued_tokens, options.now),
      engine_well_at_(options.now()),
      experts_(options.now),
      streams_(options.max_streams),
      peer_streams_(
          options.max_streams_per_peer,
          {.peer = "client", .streams = "generations", .flag = "--max-streams-per-peer"}
      ),
      host_streams_(
          options.max_streams_per_host,
          {.peer = "host", .streams = "calls", .flag = "--max-streams-per-host"}
      ) {
  if (options.log_requests) {
    call_observers_.push_back(&call_log_);
  }
  if (options.call_observer != nullptr) {
    call_observers_.push_back(options.call_observer.get());
  }
}

Status ServingState::Full(RefusalReason reason, const Status& status) {
  counters_.CountRefusal(reason);
  return WithRetryDelay(status, prompts_.RetryDelay());
}

StatusOr<LoadedModel*> ServingState::Model(const std::string& name) const {
  LoadedModel* const model = ModelOrNull();
  if (model == nullptr) {
    return Unavailable("the model is loading; try again when grpc.health.v1 says SERVING");
  }
  RETURN_IF_ERROR(CheckModelName(name, *model));
  return model;
}

StatusOr<LoadedModel*> ServingState::ModelForNewWork(const std::string& name) const {
  RETURN_IF_ERROR(CheckNotDraining());
  return Model(name);
}

Status ServingState::CheckNotDraining() const {
  return IsDraining()
             ? Unavailable("the server is stopping and takes no new requests; try another replica")
             : OkStatus();
}

void ServingState::SetModel(std::unique_ptr<LoadedModel> model) {
  const MutexLock lock(mutex_);
  CHECK(model_ == nullptr) << "a server serves one model";
  experts_.SetBaseline(model->expert_baseline);
  model_ = std::move(model);
}

void ServingState::SetEngineHealth(bool hangs, Clock::time_point well_at) {
  engine_hangs_ = hangs;
  engine_well_at_ = well_at;
}

Clock::duration ServingState::EngineQuietFor() const {
  return options_.now() - engine_well_at_.load();
}

void ServingState::StartDraining() {
  const MutexLock lock(mutex_);
  draining_ = true;
}

bool ServingState::IsDraining() const {
  const MutexLock lock(mutex_);
  return draining_;
}

LoadedModel* ServingState::ModelOrNull() const {
  const MutexLock lock(mutex_);
  return model_.get();
}

}  // namespace switchyard
