"""`score`: perplexity against the log-softmax of what `logits` writes."""

import json
import math
import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import run

TEXT = "the end and the beginning: naïve 東京 thing\n" * 4  # over the context of 96 tokens


class Score(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "text").write_text(TEXT, encoding="utf-8")

    def score(self, model, *flags):
        result = run("score", "--model", model, self.folder / "text", "--json", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def negative_log_likelihood(self, model, window, targets):
        tiny_model.write_tokens(self.folder / "window", window)
        run("logits", "--model", model, "--tokens", self.folder / "window", "--output", self.folder / "out")
        shape, logits = tiny_model.read_safetensors(self.folder / "out")["logits"]
        total = 0.0
        for row, target in enumerate(targets):
            values = logits[row * shape[1] : (row + 1) * shape[1]]
            largest = max(values)
            total += largest + math.log(sum(math.exp(value - largest) for value in values)) - values[target]
        return total

    def expect_windows(self, model, tokens, first, lead):
        """The definition, written once more: windows of 96 targets, each led by one token."""
        report = self.score(model)
        total = 0.0
        for begin in range(first, len(tokens), 96):
            targets = tokens[begin : begin + 96]
            window = [tokens[begin - 1] if lead is None else lead, *targets[:-1]]
            total += self.negative_log_likelihood(model, window, targets)

        predicted = len(tokens) - first
        self.assertEqual(report["tokens"], len(tokens))
        self.assertEqual(report["predicted_tokens"], predicted)
        self.assertAlmostEqual(report["perplexity"] / math.exp(total / predicted), 1.0, places=6)
        text_bytes = len(TEXT.encode())
        self.assertAlmostEqual(report["bits_per_byte"], total / math.log(2) / text_bytes, places=6)

    def test_a_model_with_bos_leads_each_window_with_it(self):
        model = tiny_model.write_moa(self.folder / "moa")

        self.expect_windows(model, tiny_model.encode(TEXT), first=0, lead=1)

    def test_a_model_without_bos_leads_with_the_token_before(self):
        model = tiny_model.write_switchhead(self.folder / "switchhead")

        self.expect_windows(model, tiny_model.encode(TEXT), first=1, lead=None)

    def test_devices_agree(self):
        model = tiny_model.write_moa(self.folder / "moa")

        reference = self.score(model, "--device", "reference")
        cpu = self.score(model, "--device", "cpu")

        self.assertAlmostEqual(reference["perplexity"] / cpu["perplexity"], 1.0, places=4)

    def test_text_output_has_the_same_numbers(self):
        model = tiny_model.write_moa(self.folder / "moa")

        result = run("score", "--model", model, self.folder / "text")

        report = self.score(model)
        self.assertIn(f"perplexity      {report['perplexity']:.4f}", result.stdout)
        self.assertIn(f"bits per byte   {report['bits_per_byte']:.4f}", result.stdout)

    def test_text_that_is_not_utf8_is_refused(self):
        (self.folder / "text").write_bytes(b"good \xff bad")

        result = run("score", "--model", tiny_model.write_moa(self.folder / "moa"), self.folder / "text")

        self.assertEqual(result.returncode, 1)
        self.assertIn("UTF-8", result.stderr)

    def test_empty_and_missing_files_are_refused(self):
        model = tiny_model.write_moa(self.folder / "moa")
        (self.folder / "empty").write_text("")

        for name in ("empty", "missing"):
            with self.subTest(name):
                result = run("score", "--model", model, self.folder / name)

                self.assertEqual(result.returncode, 1)
                self.assertIn(name, result.stderr)


if __name__ == "__main__":
    unittest.main()
