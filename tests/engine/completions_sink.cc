#include "tests/engine/completions_sink.h"

namespace switchyard {

void CompletionsSink::OnPromptToken(const TokenEvent& event) {
  Completion& completion = completions[event.completion];
  completion.prompt_tokens.push_back(event.id);
  completion.prompt_logprobs.push_back(event.logprob);
  completion.prompt_tops.emplace_back(event.top.begin(), event.top.end());
}

Verdict CompletionsSink::OnToken(const TokenEvent& event) {
  Completion& completion = completions[event.completion];
  completion.tokens.push_back(event.id);
  completion.logprobs.push_back(event.logprob);
  return Verdict::kContinue;
}

void CompletionsSink::OnFinished(const FinishEvent& event) {
  Completion& completion = completions[event.completion];
  completion.finished = event;
  ++completion.finished_calls;
}

}  // namespace switchyard
