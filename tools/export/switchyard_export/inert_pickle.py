"""Reads a pickle as data.

Python's own unpickler runs what a file tells it to. This one is a small machine over plain values: it knows no way to
import or call anything. A class or function named in the file stays a name; what the file would have called with it
becomes a Record, except for the few constructors of tensors and dictionaries that the caller passes in. Opcodes that
torch.save does not write are refused.
"""

import pickletools
import struct
from typing import NamedTuple

from switchyard_export.errors import ExportError

MAX_STEPS = 5_000_000  # bounds time and memory; the largest checkpoints known take under 200 000

# Nothing here would run. A file that asks for these is an attack, and its other contents are not to be trusted either.
_HOSTILE_MODULES = frozenset(
    "asyncio bdb builtins code codeop commands ctypes importlib marshal multiprocessing nt os pdb pickle pkgutil "
    "platform posix profile pty runpy shutil signal site socket subprocess sys tempfile threading timeit trace "
    "webbrowser __builtin__ _io _pickle _posixsubprocess _thread io".split()
)
_HARMLESS_BUILTINS = frozenset(
    "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple".split()
)


class Global(NamedTuple):
    """The name of a class or function."""

    module: str
    name: str

    def __str__(self):
        return f"{self.module}.{self.name}"


class Record(dict):
    """Where an object of an unknown class would be: its items, without its behaviour."""

    __slots__ = ("kind", "args", "state")

    def __init__(self, kind, args):
        super().__init__()
        self.kind, self.args, self.state = kind, args, None


class PickleError(ExportError):
    pass


class InertUnpickler:
    """load() gives the pickled value, made of None, bool, int, float, str, list, dict, tuple, Global, Record
    and what `constructors` and `persistent` return.

    constructors: {str(Global): function(args tuple)}. persistent: function(persistent id).
    """

    def __init__(self, data, constructors, persistent):
        self._data, self._position = data, 0
        self._constructors, self._persistent = constructors, persistent
        self._stack, self._outer_stacks, self._memo = [], [], {}

    def load(self):
        for _ in range(MAX_STEPS):
            opcode = self._take(1)
            if opcode == b".":
                return self._finish()
            handler = _HANDLERS.get(opcode)
            if handler is None:
                self._refuse(f"uses the opcode {_opcode_name(opcode)}, which torch.save does not write")
            handler(self)
        raise PickleError(f"is a pickle of more than {MAX_STEPS} steps; no checkpoint is that long")

    def _finish(self):
        value = self._pop()
        if self._stack or self._outer_stacks or self._position != len(self._data):
            self._refuse("stops before its end")
        return value

    def _refuse(self, message):
        raise PickleError(f"{message} (at byte {self._position} of the pickle)")

    def _take(self, count):
        taken = self._data[self._position : self._position + count]
        if len(taken) != count:
            self._refuse("is truncated")
        self._position += count
        return taken

    def _number(self, form):
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _pop(self):
        if not self._stack:
            self._refuse("takes more from its stack than it put there")
        return self._stack.pop()

    def _top(self):
        if not self._stack:
            self._refuse("takes more from its stack than it put there")
        return self._stack[-1]

    def _push(self, value):
        self._stack.append(value)

    def _pop_mark(self):
        if not self._outer_stacks:
            self._refuse("takes a mark that it did not set")
        items, self._stack = self._stack, self._outer_stacks.pop()
        return items

    # Opcodes.

    def _protocol(self):
        version = self._number("<B")
        if not 2 <= version <= 5:
            self._refuse(f"has the pickle protocol {version}; those of torch.save are 2 (the usual one) to 5")

    def _mark(self):
        self._outer_stacks.append(self._stack)
        self._stack = []

    def _text(self, length):
        try:
            self._push(self._take(length).decode("utf-8"))
        except UnicodeDecodeError:
            self._refuse("holds text that is not UTF-8")

    def _line(self):
        end = self._data.find(b"\n", self._position)
        if end < 0:
            self._refuse("is truncated")
        line = self._take(end - self._position)
        self._position += 1
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse("holds a name that is not UTF-8")

    def _push_global(self, module, name):
        if not isinstance(module, str) or not isinstance(name, str):
            self._refuse("names a class by something that is not text")
        harmless = module in ("builtins", "__builtin__") and name in _HARMLESS_BUILTINS
        if module.split(".")[0] in _HOSTILE_MODULES and not harmless:
            self._refuse(
                f"asks for {module}.{name}, which no checkpoint needs: do not trust this file. Nothing of it was run"
            )
        self._push(Global(module, name))

    def _stack_global(self):
        name, module = self._pop(), self._pop()
        self._push_global(module, name)

    def _construct(self):
        """For REDUCE (a call) and NEWOBJ (a new object) alike: neither happens."""
        args, kind = self._pop(), self._pop()
        if not isinstance(kind, Global) or not isinstance(args, tuple):
            self._refuse("calls something that is not a class or function by name")
        constructor = self._constructors.get(str(kind))
        self._push(constructor(args) if constructor else Record(kind, args))

    def _build(self):
        state, target = self._pop(), self._top()
        if isinstance(target, Record):
            target.state = state
        elif not isinstance(target, dict):  # of a dictionary, the attributes (such as _metadata) are dropped
            self._refuse("sets attributes of something that is not an object")

    def _persistent_id(self):
        self._push(self._persistent(self._pop()))

    def _set_items(self, items):
        target = self._top()
        if not isinstance(target, dict) or len(items) % 2 != 0:
            self._refuse("sets items of something that is not a dictionary")
        for key, value in zip(items[::2], items[1::2]):
            if not is_plain_key(key):
                self._refuse("has a dictionary key that is neither text nor number")
            target[key] = value

    def _set_item(self):
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def _append_all(self, items):
        target = self._top()
        if not isinstance(target, list):
            self._refuse("appends to something that is not a list")
        target.extend(items)

    def _pop_tuple(self, count):
        items = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(items)))

    def _frame(self):
        """Protocol 4 says in advance how many bytes come next; they are read as they come."""
        if self._number("<Q") > len(self._data) - self._position:
            self._refuse("is truncated")

    def _remember(self, index):
        self._memo[index] = self._top()

    def _recall(self, index):
        if index not in self._memo:
            self._refuse(f"recalls the value {index}, which it did not keep")
        self._push(self._memo[index])


