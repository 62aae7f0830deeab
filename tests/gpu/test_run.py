"""tests/gpu/run.sh as on a machine with a card: its own parts, with nvidia-smi and the suites made up."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCH = os.environ["SWITCHYARD_GPU_BENCH"]
CARD = "NVIDIA Imaginary 1, 999.1"

SUITES = {
    "tests/kernels/kernels_test": "echo '[  PASSED  ] 7 tests.'",
    "tests/golden/golden_test": "echo '[  PASSED  ] 0 tests.'",  # as when the filter fits none
    "tests/engine/engine_test": "echo '[  FAILED  ] 1 test'; exit 1",
    "tests/end_to_end/end_to_end_test": "echo '[  PASSED  ] 3 tests.'",
    "switchyard": "echo 'bits per byte 1.9'",
}


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Machine:
    """A build folder and a PATH of made-up programs; gpu_bench is the real one."""

    def __init__(self, folder, card=CARD):
        self.build = folder / "build"
        self.results = folder / "results"
        for name, text in SUITES.items():
            write_program(self.build / name, text)
        (self.build / "tests/gpu").mkdir(parents=True)
        (self.build / "tests/gpu/gpu_bench").symlink_to(BENCH)
        write_program(folder / "bin/nvidia-smi", f"echo '{card}'" if card else "exit 9")
        write_program(folder / "bin/compute-sanitizer", "exit 0")
        self.environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "SWITCHYARD_BUILD": str(self.build),
            "SWITCHYARD_GPU_QUICK": "1",
            "SWITCHYARD_PYTHON": sys.executable,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self):
        return subprocess.run(
            [str(HERE / "run.sh"), str(self.results)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def result(self):
        return json.loads((self.results / "result.json").read_text())


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.machine = Machine(Path(cls.folder.name))
        cls.run_ = cls.machine.run()
        cls.result = cls.machine.result()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def rows(self):
        lines = [line for line in self.run_.stdout.splitlines() if line.startswith("| ")]
        return {what: text for what, _, text in (line[2:-2].split(" | ") for line in lines[1:])}

    def test_every_part_has_its_verdict_and_a_log(self):
        verdicts = {part["name"]: part["verdict"] for part in self.result["parts"]}

        self.assertEqual(
            verdicts,
            {
                "op_suite": "passed",
                "golden": "no tests",
                "batch_invariance": "failed",
                "end_to_end": "passed",
                "memcheck": "passed",
                "racecheck": "passed",
                "score_cuda": "passed",
                "score_cpu": "passed",
                "bench_tiny-jetmoe": "passed",
                "bench_tiny-moeut": "passed",
                "transformers": "passed",
            },
        )
        for name in verdicts:
            self.assertTrue((self.machine.results / f"{name}.log").exists(), name)

    def test_it_fails_when_a_part_failed_but_goes_on(self):
        self.assertEqual(self.run_.returncode, 1, self.run_.stderr)
        self.assertEqual(self.result["failures"], 2)

    def test_the_result_has_the_card_and_all_benchmarks(self):
        self.assertEqual(self.result["card"], CARD)
        self.assertRegex(self.result["date"], r"^\d{4}-\d\d-\d\d$")
        self.assertEqual([report["shape"] for report in self.result["benchmarks"]], ["tiny-jetmoe", "tiny-moeut"])
        self.assertEqual([row["batch"] for row in self.result["benchmarks"][0]["decode"]], [1, 3])

    def test_without_a_library_to_compare_with_the_reason_is_recorded(self):
        self.assertFalse(self.result["transformers"]["measured"])
        self.assertRegex(self.result["transformers"]["reason"], "PyTorch")
        self.assertIsNone(self.result["comparison"])

    def test_rows_name_card_and_date_and_say_what_came_out(self):
        rows = self.rows()

        self.assertIn(f"| {CARD}, {self.result['date']} |", self.run_.stdout)
        self.assertRegex(
            rows["op, golden, invariance and end-to-end suites"],
            r"^op_suite passed \(\d+ s\), golden no tests .*, batch_invariance failed .*, end_to_end passed",
        )
        self.assertRegex(rows["compute-sanitizer, memcheck and racecheck"], "^memcheck passed .*racecheck passed")
        self.assertRegex(rows["tiny-jetmoe: decode tokens/s"], r"^batch 1: \d+ \(\d+ % of the roofline, (met|missed)\)")
        self.assertRegex(rows["tiny-moeut: prefill tokens/s, 24 tokens"], "not judged without cuBLAS")
        self.assertRegex(
            rows["tiny-moeut: kernels of a decode step of 1, share of a device copy"], r"SwitchHead value \d+ %"
        )
        self.assertRegex(rows["the same JetMoE shape in PyTorch `transformers`"], "^not measured: PyTorch")


class RunElsewhere(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_without_a_card_it_says_so_and_measures_nothing(self):
        machine = Machine(self.folder, card="")

        result = machine.run()

        self.assertEqual(result.returncode, 2)
        self.assertIn("nvidia-smi finds no GPU", result.stderr)
        self.assertFalse((machine.results / "result.json").exists())

    def test_limits_add_up_to_less_than_eight_minutes(self):
        text = (HERE / "run.sh").read_text()

        fixed = [int(line.split()[2]) for line in text.splitlines() if line.strip().startswith("part ")]
        # The loop over two devices runs its part twice.
        total = sum(fixed) + next(int(line.split()[2]) for line in text.splitlines() if "part \"score_" in line)

        self.assertEqual(total, 475)
        self.assertIn(f"all parts together are {total} s", text)


class WriteResult(unittest.TestCase):
    """With numbers of a comparison, which needs a card."""

    def written(self, transformers):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "parts.tsv").write_text("op_suite\tpassed\t1.2\n")
            (folder / "transformers.json").write_text(json.dumps(transformers))
            report = {
                "shape": "jetmoe-8b",
                "copy_bytes_per_second": {"before": 4e12, "after": 4e12},
                "matrix_flops_per_second": {"rate": 7e14, "source": "cublas"},
                "kernels": [{"name": "norm", "batch": 1, "share_of_copy": 0.5}],
                "decode": [{"batch": 1, "tokens_per_second": 600.0, "share_of_roofline": 0.7, "verdict": "missed"}],
                "prefill": {
                    "tokens": 4096,
                    "tokens_per_second": 50000.0,
                    "share_of_matrix_rate": 0.25,
                    "verdict": "missed",
                },
            }
            (folder / "bench-jetmoe-8b.json").write_text(json.dumps(report))
            run = subprocess.run(
                [sys.executable, str(HERE / "write_result.py"), "--results", name, "--card", CARD, "--date", "2026-01-02"],
                capture_output=True,
                text=True,
                check=True,
            )
            return json.loads((folder / "result.json").read_text()), run.stdout

    def test_ten_times_as_fast_meets_the_target(self):
        result, table = self.written(
            {
                "measured": True,
                "shape": "jetmoe-8b",
                "decode": {"tokens_per_second": 60.0},
                "prefill": {"tokens_per_second": 10000.0},
            }
        )

        self.assertEqual(
            result["comparison"], {"decode_times": 10.0, "prefill_times": 5.0, "target": 10, "verdict": "met"}
        )
        self.assertIn("decode 60.0 tokens/s at batch 1, prefill 10000 tokens/s; ours is 10.0 times", table)
        self.assertIn("JetMoE-8B shape, BF16: decode tokens/s | NVIDIA Imaginary 1, 999.1, 2026-01-02 | batch 1: 600", table)

    def test_less_misses_it(self):
        result, _ = self.written(
            {
                "measured": True,
                "shape": "jetmoe-8b",
                "decode": {"tokens_per_second": 61.0},
                "prefill": {"tokens_per_second": 10000.0},
            }
        )

        self.assertEqual(result["comparison"]["verdict"], "missed")


if __name__ == "__main__":
    unittest.main()
