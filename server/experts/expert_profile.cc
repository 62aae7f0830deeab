#include "server/experts/expert_profile.h"

#include <algorithm>
#include <utility>

#include "server/validation/field_violation.h"
#include "server/validation/prompt_validation.h"
#include "server/validation/request_validation.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

constexpr int64_t kBytesPerCount = sizeof(int64_t);
constexpr int32_t kMaxMostTokens = 1024;

StatusOr<SpecialisationOptions> ReadOptions(const v1::ProfileExpertsRequest& request) {
  SpecialisationOptions options;
  if (request.min_occurrences() < 0) {
    return FieldViolation(
        "min_occurrences",
        Concat("is ", request.min_occurrences(), "; it must be at least 1; 0 stands for 10")
    );
  }
  if (request.most_tokens() < 0 || request.most_tokens() > kMaxMostTokens) {
    return FieldViolation(
        "most_tokens",
        Concat(
            "is ",
            request.most_tokens(),
            "; it must be in [1, ",
            kMaxMostTokens,
            "]; 0 stands for ",
            options.most_tokens
        )
    );
  }
  if (request.min_occurrences() > 0) {
    options.min_occurrences = request.min_occurrences();
  }
  if (request.most_tokens() > 0) {
    options.most_tokens = request.most_tokens();
  }
  return options;
}

StatusOr<std::vector<int32_t>> ReadTokens(const std::string& text, const LoadedModel& model) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes > model.limits.max_profile_text_bytes) {
    return FieldViolation(
        "text",
        Concat(
            "has ",
            bytes,
            " bytes; at most ",
            model.limits.max_profile_text_bytes,
            " are taken; send a part of it"
        )
    );
  }
  ASSIGN_OR_RETURN(
      std::vector<int32_t> tokens, ReadText("text", text, EncodeOptions{.add_bos = false}, model)
  );
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > model.limits.max_profile_tokens) {
    return FieldViolation(
        "text",
        Concat(
            "has ",
            count,
            " tokens; at most ",
            model.limits.max_profile_tokens,
            " are taken; shorten it by ",
            count - model.limits.max_profile_tokens
        )
    );
  }
  return tokens;
}

RouterKind KindNamed(const std::string& name) {
  for (const RouterKind kind :
       {RouterKind::kAttention,
        RouterKind::kAttentionQuery,
        RouterKind::kAttentionKey,
        RouterKind::kAttentionValue,
        RouterKind::kAttentionOutput}) {
    if (name == NameOf(kind)) {
      return kind;
    }
  }
  return RouterKind::kFeedForward;
}

// Before anything is routed, so that the engine's thread allocates nothing.
Status MakeRoom(const LoadedModel& model, TextRouting& counts) {
  int64_t experts = 0;
  for (const v1::RouterInfo& router : model.info.routers()) {
    experts += router.experts() > 1 ? int64_t{router.heads()} * router.experts() : 0;
  }
  const auto distinct = static_cast<int64_t>(counts.token_ids.size());
  if (distinct * experts * kBytesPerCount > model.limits.max_profile_count_bytes) {
    return FieldViolation(
        "text",
        Concat(
            "has ",
            distinct,
            " distinct tokens; to count what comes to each of this model's ",
            experts,
            " experts takes ",
            distinct * experts * kBytesPerCount,
            " bytes of at most ",
            model.limits.max_profile_count_bytes,
            "; send a shorter text"
        )
    );
  }
  for (const v1::RouterInfo& router : model.info.routers()) {
    if (router.experts() < 2) {
      continue;
    }
    RouterCounts& made = counts.routers.emplace_back();
    made.layer = router.layer();
    made.kind = KindNamed(router.kind());
    made.heads = router.heads();
    made.experts = router.experts();
    made.top_k = router.top_k();
    made.assignments.resize(static_cast<size_t>(distinct * made.heads * made.experts), 0);
  }
  return OkStatus();
}

// A token id of which the vocabulary knows nothing is shown as its number.
std::string PieceOf(const Tokenizer& tokenizer, int32_t token_id) {
  return token_id < tokenizer.VocabularySize() ? ReplaceInvalidUtf8(tokenizer.TokenPiece(token_id))
                                               : Concat("#", token_id);
}

void DescribeExpert(
    const ExpertSpeciality& expert, const Tokenizer& tokenizer, v1::ExpertSpeciality& described
) {
  described.set_head(static_cast<int32_t>(expert.head));
  described.set_expert(static_cast<int32_t>(expert.expert));
  described.set_assignments(expert.assignments);
  described.set_share(expert.share);
  for (const TokenAffinity& token : expert.tokens) {
    v1::TokenAffinity& affinity = *described.add_tokens();
    affinity.set_token_id(token.token_id);
    affinity.set_piece(PieceOf(tokenizer, token.token_id));
    affinity.set_routed(token.routed);
    affinity.set_occurrences(token.occurrences);
    affinity.set_information_bits(token.information_bits);
  }
}

}  // namespace

StatusOr<ProfiledText> ReadProfileRequest(
    const v1::ProfileExpertsRequest& request, const LoadedModel& model
) {
  ProfiledText text;
  ASSIGN_OR_RETURN(text.options, ReadOptions(request));
  ASSIGN_OR_RETURN(text.tokens, ReadTokens(request.text(), model));
  text.places = CountTokens(text.tokens, text.counts);
  if (model.tokenizer->AddsBos()) {
    text.lead = model.tokenizer->BosId();
  }
  // Of a KV cache that is smaller than the context, what it holds.
  int64_t longest = model.context_tokens;
  if (model.info.kv_tokens_total() > 0) {
    longest = std::min(longest, model.info.kv_tokens_total());
  }
  text.sequence_tokens = static_cast<int32_t>(longest) - (text.lead ? 1 : 0);
  if (text.sequence_tokens < 1) {
    return FailedPrecondition("a context of ", longest, " tokens leaves no room for a text");
  }
  RETURN_IF_ERROR(MakeRoom(model, text.counts));
  return text;
}

v1::ProfileExpertsResponse DescribeProfile(
    const TextRouting& counts,
    const SpecialisationOptions& options,
    const Tokenizer& tokenizer,
    const ProfileSource& source
) {
  v1::ProfileExpertsResponse response;
  response.set_model(source.model);
  response.set_tokens(counts.tokens);
  response.set_distinct_tokens(static_cast<int64_t>(counts.token_ids.size()));
  response.set_sequence_tokens(static_cast<int32_t>(source.sequence_tokens));
  response.set_device(source.device);
  response.set_dtype(source.dtype);
  response.set_min_occurrences(static_cast<int32_t>(options.min_occurrences));
  for (const RouterCounts& router : counts.routers) {
    v1::RouterSpecialities& described = *response.add_routers();
    described.set_layer(static_cast<int32_t>(router.layer));
    described.set_kind(NameOf(router.kind));
    described.set_heads(static_cast<int32_t>(router.heads));
    described.set_experts(static_cast<int32_t>(router.experts));
    described.set_top_k(static_cast<int32_t>(router.top_k));
    for (const ExpertSpeciality& expert : SpecialitiesOf(counts, router, options)) {
      DescribeExpert(expert, tokenizer, *described.add_specialities());
    }
  }
  return response;
}

}  // namespace switchyard
