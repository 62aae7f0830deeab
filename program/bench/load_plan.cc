#include "program/bench/load_plan.h"

#include <algorithm>
#include <utility>

namespace switchyard {
namespace {

using Purpose = SeededRandom::Purpose;

// Of the cancelled requests, how many end before their first token.
constexpr double kEarlyCancelShare = 0.25;

Status CheckShares(const LoadShape& shape) {
  const double disturbed = shape.cancel_share + shape.deadline_share + shape.stall_share;
  if (disturbed > 1) {
    return InvalidArgument(
        "--cancel-share, --deadline-share and --stall-share add up to ",
        disturbed,
        "; a request is at most one of them, so lower them to 1 together"
    );
  }
  return OkStatus();
}

Status CheckTextPrompts(const LoadShape& shape, const v1::GetModelInfoResponse& model) {
  if (shape.shared_prefix_tokens > 0) {
    return InvalidArgument(
        "--shared-prefix-tokens ",
        shape.shared_prefix_tokens,
        " is for drawn prompts; with --prompts, write the common beginning into the file"
    );
  }
  if (!model.has_tokenizer()) {
    return InvalidArgument(
        "--prompts needs a model folder with a tokenizer, which ",
        model.model(),
        " has not; leave it out to send drawn token ids"
    );
  }
  return OkStatus();
}

}  // namespace

Status CheckShape(const LoadShape& shape, const v1::GetModelInfoResponse& model) {
  RETURN_IF_ERROR(CheckShares(shape));
  if (model.vocabulary_size() < 1) {
    return DataLoss("GetModelInfo says a vocabulary of ", model.vocabulary_size(), " tokens");
  }
  if (!shape.text_prompts.empty()) {
    return CheckTextPrompts(shape, model);
  }
  const int64_t longest = int64_t{shape.shared_prefix_tokens} + shape.prompt_tokens.MaxTokens() +
                          shape.output_tokens.MaxTokens();
  if (longest > model.context_tokens()) {
    const std::string prefix =
        shape.shared_prefix_tokens == 0
            ? ""
            : Concat("--shared-prefix-tokens ", shape.shared_prefix_tokens, ", ");
    return InvalidArgument(
        prefix,
        "--prompt-tokens ",
        shape.prompt_tokens.ToString(),
        " and --output-tokens ",
        shape.output_tokens.ToString(),
        " reach ",
        longest,
        " tokens; the context of ",
        model.model(),
        " is ",
        model.context_tokens(),
        "; lower them by ",
        longest - model.context_tokens()
    );
  }
  return OkStatus();
}

LoadPlan::LoadPlan(LoadShape shape, int32_t vocabulary_size)
    : shape_(std::move(shape)), vocabulary_size_(vocabulary_size) {
  SeededRandom random(shape_.seed, Purpose::kPrefix, 0);
  for (int32_t i = 0; i < shape_.shared_prefix_tokens; ++i) {
    shared_prefix_.push_back(
        static_cast<int32_t>(random.NextBelow(static_cast<uint64_t>(vocabulary_size_)))
    );
  }
}

PlannedRequest LoadPlan::At(uint64_t index) const {
  // Every draw is made, used or not, so that one share does not change what another one picks.
  SeededRandom random(shape_.seed, Purpose::kShape, index);
  const int32_t prompt_tokens = shape_.prompt_tokens.Draw(random);
  int32_t output_tokens = shape_.output_tokens.Draw(random);
  const bool has_prefix = random.NextUnit() < shape_.shared_prefix_share;
  const double disturbance = random.NextUnit();
  const bool is_early = random.NextUnit() < kEarlyCancelShare;
  const uint64_t moment = random.Next();

  PlannedRequest planned;
  planned.index = index;
  planned.early = random.NextUnit();
  planned.verify =
      SeededRandom(shape_.seed, Purpose::kVerify, index).NextUnit() < shape_.verify_share;
  if (!shape_.text_prompts.empty()) {
    const TextPrompt& prompt = shape_.text_prompts[index % shape_.text_prompts.size()];
    output_tokens = prompt.max_tokens.value_or(output_tokens);
  }
  const double until_deadline = shape_.cancel_share + shape_.deadline_share;
  const auto any_token = static_cast<int32_t>(moment % static_cast<uint64_t>(output_tokens));
  if (disturbance < shape_.cancel_share) {
    planned.disturbance = Disturbance::kCancel;
    planned.disturbed_after_tokens = is_early ? 0 : any_token;
  } else if (disturbance < until_deadline) {
    planned.disturbance = Disturbance::kDeadline;
  } else if (disturbance < until_deadline + shape_.stall_share) {
    planned.disturbance = Disturbance::kStall;
    planned.disturbed_after_tokens = any_token;
  }
  SetPrompt(index, prompt_tokens, has_prefix, planned.request);
  planned.request.mutable_stopping()->set_max_tokens(output_tokens);
  planned.request.mutable_stopping()->set_ignore_eos(true);
  planned.request.mutable_sampling()->set_temperature(shape_.temperature);
  // With a seed of its own a request can be repeated at any temperature.
  planned.request.mutable_sampling()->set_seed(random.Next());
  return planned;
}

void LoadPlan::SetPrompt(
    uint64_t index, int32_t prompt_tokens, bool has_prefix, v1::GenerateRequest& request
) const {
  if (!shape_.text_prompts.empty()) {
    request.set_prompt_text(shape_.text_prompts[index % shape_.text_prompts.size()].text);
    return;
  }
  auto& ids = *request.mutable_prompt_tokens()->mutable_ids();
  ids.Reserve(shape_.shared_prefix_tokens + prompt_tokens);
  if (has_prefix) {
    ids.Add(shared_prefix_.begin(), shared_prefix_.end());
  }
  SeededRandom random(shape_.seed, Purpose::kPrompt, index);
  for (int32_t i = 0; i < prompt_tokens; ++i) {
    ids.Add(static_cast<int32_t>(random.NextBelow(static_cast<uint64_t>(vocabulary_size_))));
  }
}

double LoadPlan::ArrivalGapSeconds(uint64_t index, double rate_per_second) const {
  return SeededRandom(shape_.seed, Purpose::kArrival, index).NextExponential() / rate_per_second;
}

}  // namespace switchyard
