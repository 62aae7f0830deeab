"""safetensors checkpoints: read as strictly as the server reads them."""

import json
import struct

from export_case import ExportCase

from switchyard_export.checkpoint import open_checkpoint
from switchyard_export.errors import ExportError

ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


class SafetensorsInput(ExportCase):
    def file_with(self, header, data=bytes(8), name="model.safetensors"):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path = self.folder / name
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return path

    def test_reads_tensors_and_ignores_metadata(self):
        file = self.file_with({"__metadata__": {"format": "pt"}, "w": ENTRY}, struct.pack("<2f", 1, 2))

        tensors = open_checkpoint(file).tensors

        self.assertEqual(list(tensors), ["w"])
        self.assertEqual(b"".join(tensors["w"].chunks()), struct.pack("<2f", 1, 2))

    def test_refuses_headers_that_lie(self):
        headers = {
            "dtype F8_E4M3 is not supported": {"w": dict(ENTRY, dtype="F8_E4M3")},
            "offsets 0 to 8 do not hold F32 of shape \\[3\\]": {"w": dict(ENTRY, shape=[3])},
            "begins at byte 4 where 0 was expected": {"w": dict(ENTRY, shape=[1], data_offsets=[4, 8])},
            "begins at byte 0 where 8 was expected": {"v": ENTRY, "w": ENTRY},
            "it is truncated or damaged": {"w": dict(ENTRY, shape=[4], data_offsets=[0, 16])},
            "not numbers from 0 on": {"w": dict(ENTRY, shape=[-2])},
            "lacks dtype, shape or data_offsets": {"w": [1]},
            "a key occurs twice": b'{"w": 1, "w": 2}',
            "is not JSON": b"{" * 5000,
        }
        for message, header in headers.items():
            with self.subTest(message), self.assertRaisesRegex(ExportError, message):
                open_checkpoint(self.file_with(header))

    def test_refuses_a_header_longer_than_the_file(self):
        file = self.folder / "model.safetensors"
        file.write_bytes(struct.pack("<Q", 1 << 40) + b"{}")

        self.assert_refused(file, "its header claims 1099511627776 bytes; the file has 10")

    def test_refuses_an_index_that_leads_out_of_its_folder(self):
        for name in ("../model.safetensors", "/etc/passwd", "..", ""):
            index = self.write_json("model.safetensors.index.json", {"weight_map": {"w": name}})
            self.assert_refused(index, "not a plain file name")

    def test_refuses_an_index_whose_shard_is_missing(self):
        index = self.write_json("model.safetensors.index.json", {"weight_map": {"w": "a.safetensors"}})

        self.assert_refused(index, "names the shard a.safetensors, which is not there")

    def test_refuses_an_index_that_disagrees_with_its_shards(self):
        self.file_with({"v": ENTRY, "w": dict(ENTRY, data_offsets=[8, 16])}, bytes(16), name="a.safetensors")
        cases = {
            "tensor u is in the index, but in no shard": dict.fromkeys("uvw", "a.safetensors"),
            "tensor w is in a shard, but not in the index": {"v": "a.safetensors"},
        }
        for message, weight_map in cases.items():
            index = self.write_json("model.safetensors.index.json", {"weight_map": weight_map})
            with self.assertRaisesRegex(ExportError, message):
                open_checkpoint(index)

    def test_refuses_a_tensor_in_two_shards(self):
        for name in ("a.safetensors", "b.safetensors"):
            self.file_with({"w": ENTRY}, name=name)
        self.file_with({"v": ENTRY, "w": dict(ENTRY, data_offsets=[8, 16])}, bytes(16), "b.safetensors")
        weight_map = {"w": "a.safetensors", "v": "b.safetensors"}

        self.assert_refused(
            self.write_json("model.safetensors.index.json", {"weight_map": weight_map}), "tensor w is in another shard"
        )
