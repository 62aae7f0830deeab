"""`inspect`: what it says of good folders, and what it finds wrong with bad ones."""

import json
import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import run


class FolderTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name, "model")

    def expect_error(self, *parts):
        """inspect, and the commands that run a model, exit with 1 and one error line that has all parts."""
        result = run("inspect", self.folder)

        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)


class GoodFolders(FolderTest):
    def test_moa_model_in_numbers(self):
        tiny_model.write_moa(self.folder)

        report = json.loads(run("inspect", self.folder, "--json").stdout)

        self.assertEqual(report["family"], "jetmoe")
        self.assertEqual(report["vocabulary_size"], 266)
        self.assertEqual(report["model_dim"], 16)
        self.assertEqual(report["context_tokens"], 96)
        # Embedding 266 * 16, which is the head too; final norm 16; each of 2 layers: norms 2 * 16, attention router
        # 4 * 16, queries 4 * 16 * 16, outputs the same, bias 16, keys and values 32 * 16, feed-forward router
        # 4 * 16, inputs 4 * 24 * 16, outputs 4 * 16 * 12, bias 16.
        layer = 32 + 64 + 1024 + 1024 + 16 + 512 + 64 + 1536 + 768 + 16
        self.assertEqual(report["parameters_total"], 266 * 16 + 16 + 2 * layer)
        # 2 of 4 experts work on a token.
        unused = (1024 + 1024 + 1536 + 768) // 2
        self.assertEqual(report["parameters_active"], 266 * 16 + 16 + 2 * (layer - unused))
        self.assertEqual(report["weights_bytes"], 4 * report["parameters_total"])
        # 2 layers, 2 heads, keys and values of 8, 4 bytes each.
        self.assertEqual(report["kv_bytes_per_token"], 2 * 2 * (8 + 8) * 4)
        routers = [(r["layer"], r["kind"], r["heads"], r["experts"], r["top_k"]) for r in report["routers"]]
        self.assertEqual(
            routers, [(0, "attn", 1, 4, 2), (0, "ffn", 1, 4, 2), (1, "attn", 1, 4, 2), (1, "ffn", 1, 4, 2)]
        )

    def test_switchhead_model_has_a_router_for_each_head(self):
        tiny_model.write_switchhead(self.folder)

        report = json.loads(run("inspect", self.folder, "--json").stdout)

        self.assertEqual(report["family"], "switchhead")
        self.assertEqual(report["attention"]["kind"], "switchhead")
        routers = {(r["layer"], r["kind"], r["heads"], r["experts"], r["top_k"]) for r in report["routers"]}
        self.assertEqual(
            routers, {(0, "attn_v", 2, 4, 2), (0, "attn_o", 2, 4, 2), (1, "attn_v", 2, 4, 2), (1, "attn_o", 2, 4, 2)}
        )

    def test_text_spells_the_kv_formula_out(self):
        tiny_model.write_moa(self.folder)

        result = run("inspect", self.folder)

        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("256 bytes for each token = 2 layers x 2 kv heads x (8 key + 8 value) x 4 bytes", result.stdout)

    def test_shards_are_the_same_model(self):
        tiny_model.write_sharded_moa(self.folder)

        report = json.loads(run("inspect", self.folder, "--json").stdout)

        self.assertEqual(report["weights_bytes"], 4 * report["parameters_total"])


class BadFolders(FolderTest):
    def test_no_folder(self):
        self.expect_error(str(self.folder))

    def test_no_weights(self):
        (tiny_model.write_moa(self.folder) / "model.safetensors").unlink()

        self.expect_error("model.safetensors")

    def test_config_that_is_not_json(self):
        (tiny_model.write_moa(self.folder) / "config.json").write_text("{")

        self.expect_error("config.json")

    def test_unknown_family(self):
        config = {"model_type": "gpt2", "vocab_size": 10}
        tiny_model.write_model(self.folder, config, tiny_model.moa_tensors())

        self.expect_error("gpt2", "jetmoe")

    def test_truncated_weights(self):
        path = tiny_model.write_moa(self.folder) / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-100])

        self.expect_error("model.safetensors")

    def test_empty_weights(self):
        (tiny_model.write_moa(self.folder) / "model.safetensors").write_bytes(b"")

        self.expect_error("model.safetensors")

    def test_missing_shard(self):
        (tiny_model.write_sharded_moa(self.folder) / "model-00002-of-00002.safetensors").unlink()

        self.expect_error("model-00002-of-00002.safetensors")

    def test_missing_tensor(self):
        tensors = tiny_model.moa_tensors()
        del tensors["model.layers.1.self_attention.kv_proj.weight"]
        tiny_model.write_model(self.folder, tiny_model.moa_config(), tensors)

        self.expect_error("model.layers.1.self_attention.kv_proj.weight")

    def test_tensor_that_nothing_asks_for(self):
        tensors = tiny_model.moa_tensors()
        tensors["model.layers.2.mlp.bias"] = tensors["model.layers.1.mlp.bias"]
        tiny_model.write_model(self.folder, tiny_model.moa_config(), tensors)

        self.expect_error("model.layers.2.mlp.bias")

    def test_shape_that_contradicts_the_config(self):
        config = dict(tiny_model.moa_config(), ffn_hidden_size=13)
        tiny_model.write_model(self.folder, config, tiny_model.moa_tensors())

        self.expect_error("model.layers.0.mlp.input_linear.weight", "[4, 24, 16]", "[4, 26, 16]")

    def test_damaged_tokenizer(self):
        (tiny_model.write_moa(self.folder) / "tokenizer.json").write_text("[]")

        self.expect_error("tokenizer.json")

    def test_other_commands_say_the_same(self):
        path = tiny_model.write_moa(self.folder) / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-100])
        tiny_model.write_tokens(self.folder / "tokens", [1, 2])
        (self.folder / "text").write_text("text")
        commands = [
            ("generate", "--model", self.folder, "--prompt", "x"),
            ("logits", "--model", self.folder, "--tokens", self.folder / "tokens", "--output", self.folder / "out"),
            ("score", "--model", self.folder, self.folder / "text"),
            ("serve", "--model", self.folder, "--listen", "127.0.0.1:0"),
        ]
        for command in commands:
            with self.subTest(command[0]):
                result = run(*command)

                self.assertEqual(result.returncode, 1)
                self.assertIn("model.safetensors", result.stderr)


if __name__ == "__main__":
    unittest.main()
