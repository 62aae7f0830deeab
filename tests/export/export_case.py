"""What the tests of the exporter share: a temporary folder, and running the command in this process."""

import contextlib
import io
import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
sys.path[:0] = [str(TOOLS / "export"), str(TOOLS)]

from switchyard_export import command  # noqa: E402


def stored_tensors(folder):
    """{name: (dtype, shape, bytes)}, by a reader that shares nothing with the exporter."""
    tensors = {}
    for path in Path(folder).glob("*.safetensors"):
        content = path.read_bytes()
        (header_bytes,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + header_bytes])
        header.pop("__metadata__")
        data = content[8 + header_bytes :]
        for name, fields in header.items():
            begin, end = fields["data_offsets"]
            tensors[name] = (fields["dtype"], fields["shape"], data[begin:end])
    return tensors


class ExportCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.output = self.folder / "out"

    def run_export(self, checkpoint, *flags):
        """(exit status, what was printed to stdout, to stderr)."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = command.main([str(checkpoint), "--output", str(self.output), *map(str, flags)])
        return status, out.getvalue(), errors.getvalue()

    def exported(self, checkpoint, *flags):
        """{name: (dtype, shape, bytes)} of a run that must succeed."""
        status, _, errors = self.run_export(checkpoint, *flags)
        self.assertEqual(status, 0, errors)
        return stored_tensors(self.output)

    def assert_refused(self, checkpoint, message, *flags):
        """The run fails with one line of explanation, and leaves nothing behind."""
        before = sorted(self.folder.rglob("*"))
        status, _, errors = self.run_export(checkpoint, *flags)
        self.assertEqual(status, 1)
        self.assertRegex(errors, message)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def write_json(self, name, value):
        path = self.folder / name
        path.write_text(json.dumps(value))
        return path
