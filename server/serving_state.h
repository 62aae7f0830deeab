#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/call/call_log.h"
#include "server/call/peer_streams.h"
#include "server/experts/expert_monitor.h"
#include "server/generation/open_streams.h"
#include "server/generation/prompt_queue.h"
#include "server/generation/request_registry.h"
#include "server/loaded_model.h"
#include "server/metrics/request_metrics.h"
#include "server/metrics/serving_counters.h"
#include "server/serial_thread.h"
#include "server/serving_options.h"
#include "server/validation/request_validation.h"

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

  // What the watchdog last saw: whether the engine hangs, and when it last was well.
  void SetEngineHealth(bool hangs, Clock::time_point well_at);
  bool EngineHangs() const { return engine_hangs_; }
  Clock::duration EngineQuietFor() const;
  // Whether there is a model, an engine that moves and no end in sight.
  bool IsServing() const { return ModelOrNull() != nullptr && !IsDraining() && !engine_hangs_; }

  // What a generation that finds no room is refused with: counted, and with the time after which it
  // may come again.
  Status Full(RefusalReason reason, const Status& status);
  // UNAVAILABLE when the server is stopping.
  Status CheckNotDraining() const;

  // The log, unless it is off, and whom the options name.
  const std::vector<CallObserver*>& call_observers() const { return call_observers_; }

  RequestRegistry& requests() { return requests_; }
  OpenStreams& streams() { return streams_; }
  PeerStreams& peer_streams() { return peer_streams_; }
  PeerStreams& host_streams() { return host_streams_; }
  PromptQueue& prompts() { return prompts_; }
  ServingCounters& counters() { return counters_; }
  RequestMetrics& request_metrics() { return request_metrics_; }
  ExpertMonitor& experts() { return experts_; }
  // Starts gRPC writes for streams that have something to send, so that the engine's thread never
  // touches gRPC.
  SerialThread& pump() { return pump_; }
  // Waits for the engine on behalf of RPCs that need an answer between two steps.
  SerialThread& inquiries() { return inquiries_; }

 private:
  const ServingOptions options_;
  CallLog call_log_;
  std::vector<CallObserver*> call_observers_;
  ServingCounters counters_;
  RequestMetrics request_metrics_;  // before the model, whose engine tells it of tokens
  PromptQueue prompts_;             // before the model, whose engine holds places in it
  mutable Mutex mutex_;
  std::unique_ptr<LoadedModel> model_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> engine_hangs_ = false;
  std::atomic<Clock::time_point> engine_well_at_;
  ExpertMonitor experts_;
  RequestRegistry requests_;
  OpenStreams streams_;
  PeerStreams peer_streams_;  // generations of an API key, or of a host without keys
  PeerStreams host_streams_;  // calls of a host
  // Last, so that their threads end before what they use goes.
  SerialThread pump_;
  SerialThread inquiries_;
};

}  // namespace switchyard
