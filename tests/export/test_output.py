"""The folder that is written: dtypes, shards, verification, and what happens to what was there before."""

import json
import shutil
import struct
import subprocess
import sys
import unittest.mock
from pathlib import Path

import torch_archive as t
from export_case import DATA, TOOLS, ExportCase, stored_tensors

from switchyard_export import command, dtypes, model_folder
from switchyard_export.checkpoint import open_checkpoint
from switchyard_export.errors import ExportError
from switchyard_export.safetensors_file import write_safetensors
from switchyard_export.tensor import StoredTensor
from switchyard_export.verify import verify_folder

CHECKPOINT = DATA / "moeut_att1/model.pt"


def floats(values, form="f"):
    return struct.pack(f"<{len(values)}{form}", *values)


def bits(content):
    return [f"{value:04x}" for value in struct.unpack(f"<{len(content) // 2}H", content)]


class Dtypes(ExportCase):
    def convert(self, content, dtype, to):
        shape = (len(content) // {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}[dtype],)
        tensor = dtypes.converted("w", StoredTensor(dtype, shape, lambda: iter([content])), to)
        return b"".join(tensor.chunks())

    def test_float32_to_bfloat16_rounds_to_nearest_and_ties_to_even(self):
        # 1 + 2^-8 lies between 1 (3f80) and 1 + 2^-7 (3f81); 1 + 3 * 2^-8 between 3f81 and 3f82.
        values = [1, 1 + 2**-8, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8, -(1 + 2**-8), 0.0, -0.0]

        self.assertEqual(
            bits(self.convert(floats(values), "F32", "BF16")), ["3f80", "3f80", "3f81", "3f82", "bf80", "0000", "8000"]
        )

    def test_infinities_and_nans_stay_what_they_are(self):
        # A NaN whose only bits are low ones would become an infinity if it were cut off.
        content = floats([float("inf"), float("-inf")]) + struct.pack("<2I", 0x7F800001, 0xFFFFFFFF)

        self.assertEqual(bits(self.convert(content, "F32", "BF16")), ["7f80", "ff80", "7fc0", "ffff"])

    def test_float64_to_bfloat16_rounds_once(self):
        # Just above the tie of 3f80 and 3f81; in float32 it would be the tie, and then fall.
        self.assertEqual(bits(self.convert(floats([1 + 2**-8 + 2**-40], "d"), "F64", "BF16")), ["3f81"])
        self.assertEqual(bits(self.convert(floats([1 + 2**-8 - 2**-40], "d"), "F64", "BF16")), ["3f80"])
        self.assertEqual(bits(self.convert(floats([-1e-300], "d"), "F64", "BF16")), ["8000"])

    def test_float32_to_float16_rounds_to_nearest_and_ties_to_even(self):
        values = [1 + 2**-11, 1 + 3 * 2**-11, 65504, 2**-24]

        self.assertEqual(bits(self.convert(floats(values), "F32", "F16")), ["3c00", "3c02", "7bff", "0001"])

    def test_widening_is_exact(self):
        self.assertEqual(self.convert(b"\x80\x3f\x01\x00", "BF16", "F32"), floats([1, 2**-133]))
        self.assertEqual(self.convert(b"\x01\x3c", "F16", "F32"), floats([1 + 2**-10]))
        self.assertEqual(bits(self.convert(b"\x80\x3f", "BF16", "F16")), ["3c00"])

    def test_a_value_beyond_the_range_is_refused(self):
        with self.assertRaisesRegex(ExportError, "tensor w: 70000 is beyond the range of F16"):
            self.convert(floats([1, 70000]), "F32", "F16")

    def test_integers_are_left_alone(self):
        tensor = StoredTensor("I64", (1,), lambda: iter([bytes(8)]))

        self.assertIs(dtypes.converted("w", tensor, "BF16"), tensor)

    def test_the_command_converts_every_tensor_and_the_config(self):
        self.exported(DATA / "molm_identity_kv", "--dtype", "f32", "--verify")

        tensors = stored_tensors(self.output)
        self.assertEqual({dtype for dtype, _, _ in tensors.values()}, {"F32"})
        self.assertEqual(json.loads((self.output / "config.json").read_text())["torch_dtype"], "float32")

    def test_there_and_back_is_the_same(self):
        before = self.exported(DATA / "molm_identity_kv")
        first, self.output = self.output, self.folder / "wide"
        self.exported(first, "--dtype", "f32")
        second, self.output = self.output, self.folder / "back"

        self.assertEqual(self.exported(second, "--dtype", "bf16"), before)


class Shards(ExportCase):
    def test_a_limit_makes_shards_that_an_index_lists(self):
        whole = self.exported(CHECKPOINT)
        self.output = self.folder / "sharded"

        self.assertEqual(self.exported(CHECKPOINT, "--shard-bytes", 30000, "--verify"), whole)

        index = json.loads((self.output / "model.safetensors.index.json").read_text())
        files = sorted(path.name for path in self.output.glob("*.safetensors"))
        self.assertEqual(files, [f"model-0000{i}-of-00004.safetensors" for i in (1, 2, 3, 4)])
        self.assertEqual(sorted(set(index["weight_map"].values())), files)
        self.assertEqual(set(index["weight_map"]), set(whole))
        self.assertEqual(index["metadata"]["total_size"], sum(len(content) for _, _, content in whole.values()))

    def test_a_tensor_larger_than_the_limit_gets_a_shard_of_its_own(self):
        sizes = {"a": 3, "b": 20, "c": 3, "d": 4}
        tensors = {name: StoredTensor("U8", (size,), None) for name, size in sizes.items()}

        shards = model_folder.plan_shards(tensors, 7)

        self.assertEqual([list(shard) for shard in shards.values()], [["a"], ["b"], ["c", "d"]])

    def test_every_tensor_lies_at_a_multiple_of_its_element_size(self):
        shapes = {"a": ("U8", (3,)), "b": ("BF16", (1,)), "c": ("I64", (1,)), "d": ("F32", (3,))}
        tensors = {
            name: StoredTensor(dtype, shape, lambda size=size: iter([bytes(size)]))
            for (name, (dtype, shape)), size in zip(shapes.items(), (3, 2, 8, 12))
        }
        write_safetensors(self.folder / "m.safetensors", tensors)

        content = (self.folder / "m.safetensors").read_bytes()
        (header_bytes,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + header_bytes])
        begins = {name: header[name]["data_offsets"][0] for name in shapes}
        self.assertEqual(header_bytes % 8, 0)
        self.assertEqual(begins, {"c": 0, "d": 8, "b": 20, "a": 22})


