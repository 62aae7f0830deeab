"""Files that are broken, foreign or hostile: one line says why, nothing is run, nothing is left behind."""

import os
import pickle
import random
import shutil
import struct
import unittest.mock
import zipfile
from pathlib import Path

import torch_archive as t
from export_case import DATA, ExportCase

from switchyard_export.checkpoint import open_checkpoint
from switchyard_export.errors import ExportError

GOOD = t.tensor("0", 6, [2, 3], [3, 1])


class Reduces:
    """Pickles as a call, the way attacks do."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


class HostilePickles(ExportCase):
    def file_with(self, code):
        return t.write(self.folder / "m.pt", code, {"0": bytes(24)})

    def test_a_call_of_os_system_is_refused_and_not_made(self):
        proof = self.folder / "proof"
        attack = pickle.dumps(Reduces(os.system, f"touch {proof}"), protocol=2)[2:-1]

        self.assert_refused(
            self.file_with(t.dictionary({"w": GOOD, "x": attack})), "asks for posix.system.*Nothing of it was run"
        )
        self.assertFalse(proof.exists())

    def test_eval_is_refused_however_deep_it_lies(self):
        attack = t.name("builtins", "eval") + b"(" + t.text("1+1") + b"tR"
        for _ in range(50):
            attack = t.dictionary({"x": attack})

        self.assert_refused(self.file_with(t.dictionary({"w": GOOD, "x": attack})), "asks for builtins.eval")

    def test_eval_is_refused_by_a_name_from_the_stack_too(self):
        attack = t.text("builtins") + t.text("eval") + b"\x93(" + t.text("1+1") + b"tR"

        self.assert_refused(self.file_with(t.dictionary({"x": attack})), "asks for builtins.eval")

    def test_an_unknown_class_is_never_imported(self):
        (self.folder / "trap_module.py").write_text("open('sprung', 'w')\nclass Trap: pass\n")
        made = t.name("trap_module", "Trap") + b")R"
        weights = {name: GOOD for name in ("q_proj.experts.w", "q_proj.output_experts.w")}
        file = self.file_with(t.dictionary({"model": t.dictionary(weights), "trap": made}))

        with unittest.mock.patch("sys.path", [str(self.folder)]):
            tensors = open_checkpoint(file).tensors

        self.assertEqual(set(tensors), set(weights))
        self.assertFalse((self.folder / "sprung").exists())

    def test_a_call_of_a_call_is_refused(self):
        attack = t.name("pathlib", "Path") + b")R" + b")R"

        self.assert_refused(self.file_with(t.dictionary({"x": attack})), "not a class or function by name")

    def test_opcodes_that_torch_does_not_write_are_named(self):
        for code, opcode in ((b"cposixpath\njoin\n(lo", "LIST"), (b"iposixpath\njoin\n", "INST"), (b"\xff", "0xff")):
            with self.subTest(opcode):
                self.assert_refused(self.file_with(code), f"the opcode {opcode},")

    def test_a_whole_module_is_refused_with_the_remedy(self):
        module = t.name("moeut", "MoEUTLM") + b")\x81" + t.dictionary({"_modules": b"}"}) + b"b"

        self.assert_refused(self.file_with(module), r"whole moeut.MoEUTLM object; save its state_dict\(\)")

    def test_endless_work_is_bounded(self):
        with unittest.mock.patch("switchyard_export.inert_pickle.MAX_STEPS", 1000):
            self.assert_refused(self.file_with(b"}" * 2000), "more than 1000 steps")

    def test_damaged_pickles_are_refused_and_never_crash(self):
        with zipfile.ZipFile(DATA / "moeut_att1/model.pt") as archive:
            code = archive.read("model/data.pkl")
        chance = random.Random(7)
        refused = 0
        for _ in range(400):
            damaged = bytearray(code)
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(2, len(code))] = chance.randrange(256)
            try:
                open_checkpoint(self.file_with(bytes(damaged[2:-1])))
            except ExportError:
                refused += 1
        self.assertGreater(refused, 300)  # the rest changed a name or a number that may be anything


class ForeignFiles(ExportCase):
    def test_every_truncation_is_refused(self):
        whole = (DATA / "moa_layer/model.pt").read_bytes()
        file = self.folder / "cut.pt"
        for length in range(0, len(whole), 97):
            file.write_bytes(whole[:length])
            with self.subTest(length), self.assertRaises(ExportError):
                open_checkpoint(file)

    def test_a_truncated_file_says_so(self):
        file = self.folder / "cut.pt"
        file.write_bytes((DATA / "moa_layer/model.pt").read_bytes()[:20000])

        self.assert_refused(file, "is truncated")

    def test_a_flipped_byte_of_a_weight_is_found(self):
        content = bytearray((DATA / "moa_layer/model.pt").read_bytes())
        content[1100] ^= 1
        file = self.folder / "flipped.pt"
        file.write_bytes(content)
        config = DATA / "moa_layer/config.json"

        self.assert_refused(file, r"model/data/\d is damaged: its checksum", "--config", config)

    def test_a_bare_pickle_is_refused_with_the_remedy(self):
        file = self.folder / "old.pt"
        file.write_bytes(pickle.dumps({"w": 1}, protocol=2))

        self.assert_refused(file, "bare pickle, as torch.save wrote before torch 1.6.*save it again")

    def test_other_files_are_told_apart(self):
        contents = {
            b"": "is empty",
            b"hello, world": "is neither a file of torch.save",
            b"version https://git-lfs.github.com/spec/v1\n": "git lfs pull",
        }
        for content, message in contents.items():
            file = self.folder / "f.bin"
            file.write_bytes(content)
            self.assert_refused(file, message)

    def test_a_file_that_is_not_there_is_refused(self):
        self.assert_refused(self.folder / "none.pt", "there is no such file")

    def test_a_folder_with_several_checkpoints_is_refused(self):
        for number in (1, 2):
            shutil.copy(DATA / "moa_layer/model.pt", self.folder / f"model-{number}.pth")

        self.assert_refused(self.folder, "name one checkpoint file; there are 2 of them: model-1.pth, model-2.pth")


class Archives(ExportCase):
    def write(self, code=t.dictionary({"w": GOOD}), storages=None, **how):
        return t.write(self.folder / "m.pt", code, {"0": bytes(24)} if storages is None else storages, **how)

    def test_compressed_members_are_refused(self):
        self.assert_refused(
            self.write(compression=zipfile.ZIP_DEFLATED), r"archive/data.pkl is compressed \(method 8\)"
        )

    def test_a_huge_pickle_is_refused_before_it_is_read(self):
        self.assert_refused(self.write(b" " * (33 << 20)), "data.pkl has 34603011 bytes, above the limit of 33554432")

    def test_doubled_members_are_refused(self):
        with unittest.mock.patch("warnings.warn"):
            file = self.write(more=[("archive/data/0", bytes(24))])

        self.assert_refused(file, "two members called archive/data/0")

    def test_names_that_lead_out_are_refused(self):
        for name in ("archive/../../etc/passwd", "/etc/passwd", "archive//x", "C:\\x"):
            with self.subTest(name):
                self.assert_refused(self.write(more=[(name, b"x")]), "not a plain path")

    def test_members_of_another_top_are_refused(self):
        self.assert_refused(self.write(more=[("elsewhere/x", b"x")]), "elsewhere/x is outside archive/")

    def test_two_pickles_are_refused(self):
        self.assert_refused(self.write(more=[("other/data.pkl", b"x")]), "with 2 members")

    def test_a_torchscript_program_is_refused(self):
        self.assert_refused(self.write(more=[("archive/constants.pkl", b"x")]), "TorchScript")

    def test_a_big_endian_file_is_refused(self):
        self.assert_refused(self.write(more=[("archive/byteorder", b"big")]), "big-endian")

    def test_bytes_after_the_archive_are_refused(self):
        file = self.write()
        file.write_bytes(file.read_bytes() + b"more")

        self.assert_refused(file, "bytes after the zip archive")

    def test_overlapping_members_are_refused(self):
        # The first storage holds a whole member of its own, and the directory is made to point there.
        hidden = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 24, 24, 14, 0) + b"archive/data/1"
        content = self.write(storages={"0": hidden + bytes(24), "1": bytes(24)}).read_bytes()
        entry = content.rindex(b"archive/data/1") - 46
        target = struct.pack("<I", content.index(hidden))
        (self.folder / "m.pt").write_bytes(content[: entry + 42] + target + content[entry + 46 :])

        self.assert_refused(self.folder / "m.pt", "archive/data/0 and archive/data/1 overlap")

    def test_archives_beyond_4_gigabytes_have_another_directory_which_is_read_too(self):
        with unittest.mock.patch("zipfile.ZIP64_LIMIT", 100), unittest.mock.patch("zipfile.ZIP_FILECOUNT_LIMIT", 2):
            file = self.write(storages={"0": struct.pack("<6f", *range(6))})

        self.assertIn(b"PK\x06\x06", file.read_bytes())
        tensor = open_checkpoint(file).tensors["w"]
        self.assertEqual(struct.unpack("<6f", b"".join(tensor.chunks())), (0, 1, 2, 3, 4, 5))

    def test_a_path_is_never_extracted(self):
        self.run_export(self.write(more=[("archive/x", b"x")]))

        self.assertEqual(sorted(path.name for path in Path(self.folder).iterdir()), ["m.pt"])


class Tensors(ExportCase):
    def assert_tensor_refused(self, tensor, message, storages=None):
        code = t.dictionary({"w": tensor})
        file = t.write(self.folder / "m.pt", code, {"0": bytes(24)} if storages is None else storages)
        self.assert_refused(file, message)

    def test_a_missing_storage_is_refused(self):
        self.assert_tensor_refused(GOOD, "tensor w: its storage, member data/0, is missing", storages={})

    def test_a_storage_of_another_size_is_refused(self):
        self.assert_tensor_refused(GOOD, "has 20 bytes where 6 elements of F32", storages={"0": bytes(20)})

    def test_strides_beyond_the_storage_are_refused(self):
        self.assert_tensor_refused(t.tensor("0", 6, [2, 3], [4, 1]), "reaches beyond the 6 elements")

    def test_an_offset_beyond_the_storage_is_refused(self):
        self.assert_tensor_refused(t.tensor("0", 6, [2, 2], [2, 1], offset=3), "reaches beyond the 6 elements")

    def test_negative_numbers_are_refused(self):
        self.assert_tensor_refused(t.tensor("0", 6, [2, 3], [-3, 1]), "negative number")
        self.assert_tensor_refused(t.tensor("0", 6, [1], [1], offset=-1), "reaches beyond")
        self.assert_tensor_refused(t.tensor("0", -6, [1], [1]), "describes a storage by the wrong types")

    def test_a_storage_repeated_by_its_strides_is_refused(self):
        self.assert_tensor_refused(t.tensor("0", 6, [1000, 6], [0, 1]), "repeats the 6 elements")

    def test_unknown_storages_are_named(self):
        self.assert_tensor_refused(
            t.tensor("0", 6, [6], [1], storage="ComplexFloatStorage"),
            "torch.ComplexFloatStorage, which is not supported",
        )

    def test_a_file_without_weights_says_what_it_has(self):
        file = t.write(self.folder / "m.pt", t.dictionary({"epoch": t.whole(3)}), {})

        self.assert_refused(file, "holds no state dict.*found the keys 'epoch'")

    def test_foreign_weights_are_named(self):
        file = t.write(self.folder / "m.pt", t.dictionary({"fc.weight": GOOD}), {"0": bytes(24)})

        self.assert_refused(file, "no known family .*fc.weight.*known: jetmoe")

    def test_control_characters_of_names_do_not_reach_the_terminal(self):
        file = t.write(self.folder / "m.pt", t.dictionary({"\x1b[31mred": GOOD}), {"0": bytes(24)})

        _, _, errors = self.run_export(file)

        self.assertIn(r"\x1b[31mred", errors)


class Views(ExportCase):
    """Tensors that are parts of storages, or run through them in another order."""

    def numbers(self, tensor):
        file = t.write(self.folder / "m.pt", t.dictionary({"w": tensor}), {"0": struct.pack("<6f", *range(6))})
        opened = open_checkpoint(file).tensors["w"]
        content = b"".join(opened.chunks())
        return list(struct.unpack(f"<{opened.elements}f", content))

    def test_a_transposed_tensor_is_written_row_by_row(self):
        self.assertEqual(self.numbers(t.tensor("0", 6, [3, 2], [1, 3])), [0, 3, 1, 4, 2, 5])

    def test_a_part_of_a_storage(self):
        self.assertEqual(self.numbers(t.tensor("0", 6, [2, 2], [2, 1], offset=2)), [2, 3, 4, 5])

    def test_every_second_element(self):
        self.assertEqual(self.numbers(t.tensor("0", 6, [2], [2], offset=1)), [1, 3])

    def test_a_single_number_and_nothing_at_all(self):
        self.assertEqual(self.numbers(t.tensor("0", 6, [], [], offset=4)), [4])
        self.assertEqual(self.numbers(t.tensor("0", 6, [0, 3], [7, 1])), [])

    def test_a_transposed_tensor_larger_than_a_chunk(self):
        with unittest.mock.patch("switchyard_export.torch_file.CHUNK_BYTES", 4):
            self.assertEqual(self.numbers(t.tensor("0", 6, [3, 2], [1, 3])), [0, 3, 1, 4, 2, 5])
