"""`logits`: names, shapes, and that the way of computing does not matter."""

import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import run

TOKENS = [1, 70, 12, 200, 33, 33, 90, 101, 5]


class Logits(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        tiny_model.write_tokens(self.folder / "tokens.safetensors", TOKENS)

    def logits(self, model, *flags):
        output = self.folder / "output.safetensors"
        result = run(
            "logits", "--model", model, "--tokens", self.folder / "tokens.safetensors", "--output", output, *flags
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return tiny_model.read_safetensors(output)

    def expect_equal(self, one, other, tolerance):
        self.assertEqual(one.keys(), other.keys())
        for name, (shape, numbers) in one.items():
            other_shape, other_numbers = other[name]
            self.assertEqual(shape, other_shape, name)
            largest = max(abs(a - b) for a, b in zip(numbers, other_numbers))
            self.assertLessEqual(largest, tolerance, name)

    def test_moa_output_has_the_names_and_shapes_of_the_reference_outputs(self):
        tensors = self.logits(tiny_model.write_moa(self.folder / "moa"), "--greedy", 4)

        shapes = {name: shape for name, (shape, _) in tensors.items()}
        expected = {"logits": [9, 266], "embed": [9, 16], "hidden.0": [9, 16], "hidden.1": [9, 16], "greedy": [4]}
        for router in ("layer0.attn", "layer0.ffn", "layer1.attn", "layer1.ffn"):
            expected.update({f"{router}.ids": [9, 2], f"{router}.weights": [9, 2]})
        self.assertEqual(shapes, expected)

    def test_switchhead_routing_has_a_row_for_each_head(self):
        tensors = self.logits(tiny_model.write_switchhead(self.folder / "switchhead"))

        self.assertEqual(tensors["layer1.attn_v.ids"][0], [9, 2, 2])
        self.assertEqual(tensors["layer1.attn_o.weights"][0], [9, 2, 2])
        self.assertNotIn("greedy", tensors)

    def test_cached_equals_full_bit_for_bit(self):
        for write in (tiny_model.write_moa, tiny_model.write_switchhead):
            model = write(self.folder / write.__name__)
            for device in ("reference", "cpu"):
                with self.subTest(write.__name__, device=device):
                    full = self.logits(model, "--device", device)
                    cached = self.logits(model, "--device", device, "--cached")

                    self.expect_equal(full, cached, 0)

    def test_devices_agree(self):
        model = tiny_model.write_moa(self.folder / "moa")

        reference = self.logits(model, "--device", "reference", "--greedy", 8)
        cpu = self.logits(model, "--device", "cpu", "--greedy", 8, "--threads", 2)

        self.expect_equal(reference, cpu, 2e-4)

    def test_greedy_begins_with_the_likeliest_token(self):
        tensors = self.logits(tiny_model.write_moa(self.folder / "moa"), "--greedy", 1)

        last_row = tensors["logits"][1][-266:]
        self.assertEqual(tensors["greedy"][1], [last_row.index(max(last_row))])

    def test_bf16_changes_the_numbers_a_little(self):
        model = tiny_model.write_moa(self.folder / "moa")

        stored = self.logits(model)["logits"][1]
        rounded = self.logits(model, "--dtype", "bf16")["logits"][1]

        self.assertNotEqual(stored, rounded)
        mean = sum(abs(a - b) for a, b in zip(stored, rounded)) / len(stored)
        self.assertLess(mean, 0.2)

    def expect_error(self, message, *flags):
        model = tiny_model.write_moa(self.folder / "moa")
        tokens = self.folder / "tokens.safetensors"
        result = run("logits", "--model", model, "--tokens", tokens, "--output", self.folder / "output", *flags)
        self.assertEqual(result.returncode, 1)
        self.assertIn(message, result.stderr)

    def test_a_token_outside_the_vocabulary_is_named(self):
        tiny_model.write_tokens(self.folder / "tokens.safetensors", [1, 2, 266])

        self.expect_error("token 2 has id 266; this model's ids are 0 to 265")

    def test_more_tokens_than_the_context_are_refused(self):
        tiny_model.write_tokens(self.folder / "tokens.safetensors", [1] * 97)

        self.expect_error("97 tokens; this model takes 1 to 96")

    def test_a_file_without_tokens_is_refused(self):
        (self.folder / "tokens.safetensors").write_bytes(tiny_model.safetensors_bytes({}))

        self.expect_error("no tensor named `tokens`")


if __name__ == "__main__":
    unittest.main()
