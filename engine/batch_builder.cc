#include "engine/batch_builder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

// Sections start on a cache line: 16 int32s.
constexpr int64_t kSectionAlignment = 16;
constexpr int64_t kBytesPerInt = sizeof(int32_t);

Phase PhaseOf(const Sequence& sequence, int32_t position) {
  if (sequence.is_warm_up) {
    return Phase::kWarmUp;
  }
  if (position < sequence.most_computed_tokens) {
    return Phase::kRecompute;
  }
  return position < sequence.prompt_tokens ? Phase::kPrefill : Phase::kDecode;
}

}  // namespace

StatusOr<BatchBuilder> BatchBuilder::Create(Ops& ops, const BatchLimits& limits) {
  ASSIGN_OR_RETURN(auto device, ops.Allocate(CapacityOf(limits) * kBytesPerInt));
  return BatchBuilder(ops, limits, std::move(device));
}

BatchBuilder::BatchBuilder(Ops& ops, const BatchLimits& limits, std::unique_ptr<Buffer> device)
    : ops_(&ops),
      limits_(limits),
      host_(static_cast<size_t>(CapacityOf(limits)), 0),
      device_(std::move(device)) {}

BatchBuilder::Sections BatchBuilder::Layout(
    int64_t tokens, int64_t sequences, int64_t blocks, int64_t logit_rows
) {
  Sections sections;
  const auto place = [&sections](int64_t size) {
    const Section section{.begin = sections.total, .size = size};
    sections.total += (size + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
    return section;
  };
  sections.token_ids = place(tokens);
  sections.positions = place(tokens);
  sections.phases = place(tokens);
  sections.slots = place(tokens);
  sections.query_offsets = place(sequences + 1);
  sections.kv_lengths = place(sequences);
  sections.block_tables = place(sequences * blocks);
  sections.logit_rows = place(logit_rows);
  return sections;
}

int64_t BatchBuilder::CapacityOf(const BatchLimits& limits) {
  return Layout(
             limits.max_step_tokens,
             limits.max_sequences,
             limits.max_blocks_per_sequence,
             limits.max_sequences
  )
      .total;
}

TensorView BatchBuilder::Device(const Section& section) const {
  return TensorView(
      static_cast<int32_t*>(device_->data()) + section.begin, DType::kI32, {section.size}
  );
}

StepBatch BatchBuilder::Build(std::span<const SequenceSlice> slices) {
  const auto sequences = static_cast<int64_t>(slices.size());
  int64_t tokens = 0;
  int64_t blocks = 0;
  int64_t logit_rows = 0;
  for (const SequenceSlice& slice : slices) {
    tokens += slice.planned.tokens;
    blocks = std::max(blocks, static_cast<int64_t>(slice.sequence->blocks.size()));
    logit_rows += slice.planned.samples ? 1 : 0;
  }
  CHECK(
      tokens <= limits_.max_step_tokens && sequences <= limits_.max_sequences &&
      blocks <= limits_.max_blocks_per_sequence
  ) << "tokens="
    << tokens << " sequences=" << sequences << " blocks=" << blocks;
  const Sections sections = Layout(tokens, sequences, blocks, logit_rows);

  std::fill_n(Host(sections.block_tables), sections.block_tables.size, -1);
  Host(sections.query_offsets)[0] = 0;
  int64_t row = 0;
  int64_t logit_row = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const SequenceSlice& slice = slices[static_cast<size_t>(s)];
    WriteTokens(slice, sections, row);
    row += slice.planned.tokens;
    Host(sections.query_offsets)[s + 1] = static_cast<int32_t>(row);
    Host(sections.kv_lengths)[s] = slice.planned.first_token + slice.planned.tokens;
    std::transform(
        slice.sequence->blocks.begin(),
        slice.sequence->blocks.end(),
        Host(sections.block_tables) + s * blocks,
        [](BlockId block) { return static_cast<int32_t>(block); }
    );
    if (slice.planned.samples) {
      Host(sections.logit_rows)[logit_row++] = static_cast<int32_t>(row - 1);
    }
  }
  ops_->Upload(host_.data(), device_->data(), sections.total * kBytesPerInt);

  return {
      .tokens = tokens,
      .sequences = sequences,
      .token_ids = Device(sections.token_ids),
      .positions = Device(sections.positions),
      .phases = Device(sections.phases),
      .slots = Device(sections.slots),
      .query_offsets = Device(sections.query_offsets),
      .kv_lengths = Device(sections.kv_lengths),
      .block_tables = Device(sections.block_tables).Reshaped({sequences, blocks}),
      .logit_rows = Device(sections.logit_rows)};
}

void BatchBuilder::WriteTokens(
    const SequenceSlice& slice, const Sections& sections, int64_t first_row
) {
  const Sequence& sequence = *slice.sequence;
  const int32_t end = slice.planned.first_token + slice.planned.tokens;
  CHECK(
      end <= sequence.KnownTokens() &&
      BlocksFor(end, limits_.block_tokens) <= static_cast<int32_t>(sequence.blocks.size())
  ) << "end="
    << end << " known=" << sequence.KnownTokens() << " blocks=" << sequence.blocks.size();
  int64_t row = first_row;
  for (int32_t position = slice.planned.first_token; position < end; ++position, ++row) {
    const auto block = static_cast<size_t>(position / limits_.block_tokens);
    const int32_t offset = position % limits_.block_tokens;
    Host(sections.token_ids)[row] = sequence.tokens[static_cast<size_t>(position)];
    Host(sections.positions)[row] = position;
    Host(sections.phases)[row] = static_cast<int32_t>(PhaseOf(sequence, position));
    Host(sections.slots)[row] =
        static_cast<int32_t>(sequence.blocks[block]) * limits_.block_tokens + offset;
  }
}

}  // namespace switchyard
