#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "base/status.h"
#include "clients/cpp/client.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// What a AsyncGeneration tells, one call at a time, from a thread of gRPC that must not be blocked.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;

  virtual void OnEvent(const v1::GenerateResponse& event) = 0;
  // The last call. The stream may be destroyed in it. OK also when no `finished` event came.
  virtual void OnDone(const Status& status) = 0;
};

// One Generate RPC that needs no thread of its own: hundreds of them share the few threads of gRPC.
class AsyncGeneration final : private grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  // The observer must outlive this object, and this object must live until OnDone.
  explicit AsyncGeneration(GenerationObserver& observer) : observer_(observer) {}
  AsyncGeneration(const AsyncGeneration&) = delete;
  AsyncGeneration& operator=(const AsyncGeneration&) = delete;

  // Once. OnEvent may come before this returns. Absent `time_limit`: no deadline.
  void Start(
      const Client& client,
      const v1::GenerateRequest& request,
      std::optional<std::chrono::milliseconds> time_limit
  );

  // Ends the RPC soon, at once when it is not started yet; OnDone still comes. From any thread.
  void Cancel() { context_.TryCancel(); }

  // In OnEvent only: nothing is read after it until Resume, and OnDone waits for that too.
  void Pause();
  // Once after each Pause, from any thread.
  void Resume() { ReadWhenBothAreDone(); }

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void ReadWhenBothAreDone();

  GenerationObserver& observer_;
  std::string address_;
  grpc::ClientContext context_;
  v1::GenerateResponse event_;
  bool is_pausing_ = false;  // within OnReadDone only
  // Of the return of the OnEvent that paused, and Resume: the second one reads on.
  std::atomic<int> ends_of_pause_{0};
};

}  // namespace switchyard
