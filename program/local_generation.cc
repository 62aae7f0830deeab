#include "program/local_generation.h"

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "server/generation/generation.h"
#include "server/generation/message_bytes.h"

namespace switchyard {
namespace {

// Lets one thread sleep until another has called Wake. Wakes that come before a wait are remembered
// as one.
class Alarm {
 public:
  void Wake() {
    const std::lock_guard<std::mutex> lock(mutex_);
    rung_ = true;
    changed_.notify_one();
  }

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

}  // namespace

StatusOr<v1::Finished> GenerateLocally(
    ServingState& state,
    const v1::GenerateRequest& request,
    const std::function<void(const TokenStream::Part& part)>& on_part
) {
  grpc::ByteBuffer bytes;
  RETURN_IF_ERROR(SerializeMessage(request, bytes));
  IncomingCall from_here(state);
  // Shared with the engine's thread, which may still be inside Wake when this function returns.
  const auto alarm = std::make_shared<Alarm>();
  GenerationCall call{.call = from_here, .request = bytes, .wake = [alarm] { alarm->Wake(); }};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Generation> generation,
      Generation::Start<v1::GenerateRequest>(state, std::move(call))
  );
  TokenStream::Taken taken;
  while (taken.ends.empty()) {
    alarm->Wait();
    taken = generation->Take();
    std::ranges::for_each(taken.parts, on_part);
  }
  GenerationEnd end = generation->End(taken);
  RETURN_IF_ERROR(end.status);
  return std::move(end.finished);
}

}  // namespace switchyard
