"""The bundled models: `score` against the perplexity that their trainer measured, and the demo as a whole."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from switchyard_process import PROGRAM, run

ROOT = Path(__file__).resolve().parents[2]
MODELS = ["bible-moa", "bible-switchhead"]


class DemoModels(unittest.TestCase):
    def test_score_equals_the_trainers_own(self):
        for name in MODELS:
            with self.subTest(name):
                folder = ROOT / "models" / name
                expected = json.loads((folder / "evaluation.json").read_text())

                result = run("score", "--model", folder, folder / expected["held_out"], "--json")

                self.assertEqual(result.returncode, 0, result.stderr)
                score = json.loads(result.stdout)
                self.assertEqual(score["predicted_tokens"], expected["tokens"])
                self.assertAlmostEqual(score["perplexity"] / expected["perplexity"], 1, delta=0.001)
                self.assertAlmostEqual(score["bits_per_byte"] / expected["bits_per_byte"], 1, delta=0.001)

    def test_the_demo_shows_a_completion_and_the_experts_of_both_models(self):
        result = subprocess.run(
            [ROOT / "tools" / "demo.sh", PROGRAM], capture_output=True, text=True, timeout=300
        )

        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stdout.count(" tokens/s, first token after "), 2)
        self.assertEqual(result.stdout.count("expert 3"), 2)

    def test_a_demo_whose_server_does_not_start_shows_what_it_said(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "switchyard")
            broken.write_text('#!/bin/sh\n[ "$1" = inspect ] || { echo "no luck today" >&2; exit 1; }\n')
            broken.chmod(0o755)

            result = subprocess.run([ROOT / "tools" / "demo.sh", broken], capture_output=True, text=True, timeout=60)

        self.assertNotEqual(result.returncode, 0)
        self.assertIn("demo failed", result.stderr)
        self.assertIn("no luck today", result.stderr)


if __name__ == "__main__":
    unittest.main()
