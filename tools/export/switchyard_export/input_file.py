"""Reading parts of a file without mapping it: what was read does not stay in this process' memory."""

import os
import weakref

from switchyard_export.errors import ExportError

CHUNK_BYTES = 8 << 20  # a multiple of every element size


class InputFile:
    """A file opened for reading at offsets. Closed with the object."""

    def __init__(self, path):
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise ExportError(f"{path}: cannot be opened: {error.strerror}") from None
        weakref.finalize(self, os.close, self._descriptor)
        self.file_bytes = os.fstat(self._descriptor).st_size

    def read(self, offset, length):
        """Exactly `length` bytes, so the caller's limit is the limit of memory."""
        parts, position = [], offset
        while position < offset + length:
            part = os.pread(self._descriptor, offset + length - position, position)
            if not part:
                raise ExportError(f"{self.path}: ends at byte {position}, {offset + length} were expected")
            parts.append(part)
            position += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self, offset, length):
        """The same bytes, at most CHUNK_BYTES at a time."""
        for start in range(offset, offset + length, CHUNK_BYTES):
            yield self.read(start, min(CHUNK_BYTES, offset + length - start))
