#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/request.h"

namespace switchyard {

// What a request must fit into.
struct RequestBounds {
  int64_t vocabulary_size = 0;
  int64_t context_tokens = 0;
  int32_t max_running = 0;  // at once
  int32_t total_blocks = 0;
  int32_t block_tokens = 0;
};

// INVALID_ARGUMENT when the engine could never run the request: an empty prompt, one that fills the
// context, one that with max_tokens needs more KV blocks than there are, or a token id out of the
// vocabulary anywhere. The layers above check all fields and say more; this guards the memory
// below. Safe from any thread.
Status CheckRequest(const GenerationRequest& request, const RequestBounds& bounds);

// RESOURCE_EXHAUSTED when so many requests wait that there is no place for one more.
Status CheckQueue(int64_t waiting_requests, int64_t max_queued_requests);

}  // namespace switchyard
