"""A tensor that is read when it is written: nothing of it is in memory before."""

from dataclasses import dataclass
from math import prod
from typing import Callable, Iterator, Optional, Tuple

# The names safetensors files use, with the bytes of an element.
ELEMENT_BYTES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "U64": 8,
    "I32": 4,
    "U32": 4,
    "I16": 2,
    "U16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
FLOATING = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class StoredTensor:
    dtype: str  # a key of ELEMENT_BYTES
    shape: Tuple[int, ...]
    # Yields the elements in row-major order, little-endian, in pieces of whole elements. May be called again.
    # None: every element is zero, which the writer leaves as a hole in the file that takes no disk space.
    chunks: Optional[Callable[[], Iterator[bytes]]]

    @property
    def elements(self):
        return prod(self.shape)

    @property
    def tensor_bytes(self):
        return self.elements * ELEMENT_BYTES[self.dtype]
