"""Seeded bfloat16 values, fast: small tensors are drawn, large ones are cut from a pool that was drawn once."""

import zlib

import numpy

from switchyard_export.dtypes import bfloat16_bits
from switchyard_export.tensor import StoredTensor

_POOL_ELEMENTS = 1 << 22
_PIECE_ELEMENTS = 1 << 20  # cut from a random place of the pool


class RandomValues:
    def __init__(self, seed):
        self._seed = seed
        self._pools = {}  # fan-in -> normal values at its deviation, as bfloat16

    def stored(self, tensor):
        """A layout.Tensor as something to write. The same seed and name give the same values."""
        if not tensor.fan_in:
            return StoredTensor("BF16", tensor.shape, lambda: iter([_constant(tensor)]))
        # Routers fit in one draw, so no two experts of one can tie.
        chunks = self._draw if tensor.elements <= _PIECE_ELEMENTS else self._cut
        return StoredTensor("BF16", tensor.shape, lambda: chunks(tensor))

    def _generator(self, tensor):
        return numpy.random.default_rng([self._seed, zlib.crc32(tensor.name.encode())])

    def _draw(self, tensor):
        values = self._generator(tensor).standard_normal(tensor.elements, dtype=numpy.float32)
        yield bfloat16_bits(values * numpy.float32(tensor.fan_in**-0.5)).tobytes()

    def _cut(self, tensor):
        if tensor.fan_in not in self._pools:
            normal = numpy.random.default_rng(self._seed).standard_normal(_POOL_ELEMENTS, dtype=numpy.float32)
            self._pools[tensor.fan_in] = bfloat16_bits(normal * numpy.float32(tensor.fan_in**-0.5))
        pool, generator = self._pools[tensor.fan_in], self._generator(tensor)
        for begin in range(0, tensor.elements, _PIECE_ELEMENTS):
            length = min(_PIECE_ELEMENTS, tensor.elements - begin)
            start = generator.integers(_POOL_ELEMENTS - length + 1)
            yield pool[start : start + length].tobytes()


def zeros(tensor):
    """A layout.Tensor of zeros, which takes no disk space."""
    return StoredTensor("BF16", tensor.shape, None)


def _constant(tensor):
    return bfloat16_bits(numpy.full(tensor.elements, tensor.value, numpy.float32)).tobytes()