def is_plain_key(key):
    if isinstance(key, tuple):
        return not isinstance(key, Global) and all(isinstance(part, (str, int, float)) for part in key)
    return key is None or isinstance(key, (str, int, float))


def _opcode_name(opcode):
    known = pickletools.code2op.get(opcode.decode("latin-1"))
    return known.name if known else f"0x{opcode.hex()}"


_HANDLERS = {
    b"\x80": InertUnpickler._protocol,
    b"(": InertUnpickler._mark,
    b"c": lambda self: self._push_global(self._line(), self._line()),
    b"\x93": InertUnpickler._stack_global,
    b"R": InertUnpickler._construct,
    b"\x81": InertUnpickler._construct,
    b"b": InertUnpickler._build,
    b"Q": InertUnpickler._persistent_id,
    b"}": lambda self: self._push({}),
    b"]": lambda self: self._push([]),
    b")": lambda self: self._push(()),
    b"s": InertUnpickler._set_item,
    b"u": lambda self: self._set_items(self._pop_mark()),
    b"a": lambda self: self._append_all([self._pop()]),
    b"e": lambda self: self._append_all(self._pop_mark()),
    b"t": lambda self: self._push(tuple(self._pop_mark())),
    b"\x85": lambda self: self._pop_tuple(1),
    b"\x86": lambda self: self._pop_tuple(2),
    b"\x87": lambda self: self._pop_tuple(3),
    b"X": lambda self: self._text(self._number("<I")),
    b"\x8c": lambda self: self._text(self._number("<B")),
    b"J": lambda self: self._push(self._number("<i")),
    b"K": lambda self: self._push(self._number("<B")),
    b"M": lambda self: self._push(self._number("<H")),
    b"\x8a": lambda self: self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True)),
    b"G": lambda self: self._push(self._number(">d")),
    b"N": lambda self: self._push(None),
    b"\x88": lambda self: self._push(True),
    b"\x89": lambda self: self._push(False),
    b"q": lambda self: self._remember(self._number("<B")),
    b"r": lambda self: self._remember(self._number("<I")),
    b"\x94": lambda self: self._remember(len(self._memo)),
    b"\x95": InertUnpickler._frame,
    b"h": lambda self: self._recall(self._number("<B")),
    b"j": lambda self: self._recall(self._number("<I")),
}
