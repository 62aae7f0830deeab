"""A file written by torch.save since torch 1.6: a zip archive with one pickle and one member per storage."""

from math import prod
from typing import NamedTuple, Optional, Tuple

import numpy

from switchyard_export.errors import ExportError
from switchyard_export.inert_pickle import InertUnpickler, PickleError, is_plain_key
from switchyard_export.input_file import CHUNK_BYTES
from switchyard_export.tensor import ELEMENT_BYTES, StoredTensor
from switchyard_export.zip_archive import ZipArchive

MAX_PICKLE_BYTES = 32 << 20
MAX_RANK = 8

_STORAGE_DTYPES = {
    "torch.DoubleStorage": "F64",
    "torch.FloatStorage": "F32",
    "torch.HalfStorage": "F16",
    "torch.BFloat16Storage": "BF16",
    "torch.LongStorage": "I64",
    "torch.IntStorage": "I32",
    "torch.ShortStorage": "I16",
    "torch.CharStorage": "I8",
    "torch.ByteStorage": "U8",
    "torch.BoolStorage": "BOOL",
}


class Storage(NamedTuple):
    dtype: Optional[str]  # None: of a class not known here
    kind: str
    key: str
    elements: int


class PickledTensor(NamedTuple):
    """A view of a storage, as the pickle describes it; nothing of it is checked."""

    storage: Storage
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]


class TorchFile:
    """`value` is what was saved; tensors in it are PickledTensor, made readable by tensor()."""

    def __init__(self, path):
        self.path = path
        self._archive = ZipArchive(path)
        self._top = self._find_top()
        try:
            pickle = self._archive.read(self._top + "data.pkl", MAX_PICKLE_BYTES)
            self.value = InertUnpickler(pickle, _CONSTRUCTORS, _storage).load()
        except PickleError as error:
            raise ExportError(f"{path}: data.pkl {error}") from None

    def tensor(self, name, pickled):
        """A tensor that can be read. Refuses one that its storage does not hold."""
        storage = pickled.storage
        if storage.dtype is None:
            self._refuse(name, f"is stored as {storage.kind}, which is not supported")
        member = self._archive.members.get(f"{self._top}data/{storage.key}")
        if member is None:
            self._refuse(name, f"its storage, member data/{storage.key}, is missing")
        element_bytes = ELEMENT_BYTES[storage.dtype]
        if storage.elements * element_bytes != member.size:
            self._refuse(
                name,
                f"its storage data/{storage.key} has {member.size} bytes "
                f"where {storage.elements} elements of {storage.dtype} were announced",
            )
        self._check_view(name, pickled)
        elements = prod(pickled.shape)
        if elements and not _is_contiguous(pickled):
            chunks = lambda: self._strided_chunks(member, pickled)
        elif elements == storage.elements:
            chunks = lambda: self._archive.checked_chunks(member)
        else:
            chunks = lambda: self._part_chunks(member, pickled.offset * element_bytes, elements * element_bytes)
        return StoredTensor(storage.dtype, pickled.shape, chunks)

    def _find_top(self):
        members = self._archive.members
        tops = [name[: -len("data.pkl")] for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(tops) != 1:
            raise ExportError(
                f"{self.path}: is a zip archive with {len(tops)} members */data.pkl; torch.save writes one"
            )
        top = tops[0]
        for name in members:
            if not name.startswith(top):
                raise ExportError(f"{self.path}: its member {name} is outside {top}, where torch.save puts all")
        if top + "constants.pkl" in members:
            raise ExportError(
                f"{self.path}: is a TorchScript program, not a checkpoint; save module.state_dict() with torch.save"
            )
        if top + "byteorder" in members and self._archive.read(top + "byteorder", 16) != b"little":
            raise ExportError(f"{self.path}: was saved on a big-endian machine, which is not supported")
        return top

    def _check_view(self, name, pickled):
        shape, strides = pickled.shape, pickled.strides
        if len(shape) > MAX_RANK or len(shape) != len(strides):
            self._refuse(name, f"has {len(shape)} sizes and {len(strides)} strides; the limit is {MAX_RANK} of each")
        if min(shape + strides, default=0) < 0:
            self._refuse(name, f"has a negative number in its shape {shape} or its strides {strides}")
        elements, stored = prod(shape), pickled.storage.elements
        last = pickled.offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
        if pickled.offset < 0 or (elements and last >= stored) or pickled.offset > stored:
            self._refuse(
                name,
                f"shape {shape} with strides {strides} from {pickled.offset} on reaches beyond "
                f"the {stored} elements of its storage",
            )
        if elements > stored:
            self._refuse(
                name, f"shape {shape} repeats the {stored} elements of its storage; save it with .contiguous()"
            )

    def _part_chunks(self, member, offset, length):
        self._archive.check(member)
        return self._archive.file.chunks(member.offset + offset, length)

    def _strided_chunks(self, member, pickled):
        self._archive.check(member)
        element_bytes = ELEMENT_BYTES[pickled.storage.dtype]
        # Mapped, for its rows may be far apart in the file. The map ends with the last chunk.
        storage = numpy.memmap(
            self.path, dtype=f"<u{element_bytes}", mode="r", offset=member.offset, shape=(pickled.storage.elements,)
        )
        view = numpy.lib.stride_tricks.as_strided(
            storage[pickled.offset :],
            pickled.shape,
            # The stride of a single row is never taken, and may be any number.
            [stride * element_bytes * (size > 1) for size, stride in zip(pickled.shape, pickled.strides)],
            writeable=False,
        )
        return _row_major_chunks(view)

    def _refuse(self, name, message):
        raise ExportError(f"{self.path}: tensor {name}: {message}")


def _is_contiguous(pickled):
    expected = 1
    for size, stride in zip(reversed(pickled.shape), reversed(pickled.strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _row_major_chunks(view):
    if view.nbytes <= CHUNK_BYTES:
        yield numpy.ascontiguousarray(view).tobytes()
        return
    rows = CHUNK_BYTES // view[0].nbytes
    for begin in range(0, view.shape[0], max(rows, 1)):
        yield from _row_major_chunks(view[begin : begin + rows] if rows else view[begin])


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _storage(persistent_id):
    if not isinstance(persistent_id, tuple) or len(persistent_id) != 5 or persistent_id[0] != "storage":
        raise PickleError("refers to something outside that is not a storage")
    _, kind, key, _, elements = persistent_id
    if not isinstance(key, str) or not _is_count(elements) or elements < 0:
        raise PickleError("describes a storage by the wrong types")
    return Storage(_STORAGE_DTYPES.get(str(kind)), str(kind), key, elements)


def _rebuild_tensor(args):
    """args: storage, offset, shape, strides, and more that does not matter here."""
    if len(args) < 4 or not isinstance(args[0], Storage) or not _is_count(args[1]):
        raise PickleError("describes a tensor by the wrong types")
    for sizes in args[2:4]:
        if type(sizes) is not tuple or not all(_is_count(size) for size in sizes):
            raise PickleError("describes a tensor by the wrong types")
    return PickledTensor(*args[:4])


def _rebuild_parameter(args):
    if not args or not isinstance(args[0], PickledTensor):
        raise PickleError("describes a parameter without its tensor")
    return args[0]


def _ordered_dict(args):
    pairs = args[0] if args else []
    if len(args) > 1 or not isinstance(pairs, list):
        raise PickleError("makes a dictionary from something that is not a list of pairs")
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not is_plain_key(pair[0]):
            raise PickleError("makes a dictionary from something that is not a list of pairs")
    return dict(pairs)


_CONSTRUCTORS = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "collections.OrderedDict": _ordered_dict,
}
