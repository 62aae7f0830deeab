#include "server/metrics/serving_counters.h"

namespace switchyard {

const char* NameOf(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kStreams:
      return "streams";
    case RefusalReason::kQueuedRequests:
      return "queued_requests";
    case RefusalReason::kQueuedTokens:
      return "queued_tokens";
    case RefusalReason::kPeerStreams:
      return "peer_streams";
    case RefusalReason::kHostStreams:
      return "host_streams";
    case RefusalReason::kKeyLimit:
      return "key_limit";
    case RefusalReason::kUnauthenticated:
      return "unauthenticated";
    case RefusalReason::kInvalid:
      return "invalid";
    case RefusalReason::kUnavailable:
      break;
  }
  return "unavailable";
}

void ServingCounters::CountRefusal(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
      CountRefusal(RefusalReason::kInvalid);
      return;
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
      CountRefusal(RefusalReason::kUnauthenticated);
      return;
    case StatusCode::kUnavailable:
      CountRefusal(RefusalReason::kUnavailable);
      return;
    default:
      return;
  }
}

}  // namespace switchyard
