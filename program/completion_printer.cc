#include "program/completion_printer.h"

#include <google/protobuf/util/json_util.h>

#include <iomanip>
#include <iostream>
#include <sstream>

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

std::string ReasonOf(const v1::Finished& finished) {
  switch (finished.matched_stop_case()) {
    case v1::Finished::kStopString:
      return Concat("stop string ", Quoted(finished.stop_string()));
    case v1::Finished::kStopTokenId:
      return Concat("stop token ", finished.stop_token_id());
    case v1::Finished::kEosTokenId:
      return Concat("end-of-sequence token ", finished.eos_token_id());
    case v1::Finished::MATCHED_STOP_NOT_SET:
      break;
  }
  return "the limit of tokens";
}

}  // namespace

void CompletionPrinter::OnDelta(const v1::Delta& delta) {
  switch (format_) {
    case CompletionFormat::kJson: {
      v1::GenerateResponse event;
      *event.mutable_delta() = delta;
      PrintJson(event);
      return;
    }
    case CompletionFormat::kIds:
      for (const int32_t id : delta.token_ids()) {
        std::cout << (has_text_ ? " " : "") << id;
        has_text_ = true;
      }
      break;
    case CompletionFormat::kText:
      std::cout << delta.text();
      has_text_ = has_text_ || !delta.text().empty();
      logprobs_.insert(logprobs_.end(), delta.logprobs().begin(), delta.logprobs().end());
      break;
  }
  std::cout << std::flush;
}

void CompletionPrinter::OnFinished(const v1::Finished& finished) {
  if (format_ == CompletionFormat::kJson) {
    v1::GenerateResponse event;
    *event.mutable_finished() = finished;
    PrintJson(event);
    return;
  }
  std::cout << "\n";
  if (!logprobs_.empty()) {
    std::cout << "\n" << LogprobTable(logprobs_);
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
