#include "engine/batch_builder.h"

#include <algorithm>
#include <bit>
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

BatchBuilder::Sections BatchBuilder::Layout(const Sizes& sizes) {
  Sections sections;
  const auto place = [&sections](int64_t size) {
    const Section section{.begin = sections.total, .size = size};
    sections.total += (size + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
    return section;
  };
  sections.token_ids = place(sizes.tokens);
  sections.positions = place(sizes.tokens);
  sections.phases = place(sizes.tokens);
  sections.slots = place(sizes.tokens);
  sections.query_offsets = place(sizes.sequences + 1);
  sections.kv_lengths = place(sizes.sequences);
  sections.block_tables = place(sizes.sequences * sizes.blocks);
  sections.logit_rows = place(sizes.logit_rows);
  sections.scored_rows = place(sizes.scored_rows);
  return sections;
}

int64_t BatchBuilder::CapacityOf(const BatchLimits& limits) {
  return Layout({.tokens = limits.max_step_tokens,
                 .sequences = limits.max_sequences,
                 .blocks = limits.max_blocks_per_sequence,
                 .logit_rows = limits.max_sequences,
                 .scored_rows = limits.max_step_tokens})
             .total +
         (limits.selection_bytes + kBytesPerInt - 1) / kBytesPerInt;
}

BatchBuilder::Sizes BatchBuilder::SizesOf(std::span<const SequenceSlice> slices) const {
  Sizes sizes{.sequences = static_cast<int64_t>(slices.size())};
  for (const SequenceSlice& slice : slices) {
    sizes.tokens += slice.planned.tokens;
    sizes.blocks = std::max(sizes.blocks, static_cast<int64_t>(slice.sequence->blocks.size()));
    sizes.logit_rows += slice.planned.samples ? 1 : 0;
    const auto [first, end] = slice.ScoredPositions();
    sizes.scored_rows += end - first;
  }
  if (limits_.rounds_tables && sizes.tokens == sizes.sequences) {
    const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sizes.blocks)));
    sizes.blocks = std::min<int64_t>(rounded, limits_.max_blocks_per_sequence);
  }
  return sizes;
}

TensorView BatchBuilder::Device(const Section& section) const {
  return TensorView(
      static_cast<int32_t*>(device_->data()) + section.begin, DType::kI32, {section.size}
  );
}

StepBatch BatchBuilder::Build(
    std::span<const SequenceSlice> slices, const SelectTokensArgs* selection
) {
  const Sizes sizes = SizesOf(slices);
  CHECK(
      sizes.tokens <= limits_.max_step_tokens && sizes.sequences <= limits_.max_sequences &&
      sizes.blocks <= limits_.max_blocks_per_sequence
  ) << "tokens="
    << sizes.tokens << " sequences=" << sizes.sequences << " blocks=" << sizes.blocks;
  const Sections sections = Layout(sizes);

  std::fill_n(Host(sections.block_tables), sections.block_tables.size, -1);
  Host(sections.query_offsets)[0] = 0;
  int64_t row = 0;
  int32_t* logit_row = Host(sections.logit_rows);
  int32_t* scored_row = Host(sections.scored_rows);
  for (int64_t s = 0; s < sizes.sequences; ++s) {
    const SequenceSlice& slice = slices[static_cast<size_t>(s)];
    WriteTokens(slice, sections, row);
    const auto [first_scored, end_scored] = slice.ScoredPositions();
    for (int32_t position = first_scored; position < end_scored; ++position) {
      *scored_row++ = static_cast<int32_t>(row) + position - 1 - slice.planned.first_token;
    }
    row += slice.planned.tokens;
    Host(sections.query_offsets)[s + 1] = static_cast<int32_t>(row);
    Host(sections.kv_lengths)[s] = slice.planned.first_token + slice.planned.tokens;
    std::transform(
        slice.sequence->blocks.begin(),
        slice.sequence->blocks.end(),
        Host(sections.block_tables) + s * sizes.blocks,
        [](BlockId block) { return static_cast<int32_t>(block); }
    );
    if (slice.planned.samples) {
      *logit_row++ = static_cast<int32_t>(row - 1);
    }
  }
  const int64_t selection_bytes = WriteSelection(selection, sections.total);
  ops_->Upload(host_.data(), device_->data(), sections.total * kBytesPerInt + selection_bytes);

  return {
      .tokens = sizes.tokens,
      .sequences = sizes.sequences,
      .token_ids = Device(sections.token_ids),
      .positions = Device(sections.positions),
      .phases = Device(sections.phases),
      .slots = Device(sections.slots),
      .query_offsets = Device(sections.query_offsets),
      .kv_lengths = Device(sections.kv_lengths),
      .block_tables = Device(sections.block_tables).Reshaped({sizes.sequences, sizes.blocks}),
      .logit_rows = Device(sections.logit_rows),
      .scored_rows = Device(sections.scored_rows),
      .packed_selection =
          selection_bytes > 0 ? static_cast<int32_t*>(device_->data()) + sections.total : nullptr};
}

int64_t BatchBuilder::WriteSelection(const SelectTokensArgs* selection, int64_t begin) {
  const int64_t bytes = selection == nullptr ? 0 : ops_->PackedSelectionBytes(*selection);
  if (bytes == 0 || bytes > limits_.selection_bytes) {
    return 0;
  }
  ops_->PackSelection(*selection, host_.data() + begin);
  return bytes;
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