class Verify(ExportCase):
    def written(self):
        tensors = {
            "a": StoredTensor("F32", (2,), lambda: iter([floats([1, 2])])),
            "b": StoredTensor("F32", (1,), lambda: iter([floats([3])])),
        }
        return model_folder.write_weights(self.folder, model_folder.plan_shards(tensors, 8))

    def test_accepts_what_was_written(self):
        self.assertEqual(
            verify_folder(self.folder, self.written()),
            [("model-00001-of-00002.safetensors", 1, 8), ("model-00002-of-00002.safetensors", 1, 4)],
        )

    def test_names_the_tensor_of_a_flipped_byte(self):
        written = self.written()
        file = self.folder / "model-00002-of-00002.safetensors"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)

        with self.assertRaisesRegex(ExportError, "model-00002-of-00002.*tensor b reads back with the checksum"):
            verify_folder(self.folder, written)

    def test_misses_a_tensor(self):
        written = self.written()
        written["c"] = written["b"]

        with self.assertRaisesRegex(ExportError, "tensor c was not written"):
            verify_folder(self.folder, written)

    def test_a_failed_verification_leaves_nothing_behind(self):
        def write_and_damage(folder, shards, *more, **flags):
            written = model_folder.write_weights(folder, shards, *more, **flags)
            file = next(Path(folder).glob("*.safetensors"))
            file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
            return written

        with unittest.mock.patch.object(command, "write_weights", write_and_damage):
            self.assert_refused(CHECKPOINT, "reads back with the checksum", "--verify")


