"""Conversion of floating-point elements, rounding to nearest, ties to even."""

import numpy

from switchyard_export.errors import ExportError
from switchyard_export.tensor import FLOATING, StoredTensor

DTYPE_OF_FLAG = {"bf16": "BF16", "f16": "F16", "f32": "F32"}
_NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


def converted(name, tensor, dtype):
    """The same tensor in another floating-point dtype; integers stay as they are."""
    if tensor.dtype == dtype or tensor.dtype not in FLOATING:
        return tensor
    return StoredTensor(dtype, tensor.shape, lambda: _convert_all(name, tensor, dtype))


def _convert_all(name, tensor, dtype):
    for chunk in tensor.chunks():
        values = _decode(chunk, tensor.dtype)
        yield _encode(name, values, dtype).tobytes()


def _decode(chunk, dtype):
    if dtype == "BF16":
        return (numpy.frombuffer(chunk, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)
    return numpy.frombuffer(chunk, _NUMPY_TYPES[dtype])


def _encode(name, values, dtype):
    with numpy.errstate(all="ignore"):
        if dtype == "BF16":
            encoded = bfloat16_bits(values)
            overflows = (encoded & 0x7FFF) == 0x7F80
        else:
            encoded = values.astype(_NUMPY_TYPES[dtype])
            overflows = numpy.isinf(encoded)
    # Weights that turn to infinity would ruin the model without a word.
    lost = values[overflows & numpy.isfinite(values)]
    if lost.size:
        raise ExportError(f"tensor {name}: {lost[0]:g} is beyond the range of {dtype}; use another --dtype")
    return encoded


def bfloat16_bits(values):
    """The upper halves of the rounded float32 bits, as uint16."""
    singles = values.astype(numpy.float32)
    bits = singles.view(numpy.uint32)
    if values.dtype == numpy.float64:
        # Rounding twice must not differ from rounding once: cut, and keep in the last bit that something was cut.
        cut = bits - (numpy.abs(singles.astype(numpy.float64)) > numpy.abs(values))
        bits = numpy.where(singles == values, bits, cut.astype(numpy.uint32) | 1)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # Rounding could carry a NaN to infinity or zero: keep it, and make it quiet.
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return numpy.where(is_nan, (bits >> 16) | 0x40, rounded).astype("<u2")
