#include "server/call/call_log.h"

#include "base/log.h"

namespace switchyard {
namespace {

// What a server that was told to log prompts writes of one, in lines of their own.
void LogText(const char* event, const CallRecord& call, const std::string& text) {
  if (!text.empty()) {
    LogInfo("event={} request_id={} text=\"{}\"", event, call.request_id, text);
  }
}

}  // namespace

void CallLog::OnAccepted(const CallRecord& call) {
  LogInfo(
      "event=accepted method={} request_id={} peer={} key={} trace_id={} span_id={} parent_id={} "
      "prompt_tokens={} max_tokens={}",
      call.method,
      call.request_id,
      call.peer,
      call.key_name,
      call.trace.trace_id,
      call.trace.span_id,
      call.trace.parent_id,
      call.prompt_tokens,
      call.max_tokens
  );
  LogText("prompt", call, call.prompt);
}

void CallLog::OnFinished(const CallRecord& call, const CallEnd& end) {
  LogInfo(
      "event=finished method={} request_id={} key={} trace_id={} code={} reason={} "
      "prompt_tokens={} cached_prompt_tokens={} completion_tokens={} queue_seconds={:.6f} "
      "time_to_first_token_seconds={:.6f} total_seconds={:.6f}",
      call.method,
      call.request_id,
      call.key_name,
      call.trace.trace_id,
      NameOf(end.status.code()),
      end.reason,
      call.prompt_tokens,
      end.cached_prompt_tokens,
      end.completion_tokens,
      end.queue_seconds,
      end.time_to_first_token_seconds,
      end.total_seconds
  );
  LogText("completion", call, end.completion);
}

void CallLog::OnRefused(const CallRecord& call, const Status& status) {
  const std::optional<int64_t> left_out = refusals_.Admit(now_());
  if (!left_out) {
    return;
  }
  if (*left_out > 0) {
    LogWarning("event=refusals_not_logged count={}", *left_out);
  }
  const auto waited = std::chrono::system_clock::now() - call.arrived_at;
  LogInfo(
      "event=refused method={} request_id={} peer={} key={} trace_id={} code={} "
      "total_seconds={:.6f} reason=\"{}\"",
      call.method,
      call.request_id,
      call.peer,
      call.key_name,
      call.trace.trace_id,
      NameOf(status.code()),
      std::chrono::duration<double>(waited).count(),
      MessageOf(status)
  );
}

}  // namespace switchyard