class OutputFolder(ExportCase):
    def test_a_model_that_is_there_is_not_touched(self):
        self.output.mkdir()
        (self.output / "config.json").write_text("mine")

        self.assert_refused(CHECKPOINT, "holds config.json already; .*--overwrite")
        self.assertEqual((self.output / "config.json").read_text(), "mine")

    def test_overwrite_replaces_the_whole_model_and_keeps_other_files(self):
        self.exported(CHECKPOINT, "--shard-bytes", 30000)
        (self.output / "notes.txt").write_text("mine")

        self.exported(CHECKPOINT, "--overwrite")

        self.assertEqual(
            sorted(path.name for path in self.output.iterdir()), ["config.json", "model.safetensors", "notes.txt"]
        )

    def test_a_tokenizer_that_is_in_the_output_folder_already_stays_there(self):
        self.output.mkdir()
        shutil.copy(CHECKPOINT, self.output)
        (self.output / "tokenizer.model").write_bytes(b"\n\x00")

        self.exported(self.output / "model.pt", "--config", CHECKPOINT.parent / "config.json")

        self.assertEqual((self.output / "tokenizer.model").read_bytes(), b"\n\x00")

    def test_an_old_tokenizer_does_not_stay_beside_a_new_one(self):
        self.output.mkdir()
        (self.output / "tokenizer.json").write_text("{}")
        given = self.folder / "spm.model"
        given.write_bytes(b"\n\x00")

        self.assert_refused(CHECKPOINT, "holds tokenizer.json already", "--tokenizer", given)
        self.exported(CHECKPOINT, "--tokenizer", given, "--overwrite")

        self.assertEqual([path.name for path in self.output.glob("tokenizer*")], ["tokenizer.model"])

    def test_the_folder_of_the_checkpoint_itself_is_refused(self):
        self.exported(CHECKPOINT)

        self.assert_refused(self.output, "is the folder of the checkpoint itself", "--overwrite")

    def test_a_failure_in_the_middle_leaves_an_existing_folder_as_it_was(self):
        self.output.mkdir()
        (self.output / "notes.txt").write_text("mine")

        with unittest.mock.patch.object(model_folder, "write_safetensors", side_effect=OSError("No space left")):
            self.assert_refused(CHECKPOINT, "No space left")

    def test_folders_on_the_way_are_made_and_removed_again(self):
        self.output = self.folder / "a/b/c"

        with unittest.mock.patch.object(model_folder, "write_safetensors", side_effect=OSError("No space left")):
            self.assert_refused(CHECKPOINT, "No space left")
        self.exported(CHECKPOINT)

    def test_an_output_that_is_a_file_is_refused(self):
        self.output.write_text("mine")

        self.assert_refused(CHECKPOINT, "is there, and is not a folder")

    def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(self):
        usage = unittest.mock.Mock(free=1000)

        with unittest.mock.patch("shutil.disk_usage", return_value=usage):
            self.assert_refused(CHECKPOINT, "its disk has 0.00 GB free")

    def test_storages_shared_by_too_many_tensors_are_refused(self):
        weights = {f"x{i}": t.tensor("0", 2500, [2500], [1]) for i in range(20)}
        for marker in ("q_proj.experts.w", "q_proj.output_experts.w"):
            weights[marker] = t.tensor("0", 2500, [5, 5, 100], [500, 100, 1])
        file = t.write(self.folder / "m.pt", t.dictionary(weights), {"0": bytes(10000)})

        self.assert_refused(file, "repeat the same storages", "--config", self.write_json("c.json", {"num_heads": 1}))


class CommandLine(ExportCase):
    def test_quiet_prints_nothing(self):
        self.assertEqual(self.run_export(CHECKPOINT, "--quiet"), (0, "", ""))

    def test_runs_from_the_source_tree_without_being_installed(self):
        for command_line in (
            [str(TOOLS / "export/switchyard_export")],
            ["-m", "switchyard_export"],
        ):
            done = subprocess.run(
                [sys.executable, *command_line, "--help"], cwd=TOOLS / "export", capture_output=True, text=True
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("usage: switchyard-export", done.stdout)

    def test_never_loads_torch(self):
        program = (
            "import sys; sys.modules['torch'] = None; from switchyard_export.command import main; "
            f"sys.exit(main([{str(CHECKPOINT)!r}, '--output', {str(self.output)!r}, '--quiet']))"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=TOOLS / "export")

        self.assertEqual(done.returncode, 0)

    def test_reads_large_tensors_in_small_pieces(self):
        embedding = open_checkpoint(CHECKPOINT).tensors["embedding.weight"]

        with unittest.mock.patch("switchyard_export.input_file.CHUNK_BYTES", 64):
            pieces = [len(piece) for piece in embedding.chunks()]

        self.assertEqual(sum(pieces), 101 * 30 * 4)
        self.assertEqual(max(pieces), 64)
