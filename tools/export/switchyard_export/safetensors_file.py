"""Reading and writing safetensors: a 64-bit header length, a JSON header, the bytes of the tensors without gaps."""

import hashlib
import json
import os
import struct
from math import prod
from typing import NamedTuple, Optional, Tuple

from switchyard_export.errors import ExportError
from switchyard_export.input_file import InputFile
from switchyard_export.tensor import ELEMENT_BYTES, StoredTensor

MAX_HEADER_BYTES = 100 << 20
MAX_RANK = 16


class Written(NamedTuple):
    """What a tensor is, and the SHA-256 of its bytes (None when not asked for)."""

    dtype: str
    shape: Tuple[int, ...]
    checksum: Optional[str]


def read_safetensors(path):
    """{name: StoredTensor}, in the order of the file. The header is checked completely."""
    file = InputFile(path)
    if file.file_bytes < 8:
        raise ExportError(f"{path}: has {file.file_bytes} bytes, too few for a safetensors file")
    (header_bytes,) = struct.unpack("<Q", file.read(0, 8))
    if header_bytes > MAX_HEADER_BYTES or 8 + header_bytes > file.file_bytes:
        raise ExportError(
            f"{path}: its header claims {header_bytes} bytes; the file has {file.file_bytes} "
            f"and the limit is {MAX_HEADER_BYTES}"
        )
    header = _parse_header(path, file.read(8, header_bytes))
    entries = []
    for name, fields in header.items():
        if name != "__metadata__":
            dtype, shape, begin, end = _check_entry(path, name, fields)
            entries.append((begin, end, name, dtype, shape))
    entries.sort()

    tensors, position = {}, 0
    for begin, end, name, dtype, shape in entries:
        if begin != position:
            raise ExportError(f"{path}: tensor {name} begins at byte {begin} where {position} was expected")
        position = end
        tensors[name] = _tensor_in(file, 8 + header_bytes + begin, dtype, shape)
    if 8 + header_bytes + position != file.file_bytes:
        raise ExportError(
            f"{path}: has {file.file_bytes} bytes where its tensors end at {8 + header_bytes + position}; "
            "it is truncated or damaged"
        )
    return tensors


def write_safetensors(path, tensors, on_bytes=lambda count: None, with_checksums=True):
    """Writes {name: StoredTensor} tensor by tensor and returns {name: Written}.

    on_bytes is told how many bytes were written, as they are.
    """
    # Larger elements first: then every tensor lies at a multiple of its element size.
    names = sorted(tensors, key=lambda name: -ELEMENT_BYTES[tensors[name].dtype])
    with open(path, "wb") as out:
        header = _header(tensors, names)
        out.write(struct.pack("<Q", len(header)) + header)
        written = {}
        for name in names:
            checksum = _copy(name, tensors[name], out, on_bytes, with_checksums)
            written[name] = Written(tensors[name].dtype, tuple(tensors[name].shape), checksum)
        out.truncate()  # a hole at the end counts too
        out.flush()
        os.fsync(out.fileno())
    return written


def _header(tensors, names):
    header, position = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        tensor = tensors[name]
        end = position + tensor.tensor_bytes
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _copy(name, tensor, out, on_bytes, with_checksum):
    """The SHA-256 of what was written, or None (always, of a hole)."""
    if tensor.chunks is None:
        out.seek(tensor.tensor_bytes, os.SEEK_CUR)
        on_bytes(tensor.tensor_bytes)
        return None
    checksum, written_bytes = hashlib.sha256(), 0
    for chunk in tensor.chunks():
        out.write(chunk)
        if with_checksum:
            checksum.update(chunk)
        written_bytes += len(chunk)
        on_bytes(len(chunk))
    if written_bytes != tensor.tensor_bytes:
        raise ExportError(f"tensor {name}: has {written_bytes} bytes where {tensor.tensor_bytes} were expected")
    return checksum.hexdigest() if with_checksum else None


def _tensor_in(file, offset, dtype, shape):
    length = prod(shape) * ELEMENT_BYTES[dtype]
    return StoredTensor(dtype, shape, lambda: file.chunks(offset, length))


def _parse_header(path, text):
    try:
        header = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{path}: its header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ExportError(f"{path}: its header is not a JSON object")
    return header


def _unique_keys(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _check_entry(path, name, fields):
    try:
        dtype, shape, (begin, end) = fields["dtype"], tuple(fields["shape"]), fields["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise ExportError(f"{path}: tensor {name}: its header entry lacks dtype, shape or data_offsets") from None
    if not isinstance(dtype, str) or dtype not in ELEMENT_BYTES:
        raise ExportError(f"{path}: tensor {name}: dtype {dtype} is not supported")
    numbers = (*shape, begin, end)
    if len(shape) > MAX_RANK or not all(type(number) is int and number >= 0 for number in numbers):
        raise ExportError(f"{path}: tensor {name}: its shape or its offsets are not numbers from 0 on")
    if end - begin != prod(shape) * ELEMENT_BYTES[dtype]:
        raise ExportError(
            f"{path}: tensor {name}: offsets {begin} to {end} do not hold {dtype} of shape {list(shape)}"
        )
    return dtype, shape, begin, end
