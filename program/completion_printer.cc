#include "program/completion_printer.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <utility>

#include "program/text_table.h"

namespace switchyard {
namespace {

void PrintJson(const v1::GenerateResponse& event) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string line;
  if (google::protobuf::util::MessageToJsonString(event, &line, options).ok()) {
    std::cout << line << std::endl;
  }
}

// Bytes outside printable ASCII as \xNN: a token may be a part of a character.
std::string Quoted(const std::string& bytes) {
  std::ostringstream text;
  text << '"';
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x20 || code > 0x7E || byte == '"' || byte == '\\') {
      text << "\\x" << std::hex << std::setw(2) << std::setfill('0') << int{code};
    } else {
      text << byte;
    }
  }
  text << '"';
  return std::move(text).str();
}

std::string Fixed(double value, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value;
  return std::move(text).str();
}

std::string LogprobTable(const std::vector<v1::TokenLogprobs>& logprobs) {
  TextTable table({"token", "id", "logprob", "likeliest"});
  for (const v1::TokenLogprobs& token : logprobs) {
    std::string likeliest;
    for (const v1::TokenLogprob& other : token.top()) {
      likeliest += Concat(
          likeliest.empty() ? "" : " ", Quoted(other.token()), "=", Fixed(other.logprob(), 3)
      );
    }
    table.AddRow(
        {Quoted(token.chosen().token()),
         std::to_string(token.chosen().token_id()),
         Fixed(token.chosen().logprob(), 3),
         likeliest}
    );
  }
  return table.ToString();
}

// Of a Finished or a CompletionEnd.
template <typename End>
std::string ReasonOf(const End& end) {
  switch (end.matched_stop_case()) {
    case End::kStopString:
      return Concat("stop string ", Quoted(end.stop_string()));
    case End::kStopTokenId:
      return Concat("stop token ", end.stop_token_id());
    case End::kEosTokenId:
      return Concat("end-of-sequence token ", end.eos_token_id());
    case End::MATCHED_STOP_NOT_SET:
      break;
  }
  return "the limit of tokens";
}

// "[2] 17 tokens, log-probability -31.250, ended by the limit of tokens"
std::string HeaderOf(int number, const v1::CompletionEnd& end) {
  return Concat(
      "[",
      number,
      "] ",
      end.completion_tokens(),
      " tokens, log-probability ",
      Fixed(end.logprob_sum(), 3),
      ", ended by ",
      ReasonOf(end)
  );
}

}  // namespace

void CompletionPrinter::OnPromptLogprobs(const v1::PromptLogprobs& logprobs) {
  if (format_ == CompletionFormat::kJson) {
    v1::GenerateResponse event;
    *event.mutable_prompt_logprobs() = logprobs;
    PrintJson(event);
    return;
  }
  prompt_logprobs_.insert(
      prompt_logprobs_.end(), logprobs.tokens().begin(), logprobs.tokens().end()
  );
}

void CompletionPrinter::OnDelta(const v1::Delta& delta) {
  if (format_ == CompletionFormat::kJson) {
    v1::GenerateResponse event;
    *event.mutable_delta() = delta;
    PrintJson(event);
    return;
  }
  const auto index = static_cast<size_t>(std::max(0, delta.completion()));
  completions_.resize(std::max(completions_.size(), index + 1));
  Completion& completion = completions_[index];
  if (format_ == CompletionFormat::kText) {
    completion.output += delta.text();
    completion.logprobs.insert(
        completion.logprobs.end(), delta.logprobs().begin(), delta.logprobs().end()
    );
  } else {
    for (const int32_t id : delta.token_ids()) {
      completion.output += Concat(completion.has_output ? " " : "", id);
      completion.has_output = true;
    }
  }
  if (!has_several_) {
    std::cout << std::exchange(completion.output, "") << std::flush;
  }
}

void CompletionPrinter::OnFinished(const v1::Finished& finished) {
  if (format_ == CompletionFormat::kJson) {
    v1::GenerateResponse event;
    *event.mutable_finished() = finished;
    PrintJson(event);
    return;
  }
  completions_.resize(std::max(completions_.size(), size_t{1}));
  for (size_t index = 0; index < completions_.size(); ++index) {
    const auto number = static_cast<int>(index);
    if (format_ == CompletionFormat::kText && has_several_ &&
        number < finished.completions_size()) {
      std::cout << (number > 0 ? "\n" : "") << HeaderOf(number, finished.completions(number))
                << "\n";
    }
    std::cout << completions_[index].output << "\n";
    if (!completions_[index].logprobs.empty()) {
      std::cout << "\n" << LogprobTable(completions_[index].logprobs);
    }
  }
  if (!prompt_logprobs_.empty() && format_ == CompletionFormat::kText) {
    std::cout << "\nthe prompt, from its second token on\n" << LogprobTable(prompt_logprobs_);
  }
  std::cout << std::flush;
}

std::string DescribeCompletion(const v1::Finished& finished) {
  const v1::Usage& usage = finished.usage();
  const v1::Timings& timings = finished.timings();
  std::string text = Concat(usage.completion_tokens(), " tokens");
  // The decode time runs from the first token to the last: one interval fewer than tokens.
  if (usage.completion_tokens() > 1 && timings.decode_seconds() > 0) {
    const double tokens_per_second = (usage.completion_tokens() - 1) / timings.decode_seconds();
    text += Concat(" at ", Fixed(tokens_per_second, 1), " tokens/s");
  }
  return text + Concat(
                    ", first token after ",
                    Fixed(1000 * timings.time_to_first_token_seconds(), 1),
                    " ms, ",
                    usage.prompt_tokens(),
                    " prompt tokens, ended by ",
                    ReasonOf(finished)
                );
}

}  // namespace switchyard
