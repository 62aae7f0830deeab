"""`inspect` says of every published model what its paper or model card says of its size."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/export"), str(ROOT / "tools"), str(ROOT / "tools/export")]

from published_sizes import PUBLISHED, rounded  # noqa: E402
from random_model import command  # noqa: E402
from switchyard_process import run  # noqa: E402

KV_VALUE_BYTES = 4


class PublishedShapes(unittest.TestCase):
    def inspected(self, shape):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            # Files of the true sizes that are holes: 8.5 billion parameters take no disk.
            self.assertEqual(command.main(["--shape", shape, "--zeros", "--output", folder, "--quiet"]), 0)
            result = run("inspect", folder, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_parameters_and_cache_are_as_published(self):
        for shape, (total, active, cached_values) in PUBLISHED.items():
            with self.subTest(shape):
                report = self.inspected(shape)

                self.assertEqual(rounded(report["parameters_total"], total), total)
                self.assertEqual(rounded(report["parameters_active"], active), active)
                self.assertEqual(report["kv_bytes_per_token"], cached_values * KV_VALUE_BYTES)
                self.assertEqual(report["weights_bytes"], 2 * report["parameters_total"])

    def test_positions_are_named(self):
        for shape, positions in (
            ("jetmoe-8b", "rotary"),
            ("switchhead-47m", "transformer_xl"),
            ("molm-350m-4b", "stick_breaking"),
        ):
            with self.subTest(shape):
                self.assertEqual(self.inspected(shape)["attention"]["positions"], positions)


if __name__ == "__main__":
    unittest.main()
