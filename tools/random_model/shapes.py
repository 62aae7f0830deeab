"""The published models, by the numbers of their papers and configs, and one to measure with."""

from typing import NamedTuple


class Shape(NamedTuple):
    """One published model. `experts` is 0 where the feed-forward is dense, `multiplier` where it is not."""

    name: str
    family: str  # jetmoe, moduleformer, moeut_train or switchhead
    dim: int
    layers: int  # executed
    stored_layers: int  # fewer where a group of layers is repeated
    heads: int  # of keys and values; of one attention expert for moduleformer
    head_dim: int
    attention_experts: int
    attention_chosen: int
    experts: int  # of the feed-forward
    hidden: int  # width of one of them
    chosen: int
    multiplier: float  # a dense feed-forward is int(dim * multiplier) wide
    vocabulary: int
    block_tokens: int
    memory_blocks: int  # the context is block_tokens * (1 + memory_blocks)
    positions: str  # rope, xl (Transformer-XL) or stick (stick-breaking, which needs no tensors)


# attention: experts/chosen. feed-forward: experts x hidden/chosen, or the multiplier of a dense one. context: block of
# tokens + memory blocks. The enwik8 model knows bytes, of which 205 different ones occur there. moa-200m-active was
# never published: it is small enough to load in a second and too large for any cache, as benchmarks want it.
_TABLE = """
name                      family       dim  layers stored heads head_dim attention feed-forward vocabulary context positions
jetmoe-8b                 jetmoe       2048 24     24     16    128      8/2       8x5632/2     32000      4096+0  rope
molm-350m-4b              moduleformer 1024 24     24     1     1024     16/2      32x2048/2    50295      1024+0  stick
molm-700m-4b              moduleformer 1024 24     24     1     1024     16/4      32x2048/4    50295      1024+0  stick
molm-700m-8b              moduleformer 1024 48     48     1     1024     16/2      32x2048/2    50295      1024+0  stick
moeut-44m                 moeut_train  412  16     2      4     82       8/2       155x128/12   8000       1024+0  rope
moeut-126m                moeut_train  768  18     2      4     96       10/2      254x128/12   8000       1024+0  rope
moeut-244m                moeut_train  1024 18     2      4     128      10/2      387x128/16   8000       1024+0  rope
moeut-318m                moeut_train  1024 24     3      4     128      10/2      338x128/16   8000       1024+0  rope
moeut-727m                moeut_train  1280 36     4      5     128      13/2      467x128/20   8000       1024+0  rope
moeut-1b                  moeut_train  1536 36     4      6     128      12/2      565x128/24   8000       1024+0  rope
switchhead-47m            switchhead   412  16     16     2     76       5/3       5.05         8000       256+1   xl
switchhead-262m           switchhead   1024 18     18     4     112      4/2       4.09         8000       512+1   xl
switchhead-262m-wikitext  switchhead   1024 18     18     2     132      8/4       4.05         8000       512+1   xl
switchhead-45m-rope       switchhead   412  16     16     2     64       5/3       5.08         8000       512+0   rope
switchhead-243m-rope      switchhead   1024 18     18     4     100      4/2       4.04         8000       1024+1  rope
switchhead-41m-enwik8     switchhead   512  12     12     2     112      4/2       4.08         205        512+1   xl
switchall-47m             switchhead   412  16     16     2     76       5/3       16x128/4     8000       256+1   xl
switchall-259m            switchhead   1024 18     18     4     112      4/2       32x128/4     8000       512+1   xl
moa-200m-active           jetmoe       1024 7      7      8     128      8/2       8x2816/2     32000      4096+0  rope
"""


def _shape(row):
    name, family, dim, layers, stored, heads, head_dim, attention, feed_forward, vocabulary, context, positions = row
    experts, hidden, chosen, multiplier = 0, 0, 0, 0.0
    if "x" in feed_forward:
        experts, hidden, chosen = (int(part) for part in feed_forward.replace("x", "/").split("/"))
    else:
        multiplier = float(feed_forward)
    return Shape(
        name,
        family,
        *(int(column) for column in (dim, layers, stored, heads, head_dim)),
        *(int(part) for part in attention.split("/")),
        *(experts, hidden, chosen, multiplier),
        int(vocabulary),
        *(int(part) for part in context.split("+")),
        positions,
    )


SHAPES = {row.split()[0]: _shape(row.split()) for row in _TABLE.strip().splitlines()[1:]}


def with_layers(shape, layers):
    """The same model with another number of executed layers; groups stay whole."""
    if shape.stored_layers < shape.layers:
        if layers % shape.stored_layers:
            raise ValueError(
                f"--layers {layers}: {shape.name} repeats a group of {shape.stored_layers} layers; "
                "give a multiple of it"
            )
        return shape._replace(layers=layers)
    return shape._replace(layers=layers, stored_layers=layers)
