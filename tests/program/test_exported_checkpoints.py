"""From the file that a project saved to its numbers: every reference checkpoint is exported, loaded and run."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "export"))

import tiny_model  # noqa: E402
from export_case import ExportCase  # noqa: E402
from original_checkpoint import GOLDEN, write_original  # noqa: E402
from switchyard_process import run  # noqa: E402

LOGIT_TOLERANCE = 2e-4


class ExportedCheckpoints(ExportCase):
    def expect_golden_outputs(self, name):
        expected = tiny_model.read_safetensors(GOLDEN / name / "expected.safetensors")
        context_tokens = json.loads(run("inspect", self.output, "--json").stdout)["context_tokens"]
        for prompt in range(3):
            tokens, computed = self.folder / "tokens.safetensors", self.folder / "computed.safetensors"
            prompt_tokens, greedy = expected[f"p{prompt}.tokens"][1], expected[f"p{prompt}.greedy"][1]
            greedy = greedy[: context_tokens - len(prompt_tokens)]  # the reference went beyond its context
            tiny_model.write_tokens(tokens, prompt_tokens)
            flags = ("--tokens", tokens, "--output", computed, "--greedy", len(greedy), "--threads", 1)
            result = run("logits", "--model", self.output, *flags)
            self.assertEqual(result.returncode, 0, result.stderr)

            found = tiny_model.read_safetensors(computed)

            shape, wanted = expected[f"p{prompt}.logits"]
            self.assertEqual(found["logits"][0], shape)
            worst = max(abs(one - other) for one, other in zip(found["logits"][1], wanted))
            self.assertLessEqual(worst, LOGIT_TOLERANCE)
            self.assertGreater(len(greedy), 3)
            self.assertEqual(found["greedy"][1], greedy)

    def check(self, *names):
        for name in names:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.output = Path(folder, "exported")
                original = Path(folder, "original")
                original.mkdir()

                status, _, errors = self.run_export(write_original(name, original), "--verify")

                self.assertEqual(status, 0, errors)
                self.expect_golden_outputs(name)

    def test_jetmoe(self):
        self.check("jetmoe", "jetmoe_bf16_sharded")

    def test_switchhead_and_switchall(self):
        self.check("switchhead_rope", "switchhead_xl", "switchhead_xl_qkvo")
        self.check("switchall_rope", "switchall_xl", "switchall_options")

    def test_moeut_of_the_library(self):
        self.check("moeut", "moeut_att1")

    def test_moeut_of_the_training_code(self):
        self.check("moeut_train", "moeut_train_preln", "moeut_train_postln")

    def test_moa_of_the_training_code(self):
        self.check("moa_lm", "moa_lm_my")

    def test_moduleformer_and_molm(self):
        self.check("moduleformer", "moduleformer_gates", "molm_identity_kv")


if __name__ == "__main__":
    unittest.main()
