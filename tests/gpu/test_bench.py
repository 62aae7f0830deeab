"""gpu_bench under the stand-in: every row is there, and its bytes and operations are those counted by hand."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["SWITCHYARD_GPU_BENCH"]
FLAGS = (
    "--quick --batch 1 3 --kernel-batch 1 3 --context 6 --kernel-context 20 --steps 4 --prefill-tokens 24 --repeats 1"
).split()

# Bytes of one call for 1 and for 3 tokens. 48 tokens of vocabulary, dim 32, 2 heads of 8, BF16 weights, float32 else.
COMMON = {
    "dense, key or value": (16 * 32 * 2 + 48 * 4, 16 * 32 * 2 + 3 * 48 * 4),
    "dense, logits": (48 * 32 * 2 + 80 * 4, 48 * 32 * 2 + 3 * 80 * 4),
    "storing keys and values": (4 * 16 * 4 + 4, 3 * (4 * 16 * 4 + 4)),
    "norm": (2 * 32 * 4 + 32 * 4, 3 * 2 * 32 * 4 + 32 * 4),
    "residual": (3 * 32 * 4, 3 * 3 * 32 * 4),
    "embedding": (32 * 2 + 32 * 4 + 4, 3 * (32 * 2 + 32 * 4 + 4)),
    "sampling, greedy, with its copies": (48 * 4, 3 * 48 * 4),
    "sampling, temperature, with its copies": (48 * 4, 3 * 48 * 4),
}
KERNELS = {
    # Two of four experts: one token meets two of them, three tokens all four.
    "tiny-jetmoe": {
        "dense, feed-forward router": (4 * 32 * 2 + 36 * 4, 4 * 32 * 2 + 3 * 36 * 4),
        "experts, MoA query": (2 * 16 * 32 * 2 + (32 + 2 * 16) * 4, 4 * 16 * 32 * 2 + 3 * (32 + 2 * 16) * 4),
        "experts, MoA output": (2 * 16 * 32 * 2 + (2 * 16 + 32) * 4, 4 * 16 * 32 * 2 + 3 * (2 * 16 + 32) * 4),
        "experts, feed-forward up": (2 * 32 * 32 * 2 + (32 + 2 * 32) * 4, 4 * 32 * 32 * 2 + 3 * (32 + 2 * 32) * 4),
        "experts, feed-forward down": (2 * 16 * 32 * 2 + (2 * 16 + 32) * 4, 4 * 16 * 32 * 2 + 3 * (2 * 16 + 32) * 4),
        "router, choice": (4 * 4 + 2 * 8 + 4, 3 * (4 * 4 + 2 * 8 + 4)),
        # Read: ids, gates, margins, phases. Written: order, offsets. Both: 3 counters of 4 phases, 4 experts, 8 bytes.
        "router, grouping and counting": (
            2 * 8 + 4 + 4 + 2 * 4 + 5 * 4 + 2 * 3 * 16 * 8,
            3 * (2 * 8 + 4 + 4 + 2 * 4) + 5 * 4 + 2 * 3 * 16 * 8,
        ),
        # Keys and values of 20 tokens, 2 heads of 8; queries and results of 2 groups.
        "attention, softmax": (2 * 20 * 64 + 2 * 2 * 64, 3 * (2 * 20 * 64 + 2 * 2 * 64)),
        "attention, transformer-xl": (3 * 20 * 64 + 2 * 2 * 64, 3 * (2 * 20 * 64 + 2 * 2 * 64) + 20 * 64),
        "attention, stick-breaking": (2 * 20 * 64 + 2 * 2 * 64, 3 * (2 * 20 * 64 + 2 * 2 * 64)),
        "rope of the queries": (2 * 4 * 8 * 4 + 4, 3 * (2 * 4 * 8 * 4 + 4)),
        "activation": (2 * 3 * 16 * 4, 3 * 2 * 3 * 16 * 4),
    },
    # Heads choose two of three value and output experts; the feed-forward three of five, and three tokens all five.
    "tiny-moeut": {
        "dense, feed-forward router": (5 * 32 * 2 + 37 * 4, 5 * 32 * 2 + 3 * 37 * 4),
        "experts, SwitchHead value": (4 * 8 * 32 * 2 + (32 + 2 * 8) * 4, 6 * 8 * 32 * 2 + 3 * (32 + 2 * 8) * 4),
        "experts, SwitchHead output": (4 * 8 * 32 * 2 + (2 * 8 + 32) * 4, 6 * 8 * 32 * 2 + 3 * (2 * 8 + 32) * 4),
        "experts, feed-forward up": (3 * 8 * 32 * 2 + (32 + 3 * 8) * 4, 5 * 8 * 32 * 2 + 3 * (32 + 3 * 8) * 4),
        "experts, feed-forward down": (3 * 8 * 32 * 2 + (3 * 8 + 32) * 4, 5 * 8 * 32 * 2 + 3 * (3 * 8 + 32) * 4),
        "router, choice": (5 * 4 + 3 * 8 + 4, 3 * (5 * 4 + 3 * 8 + 4)),
        "router, grouping and counting": (
            3 * 8 + 4 + 4 + 3 * 4 + 6 * 4 + 2 * 3 * 20 * 8,
            3 * (3 * 8 + 4 + 4 + 3 * 4) + 6 * 4 + 2 * 3 * 20 * 8,
        ),
        "attention, softmax": (2 * 20 * 64 + 2 * 64, 3 * (2 * 20 * 64 + 2 * 64)),
        "attention, transformer-xl": (3 * 20 * 64 + 2 * 64, 3 * (2 * 20 * 64 + 2 * 64) + 20 * 64),
        "attention, stick-breaking": (2 * 20 * 64 + 2 * 64, 3 * (2 * 20 * 64 + 2 * 64)),
        "rope of the queries": (2 * 2 * 4 * 4 + 4, 3 * (2 * 2 * 4 * 4 + 4)),  # half of each head
        "activation": (2 * 3 * 8 * 4, 3 * 2 * 3 * 8 * 4),
    },
}

# Weights that one token reads. A layer of JetMoE: two norms 128, two routers 512, query and output 2 * 2 * 1024, key
# and value 2048, up 4096, down 2048; two layers, the last norm 64, the head 3072, a row of the embedding 64. One of
# MoEUT: norms 128, two head routers 768, query and key 2048, value and output 2 * 4 * 512, router 320, up and down
# 2 * 1536; run four times.
WEIGHT_BYTES = {"tiny-jetmoe": 2 * 12928 + 64 + 3072 + 64, "tiny-moeut": 4 * 10432 + 64 + 3072 + 64}
# With all experts: what the experts that one token leaves out have is added.
ALL_WEIGHT_BYTES = {
    "tiny-jetmoe": 29056 + 2 * (2 * 2048 + 4096 + 2048) + 2 * 64,
    "tiny-moeut": 44928 + 4 * (2 * 2 * 512 + 2 * 2 * 512) + 2 * 64,
}
# Layers (executed) * heads * (8 + 8) * 4 bytes.
KV_TOKEN_BYTES = {"tiny-jetmoe": 2 * 2 * 16 * 4, "tiny-moeut": 4 * 2 * 16 * 4}
# Twice the matrices times the tokens, twice the head, and queries with keys and values: 300 pairs of 24 tokens.
PREFILL_FLOPS = {
    "tiny-jetmoe": 2 * 24 * 12800 + 2 * 1536 + 4 * 2 * 4 * 8 * 300,
    "tiny-moeut": 2 * 24 * 20608 + 2 * 1536 + 4 * 4 * 2 * 8 * 300,
}


def measured(shape):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        result = subprocess.run(
            [PROGRAM, "--shape", shape, *FLAGS, "--json", str(path)], capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise AssertionError(f"gpu_bench exited with {result.returncode}: {result.stderr}")
        return json.loads(path.read_text()), result.stdout, sorted(os.listdir(folder))


class GpuBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs = {shape: measured(shape) for shape in KERNELS}

    def each(self):
        for shape, (report, table, files) in self.runs.items():
            with self.subTest(shape):
                yield shape, report, table, files

    def test_measures_every_kernel_and_counts_its_bytes_by_formula(self):
        for shape, report, _, _ in self.each():
            expected = {**COMMON, **KERNELS[shape]}
            for place, batch in enumerate((1, 3)):
                rows = {row["name"]: row["bytes"] for row in report["kernels"] if row["batch"] == batch}
                self.assertEqual(rows, {name: counts[place] for name, counts in expected.items()})

    def test_shares_are_those_of_the_copy_in_the_same_run(self):
        for _, report, _, _ in self.each():
            copy = (report["copy_bytes_per_second"]["before"] + report["copy_bytes_per_second"]["after"]) / 2
            for row in report["kernels"]:
                self.assertGreater(row["seconds"], 0)
                self.assertAlmostEqual(row["share_of_copy"] / (row["bytes"] / row["seconds"] / copy), 1)

    def test_one_request_reads_the_weights_that_its_token_meets(self):
        for shape, report, _, _ in self.each():
            self.assertEqual(report["decode"][0]["batch"], 1)
            self.assertEqual(report["decode"][0]["weight_bytes"], WEIGHT_BYTES[shape])

    def test_three_requests_read_the_experts_that_they_meet_together_once(self):
        for shape, report, _, _ in self.each():
            self.assertEqual(report["decode"][1]["batch"], 3)
            self.assertGreater(report["decode"][1]["weight_bytes"], WEIGHT_BYTES[shape] + 2 * 64)
            self.assertLessEqual(report["decode"][1]["weight_bytes"], ALL_WEIGHT_BYTES[shape])

    def test_keys_and_values_are_those_behind_the_tokens_of_each_step(self):
        for shape, report, _, _ in self.each():
            # The prompt of 6, a token from it and three steps before: 10, 11, 12 and 13 are read, and one is stored.
            tokens = (10 + 11 + 12 + 13) / 4 + 1
            self.assertEqual(report["decode"][0]["kv_bytes"], tokens * KV_TOKEN_BYTES[shape])
            self.assertEqual(report["decode"][1]["kv_bytes"], 3 * tokens * KV_TOKEN_BYTES[shape])

    def test_the_roofline_is_the_bytes_of_a_step_at_the_speed_of_the_copy(self):
        for _, report, _, _ in self.each():
            copy = (report["copy_bytes_per_second"]["before"] + report["copy_bytes_per_second"]["after"]) / 2
            for row in report["decode"]:
                roofline = row["batch"] * copy / (row["weight_bytes"] + row["kv_bytes"])
                self.assertAlmostEqual(row["roofline_tokens_per_second"] / roofline, 1)
                self.assertAlmostEqual(row["tokens_per_second"] * row["step_seconds"], row["batch"])
                self.assertAlmostEqual(row["share_of_roofline"] * roofline / row["tokens_per_second"], 1)

    def test_prefill_stands_beside_the_matrix_rate(self):
        for shape, report, _, _ in self.each():
            prefill = report["prefill"]
            rate = report["matrix_flops_per_second"]["rate"]
            self.assertEqual(prefill["flops"], PREFILL_FLOPS[shape])
            self.assertEqual(prefill["tokens"], 24)
            self.assertAlmostEqual(prefill["share_of_matrix_rate"] * rate * prefill["seconds"] / prefill["flops"], 1)

    def test_targets_have_verdicts_and_none_where_the_rate_is_not_of_cublas(self):
        for _, report, table, _ in self.each():
            one, three = report["decode"]
            self.assertEqual(one["target"], 0.75)
            self.assertEqual(one["verdict"], "met" if one["share_of_roofline"] >= 0.75 else "missed")
            self.assertNotIn("target", three)
            self.assertEqual(report["matrix_flops_per_second"]["source"], "switchyard")
            self.assertEqual(report["prefill"]["verdict"], "not judged without cuBLAS")
            self.assertRegex(table, r"(?m)^batch 1 .* 75 %   missed$")

    def test_the_report_is_there_as_a_whole(self):
        for _, _, _, files in self.each():
            self.assertEqual(files, ["report.json"])


if __name__ == "__main__":
    unittest.main()
