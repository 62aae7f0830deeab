"""`serve` of a folder with one fault: the process says which file and which tensor, and ends with 1 before it is ready."""

import json
import os
import struct
import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import ServerProcess, run

WEIGHTS = "model.safetensors"
NORM = "model.layers.0.input_layernorm.weight"
ROUTER = "model.layers.1.mlp.router.layer.weight"


def parts_of(content):
    """(the header, the data) of a safetensors file."""
    (header_bytes,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + header_bytes]), content[8 + header_bytes :]


def file_of(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class BadFolders(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.elsewhere = Path(temporary.name)
        self.folder = tiny_model.write_moa(self.elsewhere / "model")

    def expect_no_server(self, *parts):
        result = run("serve", "--model", self.folder, "--listen", "127.0.0.1:0", "--threads", 1)

        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertNotIn("event=ready", result.stderr)
        failure = [line for line in result.stderr.splitlines() if "event=load_failed" in line]
        self.assertEqual(len(failure), 1, result.stderr)
        reason = result.stderr.splitlines()[-1]
        self.assertRegex(reason, "^error: the server did not start: ")
        for part in parts:
            self.assertIn(part, failure[0])
            self.assertIn(part, reason)

    def change_entry(self, name, **fields):
        """Of one tensor in the header; the data stays."""
        path = self.folder / WEIGHTS
        header, data = parts_of(path.read_bytes())
        header[name].update(fields)
        path.write_bytes(file_of(header, data))

    def entry(self, name):
        return parts_of((self.folder / WEIGHTS).read_bytes())[0][name]

    def test_no_folder(self):
        self.folder = self.elsewhere / "none"

        self.expect_no_server(f"{self.folder}: is not a folder that can be read", "name one with config.json and safetensors")

    def test_the_reason_is_told_without_a_log(self):
        (self.folder / "config.json").unlink()

        result = run("serve", "--model", self.folder, "--listen", "127.0.0.1:0", "--log-level", "off")

        self.assertEqual(result.returncode, 1)
        self.assertEqual(
            result.stderr,
            f"error: the server did not start: {self.folder / 'config.json'}: cannot be read: No such file or directory\n",
        )

    def test_header_longer_than_100_megabytes(self):
        path = self.folder / WEIGHTS
        path.write_bytes(struct.pack("<Q", (100 << 20) + 1))
        os.truncate(path, 200 << 20)  # a hole, so that the file is longer than the header claims to be

        self.expect_no_server(WEIGHTS, "claims 104857601 bytes", "the limit is 104857600")

    def test_header_longer_than_the_file(self):
        path = self.folder / WEIGHTS
        path.write_bytes(struct.pack("<Q", 1000) + b"{}")

        self.expect_no_server(WEIGHTS, "claims 1000 bytes; the file has 10")

    def test_header_of_brackets(self):
        header = b"[" * 1_000_000 + b"]" * 1_000_000
        (self.folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header)

        self.expect_no_server(WEIGHTS, "its header nests deeper than 64 levels")

    def test_overlapping_offsets(self):
        begin, end = self.entry(NORM)["data_offsets"]
        self.change_entry(NORM, data_offsets=[begin - 4, end - 4])

        self.expect_no_server(WEIGHTS, NORM, "overlap")

    def test_offsets_out_of_range(self):
        begin, end = self.entry(NORM)["data_offsets"]
        self.change_entry(NORM, data_offsets=[begin + (1 << 40), end + (1 << 40)])

        self.expect_no_server(WEIGHTS, NORM, "truncated")

    def test_offsets_that_leave_a_gap(self):
        path = self.folder / WEIGHTS
        header, data = parts_of(path.read_bytes())
        last = max(header, key=lambda name: header[name]["data_offsets"])
        header[last]["data_offsets"] = [offset + 4 for offset in header[last]["data_offsets"]]
        path.write_bytes(file_of(header, data + bytes(4)))

        self.expect_no_server(WEIGHTS, last, "leave a gap")

    def test_dtype_that_is_not_supported(self):
        self.change_entry(NORM, dtype="F8_E5M2")

        self.expect_no_server(WEIGHTS, NORM, "F8_E5M2")

    def test_dtype_that_is_none_of_weights(self):
        self.change_entry(NORM, dtype="I32")

        self.expect_no_server(WEIGHTS, NORM, "I32")

    def test_shape_whose_product_overflows(self):
        self.change_entry(NORM, shape=[1 << 32, 1 << 32])

        self.expect_no_server(WEIGHTS, NORM, "overflows")

    def test_index_that_names_a_missing_shard(self):
        folder = tiny_model.write_sharded_moa(self.elsewhere / "sharded")
        (folder / "model-00001-of-00002.safetensors").unlink()
        self.folder = folder

        self.expect_no_server("model.safetensors.index.json", "model-00001-of-00002.safetensors")

    def test_index_without_tensors(self):
        (self.folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')

        self.expect_no_server("model.safetensors.index.json", "names no tensor")

    def test_missing_tensor(self):
        tensors = tiny_model.moa_tensors()
        del tensors[ROUTER]
        tiny_model.write_model(self.folder, tiny_model.moa_config(), tensors)

        self.expect_no_server(WEIGHTS, ROUTER, "is missing")

    def test_tensor_that_nothing_asks_for(self):
        tensors = tiny_model.moa_tensors()
        tensors["model.layers.7.mlp.bias"] = tensors["model.layers.1.mlp.bias"]
        tiny_model.write_model(self.folder, tiny_model.moa_config(), tensors)

        self.expect_no_server(WEIGHTS, "model.layers.7.mlp.bias")

    def test_hyperparameters_that_contradict_the_shapes(self):
        config = dict(tiny_model.moa_config(), moe_num_experts=3)
        tiny_model.write_model(self.folder, config, tiny_model.moa_tensors())

        self.expect_no_server(WEIGHTS, "experts.input_linear.weight", "[4, 16, 16]", "[3, 16, 16]")

    def test_hyperparameters_that_no_model_has(self):
        for field, value, complaint in (
            ("num_hidden_layers", 2_000_000_000, "2000000000 layers"),
            ("rms_norm_eps", -1, "epsilon"),
            ("rope_theta", 0, "rotary base"),
        ):
            with self.subTest(field):
                config = dict(tiny_model.moa_config(), **{field: value})
                tiny_model.write_model(self.folder, config, tiny_model.moa_tensors())

                self.expect_no_server("config.json", complaint)

    def test_symbolic_link_that_leads_out(self):
        outside = self.elsewhere / "weights"
        (self.folder / WEIGHTS).rename(outside)
        (self.folder / WEIGHTS).symlink_to(outside)

        self.expect_no_server(WEIGHTS, "leads out of the model folder")

    def test_index_that_leads_out(self):
        (self.folder / WEIGHTS).rename(self.elsewhere / "weights")
        index = {"weight_map": {name: "../weights" for name in tiny_model.moa_tensors()}}
        (self.folder / "model.safetensors.index.json").write_text(json.dumps(index))

        self.expect_no_server("model.safetensors.index.json", "../weights", "not a plain file name")


class BadRouters(unittest.TestCase):
    def test_a_router_that_is_not_finite_is_warned_of_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            tensors = tiny_model.moa_tensors()
            dtype, shape, content = tensors[ROUTER]
            tensors[ROUTER] = (dtype, shape, content[:20] + struct.pack("<f", float("nan")) + content[24:])
            tiny_model.write_model(folder, tiny_model.moa_config(), tensors)

            with ServerProcess(folder) as server:
                result = run("health", "--server", server.address, "--wait", 60)

            self.assertEqual(result.returncode, 0, result.stderr)
            warnings = [line for line in server.log if "event=router_not_finite" in line]
            self.assertEqual(len(warnings), 1, server.log)
            self.assertIn(f"tensor={ROUTER} element=5", warnings[0])


if __name__ == "__main__":
    unittest.main()
