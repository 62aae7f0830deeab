#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <memory>
#include <string>

#include "server/access/api_key_file.h"
#include "server/call/trace_context.h"
#include "server/experts/expert_profile.h"
#include "server/experts/expert_query.h"
#include "server/experts/expert_report.h"
#include "server/generation/message_bytes.h"
#include "server/http/http_pages.h"
#include "server/http/page_server.h"
#include "server/validation/request_validation.h"
#include "tests/fuzz/input_files.h"
#include "tests/server/fake_tokenizer.h"
#include "tests/server/two_routers.h"

// What strangers send, up to where the engine takes it: requests in binary and as JSON, and the
// texts of headers, URLs and key files. The first byte says which. Each must give a status.

namespace switchyard {
namespace {

LoadedModel MakeModel() {
  LoadedModel model;
  model.name = "fake";
  model.vocabulary_size = 300;
  model.context_tokens = 64;
  model.defaults.max_tokens = 16;
  model.eos_token_ids = {FakeTokenizer::kEos};
  v1::RouterInfo& router = *model.info.add_routers();
  router.set_kind("attn");
  router.set_heads(1);
  router.set_experts(3);
  router.set_top_k(1);
  model.tokenizer = std::make_unique<FakeTokenizer>(std::vector<std::string>{"ab", "\xff"});
  return model;
}

const LoadedModel& Model() {
  static const LoadedModel model = MakeModel();
  return model;
}

// What the engine relies on.
void ExpectSound(const ValidatedRequest& valid) {
  const GenerationRequest& request = valid.generation;
  Expect(!request.prompt.empty(), "an empty prompt was taken");
  Expect(request.prompt.size() < 64, "a prompt was taken that does not fit the context");
  for (const int32_t id : request.prompt) {
    Expect(0 <= id && id < 300, Concat("token ", id, " was taken"));
  }
  Expect(request.completions >= 1, Concat(request.completions, " completions were taken"));
  Expect(
      !request.continuations.empty() || request.stopping.max_tokens >= 1,
      Concat("max_tokens ", request.stopping.max_tokens, " was taken")
  );
}

void Judge(const v1::GenerateRequest& request) {
  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, Model());
  if (valid.ok()) {
    ExpectSound(*valid);
  }
}

void Judge(const v1::ScoreRequest& request) {
  const StatusOr<ValidatedRequest> valid = ValidateRequest(request, Model());
  if (valid.ok()) {
    ExpectSound(*valid);
  }
}

void Judge(const v1::GetExpertStatsRequest& request) {
  static_cast<void>(SelectExpertStats(TwoRouters(), request));
}

void Judge(const v1::ProfileExpertsRequest& request) {
  const StatusOr<ProfiledText> text = ReadProfileRequest(request, Model());
  if (!text.ok()) {
    return;
  }
  Expect(!text->tokens.empty(), "an empty text was taken");
  Expect(text->places.size() == text->tokens.size(), "tokens have no place");
  Expect(
      text->counts.routers[0].assignments.size() == 3 * text->counts.token_ids.size(),
      "there is no room for the counts"
  );
}

template <typename Request>
void TryBinary(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  Request request;
  if (ParseMessage(grpc::ByteBuffer(&slice, 1), request).ok()) {
    Judge(request);
  }
}

template <typename Request>
void TryJson(std::string_view text) {
  Request request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), &request
  );
  if (status.ok()) {
    Judge(request);
  }
}

// "a=b&a=c", as the HTTP library takes a query apart.
void TryQuery(std::string_view text) {
  QueryParameters parameters;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t equals = std::min(word.find('='), word.size());
    parameters.emplace(word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
  }
  const StatusOr<v1::GetExpertStatsRequest> request = ParseExpertQuery(parameters);
  if (request.ok()) {
    Judge(*request);
  }
}

// A server whose model is loading: its pages need no engine.
void TryHttp(std::string_view text) {
  static ServingState state;
  static PageServer* const pages = [] {
    auto* const made = new PageServer();
    AddPages(state, *made);
    return made;
  }();
  const std::string answer = pages->Answer(std::string(text) + "\r\n\r\n", "127.0.0.1");
  Expect(answer.starts_with("HTTP/1."), "an answer that is no HTTP: " + answer);
}

void TryTraceparent(std::string_view text) {
  if (const std::optional<TraceContext> trace = ContinueTrace(text)) {
    Expect(ContinueTrace(Traceparent(*trace)).has_value(), "a trace that cannot be continued");
  }
}

void TryOne(uint8_t which, std::string_view text) {
  switch (which % 12) {
    case 0:
      return TryBinary<v1::GenerateRequest>(text);
    case 1:
      return TryBinary<v1::ScoreRequest>(text);
    case 2:
      return TryBinary<v1::GetExpertStatsRequest>(text);
    case 3:
      return TryJson<v1::GenerateRequest>(text);
    case 4:
      return TryJson<v1::ScoreRequest>(text);
    case 5:
      return TryJson<v1::GetExpertStatsRequest>(text);
    case 6:
      return TryQuery(text);
    case 7:
      return TryHttp(text);
    case 8:
      return TryTraceparent(text);
    case 9:
      static_cast<void>(ParseApiKeys(text, "keys.json"));
      return;
    case 10:
      return TryBinary<v1::ProfileExpertsRequest>(text);
    default:
      return TryJson<v1::ProfileExpertsRequest>(text);
  }
}

}  // namespace
}  // namespace switchyard

// The library would write a line for each text that is no message.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  if (bytes > 0) {
    const std::string_view text(reinterpret_cast<const char*>(data), bytes);
    switchyard::TryOne(data[0], text.substr(1));
  }
  return 0;
}
