#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "server/loaded_model.h"
#include "server/open_streams.h"
#include "server/prompt_queue.h"
#include "server/request_registry.h"
#include "server/request_validation.h"
#include "server/serial_thread.h"
#include "server/serving_counters.h"
#include "server/serving_options.h"

namespace switchyard {

// What the services share: the model once it is there, whether new work is taken, and the threads
// that work between engine and gRPC. Thread-safe. Outlives every RPC.
class ServingState {
 public:
  explicit ServingState(const ServingOptions& options = ServingOptions());

  const ServingOptions& options() const { return options_; }

  // The model, for RPCs that do not generate. UNAVAILABLE while it loads, NOT_FOUND for another
  // `name`.
  StatusOr<LoadedModel*> Model(const std::string& name) const;
  // The model, for a new generation: also UNAVAILABLE when the server is stopping.
  StatusOr<LoadedModel*> ModelForNewWork(const std::string& name) const;

  // Requires: called once.
  void SetModel(std::unique_ptr<LoadedModel> model);
  // From now on no new generation begins.
  void StartDraining();
  bool IsDraining() const;
  // Null while loading.
  LoadedModel* ModelOrNull() const;

  // What a generation that finds no room is refused with: counted, and with the time after which it
  // may come again.
  Status Full(RefusalReason reason, const Status& status);
  // UNAVAILABLE when the server is stopping.
  Status CheckNotDraining() const;

  RequestRegistry& requests() { return requests_; }
  OpenStreams& streams() { return streams_; }
  PromptQueue& prompts() { return prompts_; }
  ServingCounters& counters() { return counters_; }
  // Starts gRPC writes for streams that have something to send, so that the engine's thread never
  // touches gRPC.
  SerialThread& pump() { return pump_; }
  // Waits for the engine on behalf of RPCs that need an answer between two steps.
  SerialThread& inquiries() { return inquiries_; }

 private:
  const ServingOptions options_;
  ServingCounters counters_;
  PromptQueue prompts_;  // before the model, whose engine holds places in it
  mutable Mutex mutex_;
  std::unique_ptr<LoadedModel> model_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  RequestRegistry requests_;
  OpenStreams streams_;
  // Last, so that their threads end before what they use goes.
  SerialThread pump_;
  SerialThread inquiries_;
};

}  // namespace switchyard
