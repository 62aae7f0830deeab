"""Builds files as torch.save writes them, by hand, so that every part of them can be made wrong."""

import struct
import zipfile


def text(value):
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def whole(number):
    return b"J" + struct.pack("<i", number)


def whole_tuple(numbers):
    return b"(" + b"".join(whole(number) for number in numbers) + b"t"


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def tensor(key, elements, shape, strides, offset=0, storage="FloatStorage"):
    """A tensor as _rebuild_tensor_v2 makes it of the storage `key` with `elements` elements."""
    persistent_id = b"(" + text("storage") + name("torch", storage) + text(key) + text("cpu") + whole(elements) + b"tQ"
    arguments = persistent_id + whole(offset) + whole_tuple(shape) + whole_tuple(strides)
    hooks = name("collections", "OrderedDict") + b")R"
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"\x89" + hooks + b"tR"


def dictionary(items):
    """items: {key: pickle code of the value}."""
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def pickled(code):
    return b"\x80\x02" + code + b"."


def write(path, code, storages, top="archive", compression=zipfile.ZIP_STORED, more=(), is_whole=False):
    """code: what the pickle holds, or the whole pickle. storages: {key: bytes}. more: [(member, bytes)]."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{top}/data.pkl", code if is_whole else pickled(code))
        for key, storage in storages.items():
            archive.writestr(f"{top}/data/{key}", storage)
        for member, content in more:
            archive.writestr(member, content)
        archive.writestr(f"{top}/version", b"3\n")
    return path
