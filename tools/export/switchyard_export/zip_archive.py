"""The zip archives that torch.save writes, read strictly.

Python's zipfile is made to open as many archives as possible. Here an archive that torch.save would not have written
is refused: compressed, encrypted, overlapping or doubled members, names that lead out of a folder, bytes missing.
Members are read in place and never extracted.
"""

import struct
import zlib
from typing import NamedTuple

from switchyard_export.errors import ExportError
from switchyard_export.input_file import InputFile

MAX_DIRECTORY_BYTES = 64 << 20
MAX_MEMBERS = 200_000

_END = struct.Struct("<4s4H2LH")
_END_64_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_IN_EXTRA = 0xFFFFFFFF  # the true 64-bit value is in the entry's zip64 field
_ENCRYPTED = 1


class Member(NamedTuple):
    name: str
    offset: int  # of its data in the file
    size: int
    crc: int  # 0 where the writer did not compute it


class ZipArchive:
    """Members by name. The constructor checks the whole directory; data is checked when it is read."""

    def __init__(self, path):
        self.file = InputFile(path)
        self.path = path
        self.members = {}
        self._checked = set()
        entries, offset, length = self._find_directory()
        self._read_directory(entries, offset, length)

    def read(self, name, limit):
        """The bytes of a small member, with their checksum compared."""
        member = self.members[name]
        if member.size > limit:
            self._refuse(f"{name} has {member.size} bytes, above the limit of {limit}")
        self.check(member)
        return self.file.read(member.offset, member.size)

    def check(self, member):
        """Compares the checksum of a member's bytes, once."""
        if member.name not in self._checked:
            for _ in self.checked_chunks(member):
                pass

    def checked_chunks(self, member):
        """All bytes of a member. A wrong checksum is found after the last one."""
        crc = 0
        for chunk in self.file.chunks(member.offset, member.size):
            crc = zlib.crc32(chunk, crc)
            yield chunk
        if member.crc not in (0, crc):
            self._refuse(
                f"{member.name} is damaged: its checksum is {crc:08x} and should be {member.crc:08x}; "
                "copy or download the file again"
            )
        self._checked.add(member.name)

    def _refuse(self, message):
        raise ExportError(f"{self.path}: {message}")

    def _find_directory(self):
        """(entries, offset, length) of the central directory."""
        file_bytes = self.file.file_bytes
        tail_bytes = min(file_bytes, _END.size + 0xFFFF)
        tail = self.file.read(file_bytes - tail_bytes, tail_bytes)
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            self._refuse("is truncated: the directory at the end of the zip archive is missing")
        _, disk, first_disk, _, entries, length, offset, comment = _END.unpack_from(tail, at)
        end = file_bytes - tail_bytes + at
        if end + _END.size + comment != file_bytes or disk != 0 or first_disk != 0:
            self._refuse("is truncated, or has bytes after the zip archive")
        if entries == 0xFFFF or _IN_EXTRA in (length, offset):
            entries, length, offset, end = self._find_directory_64(end)
        if entries > MAX_MEMBERS or length > MAX_DIRECTORY_BYTES:
            self._refuse(
                f"has {entries} members in a directory of {length} bytes; "
                f"the limits are {MAX_MEMBERS} and {MAX_DIRECTORY_BYTES}"
            )
        if offset + length > end:
            self._refuse("its zip directory reaches beyond its end")
        return entries, offset, length

    def _find_directory_64(self, end):
        if end < _END_64_LOCATOR.size:
            self._refuse("lacks the 64-bit zip directory it announces")
        signature, _, at, _ = _END_64_LOCATOR.unpack(
            self.file.read(end - _END_64_LOCATOR.size, _END_64_LOCATOR.size)
        )
        if signature != b"PK\x06\x07" or at + _END_64.size > end:
            self._refuse("lacks the 64-bit zip directory it announces")
        record = _END_64.unpack(self.file.read(at, _END_64.size))
        if record[0] != b"PK\x06\x06":
            self._refuse("lacks the 64-bit zip directory it announces")
        entries, length, offset = record[7:10]
        return entries, length, offset, at

    def _read_directory(self, entries, offset, length):
        directory = self.file.read(offset, length)
        position, spans = 0, []
        for _ in range(entries):
            if position + _ENTRY.size > length:
                self._refuse("its zip directory is cut short")
            fields = _ENTRY.unpack_from(directory, position)
            names_at = position + _ENTRY.size
            position = names_at + sum(fields[10:13])
            if fields[0] != b"PK\x01\x02" or position > length:
                self._refuse("its zip directory is damaged")
            raw_name = directory[names_at : names_at + fields[10]]
            extra = directory[names_at + fields[10] : names_at + fields[10] + fields[11]]
            member, begin = self._member(raw_name, fields, extra, offset)
            if member.name in self.members:
                self._refuse(f"has two members called {member.name}")
            self.members[member.name] = member
            spans.append((begin, member.offset + member.size, member.name))
        if position != length:
            self._refuse("its zip directory has more bytes than entries")
        spans.sort()
        for (_, end, name), (begin, _, next_name) in zip(spans, spans[1:]):
            if begin < end:
                self._refuse(f"its members {name} and {next_name} overlap")

    def _member(self, raw_name, fields, extra, directory_offset):
        """(member, offset of its local header)."""
        name = self._checked_name(raw_name)
        flags, method, crc = fields[3], fields[4], fields[7]
        if flags & _ENCRYPTED:
            self._refuse(f"its member {name} is encrypted")
        if method != 0:
            self._refuse(
                f"its member {name} is compressed (method {method}); torch.save stores members as they are"
            )
        stored, size, begin = self._sizes_64(name, fields[8], fields[9], fields[16], extra)
        if stored != size:
            self._refuse(f"its member {name} has {size} bytes but stores {stored}")
        if begin + _LOCAL.size > directory_offset:
            self._refuse(f"its member {name} lies outside the file")
        local = _LOCAL.unpack(self.file.read(begin, _LOCAL.size))
        data_offset = begin + _LOCAL.size + local[9] + local[10]
        if local[0] != b"PK\x03\x04" or local[3] != 0 or data_offset + size > directory_offset:
            self._refuse(f"its member {name} lies outside the file, or its header is damaged")
        if self.file.read(begin + _LOCAL.size, local[9]) != raw_name:
            self._refuse(f"its member {name} has another name in its own header")
        return Member(name, data_offset, size, crc), begin

    def _sizes_64(self, name, stored, size, begin, extra):
        values = {"size": size, "stored": stored, "begin": begin}
        wanted = [key for key, value in values.items() if value == _IN_EXTRA]
        position = 0
        while wanted and position + 4 <= len(extra):
            kind, field_bytes = struct.unpack_from("<2H", extra, position)
            field = extra[position + 4 : position + 4 + field_bytes]
            position += 4 + field_bytes
            if kind == 1 and len(field) >= 8 * len(wanted):
                values.update(zip(wanted, struct.unpack_from(f"<{len(wanted)}Q", field)))
                wanted = []
        if wanted:
            self._refuse(f"its member {name} lacks its 64-bit sizes")
        return values["stored"], values["size"], values["begin"]

    def _checked_name(self, raw_name):
        try:
            name = raw_name.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse("has a member whose name is not UTF-8")
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts) or any(c in name for c in "\\:\0"):
            self._refuse(f"has a member called {name!r}, which is not a plain path")
        return name
