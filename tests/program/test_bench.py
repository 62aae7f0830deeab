"""`bench`: load on a running server, what it counts, saves and refuses."""

import json
import os
import pty
import subprocess
import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import COMMAND_TIMEOUT_S, PROGRAM, ServerProcess, run

DEMO_MODEL = Path(__file__).resolve().parents[2] / "models" / "bible-moa"
LATENCIES = ["time_to_first_token", "inter_token", "message_gap", "end_to_end", "server_queue"]


class WithServer(unittest.TestCase):
    MODEL = None  # a folder; None: a tiny MoA with a context of 96

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.server = ServerProcess(cls.MODEL or tiny_model.write_moa(cls.folder / "tiny-moa"))
        cls.addClassCleanup(cls.server.stop)
        waited = run("health", "--server", cls.server.address, "--wait", 60)
        assert waited.returncode == 0, waited.stderr

    def bench(self, *flags):
        return run("bench", "--server", self.server.address, *flags)

    def report(self, *flags):
        """The saved measurements of a load that succeeded."""
        path = self.folder / "report.json"
        result = self.bench("--output", path, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(path.read_text())


class DemoModel(WithServer):
    MODEL = DEMO_MODEL

    def test_a_mixed_load_is_accounted_for_and_exact(self):
        report = self.report(
            "--requests", 60, "--concurrency", 16, "--prompt-tokens", "uniform:1-40", "--output-tokens", "lognormal:12,0.5,40",
            "--shared-prefix-tokens", 20, "--shared-prefix-share", 0.5, "--temperature", 0.8, "--cancel-share", 0.3,
            "--deadline-share", 0.1, "--deadline-ms", 1, "--stall-share", 0.1, "--stall-seconds", 0.01, "--verify-share", 1,
            "--warm-up-requests", 2,
        )

        requests = report["requests"]
        ends = ["completed", "cancelled", "past_deadline", "stall_ended", "failed"]
        self.assertEqual(requests["started"], 60)
        self.assertEqual(sum(requests[end] for end in ends), 60)
        self.assertEqual(requests["failed"], 0, report["failures"])
        self.assertGreater(requests["cancelled"], 0)
        self.assertGreater(requests["completed"], 0)
        self.assertEqual(report["verification"], {"checked": requests["completed"], "mismatches": []})

    def test_text_prompts_come_from_a_file(self):
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text('{"prompt": "And the king said", "max_tokens": 5}\n{"prompt": "In the beginning"}\n')

        report = self.report("--prompts", prompts, "--requests", 4, "--output-tokens", 9)

        self.assertEqual(report["tokens"]["generated"], 2 * 5 + 2 * 9)
        self.assertEqual(report["load"]["prompts"], str(prompts))


class TinyModel(WithServer):
    def test_the_report_has_every_number(self):
        report = self.report("--requests", 10, "--concurrency", 3, "--prompt-tokens", 6, "--output-tokens", "fixed:8")

        self.assertEqual(report["schema"], 1)
        self.assertEqual(report["model"]["name"], "tiny-moa")
        self.assertEqual(report["load"]["concurrency"], 3)
        self.assertEqual(report["load"]["prompt_tokens"], "fixed:6")
        self.assertIsNone(report["load"]["request_rate"])
        self.assertIsNone(report["verification"])
        self.assertEqual(report["requests"]["completed"], 10)
        self.assertGreater(report["requests"]["completed_per_second"], 0)
        self.assertEqual(report["tokens"]["generated"], 80)
        self.assertEqual(report["tokens"]["prompt"], 60)
        self.assertEqual(report["failures"], {})
        self.assertEqual(report["server_counters"]["decode_tokens_computed"], 70)
        self.assertEqual(list(report["latency_seconds"]), LATENCIES)
        for name in LATENCIES:
            latency = report["latency_seconds"][name]
            self.assertEqual(list(latency), ["count", "mean", "p50", "p90", "p99", "max"])
            self.assertLessEqual(latency["p50"], latency["p90"])
            self.assertLessEqual(latency["p99"], latency["max"])
        self.assertEqual(report["latency_seconds"]["time_to_first_token"]["count"], 10)
        self.assertEqual(report["latency_seconds"]["inter_token"]["count"], 70)

    def test_warm_up_requests_are_not_counted(self):
        flags = ["--requests", 3, "--prompt-tokens", 6, "--output-tokens", 8]

        report = self.report(*flags, "--warm-up-requests", 5)

        self.assertEqual(report["requests"]["started"], 3)
        self.assertEqual(report["server_counters"]["decode_tokens_computed"], 21)

    def test_an_open_loop_sends_until_the_time_is_over(self):
        flags = ["--request-rate", 100, "--duration", 0.5, "--prompt-tokens", 6, "--output-tokens", 4]

        report = self.report(*flags)

        self.assertEqual(report["load"]["request_rate"], 100)
        self.assertEqual(report["load"]["max_seconds"], 0.5)
        self.assertIsNone(report["load"]["max_requests"])
        self.assertEqual(report["measured_seconds"], 0.5)
        self.assertGreater(report["requests"]["started"], 0)
        self.assertEqual(report["requests"]["completed"], report["requests"]["started"])

    def test_the_table_goes_to_standard_output_alone(self):
        result = self.bench("--requests", 4, "--prompt-tokens", 6, "--output-tokens", 8)

        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")
        self.assertIn("tiny-moa on " + self.server.address, result.stdout)
        self.assertRegex(result.stdout, r"\nrequests sent +4\n")
        self.assertRegex(result.stdout, r"\ntime to first token +[\d.]+ ")
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)

    def test_a_terminal_sees_progress_that_is_gone_at_the_end(self):
        terminal, end = pty.openpty()
        command = [PROGRAM, "bench", "--server", self.server.address, "--requests", "4", "--output-tokens", "8"]
        command += ["--prompt-tokens", "6"]
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=end, stdin=subprocess.DEVNULL, timeout=COMMAND_TIMEOUT_S, check=True
        )
        os.close(end)
        shown = os.read(terminal, 65536).decode()
        os.close(terminal)

        self.assertTrue(shown.startswith("\rload "), shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)
        self.assertNotIn(b"\r", result.stdout)

    def test_what_cannot_be_is_refused_by_name(self):
        prompts = self.folder / "bad.jsonl"
        prompts.write_text('{"prompt": 3}\n')
        wrong = [
            (2, ["--request-rate", "5", "--concurrency", "3"], ["--request-rate", "--concurrency"]),
            (2, ["--request-rate", "nan"], ["--request-rate", "nan"]),
            (2, ["--concurrency", "0"], ["--concurrency"]),
            (2, ["--requests", "0"], ["--requests"]),
            (2, ["--duration", "0"], ["--duration"]),
            (2, ["--prompt-tokens", "uniform:9-3"], ["--prompt-tokens", "uniform:9-3"]),
            (2, ["--output-tokens", "0"], ["--output-tokens"]),
            (2, ["--cancel-share", "1.5"], ["--cancel-share", "1.5"]),
            (2, ["--stall-share", "nan"], ["--stall-share"]),
            (2, ["--deadline-share", "0.5"], ["--deadline-ms"]),
            (2, ["--shared-prefix-share", "0.5"], ["--shared-prefix-tokens"]),
            (2, ["--prompts", "x", "--prompt-tokens", "3"], ["--prompts", "--prompt-tokens"]),
            (1, ["--cancel-share", "0.6", "--stall-share", "0.6"], ["--cancel-share", "1.2"]),
            (1, ["--output-tokens", "90", "--prompt-tokens", "7"], ["--output-tokens fixed:90", "96", "lower them by 1"]),
            (1, ["--prompts", self.folder / "absent"], ["absent"]),
            (1, ["--prompts", prompts], ["bad.jsonl, line 1", "prompt is no string"]),
            (1, ["--output", self.folder / "no" / "report.json"], ["--output", "no/report.json"]),
        ]
        for status, flags, parts in wrong:
            with self.subTest(flags=flags):
                result = self.bench(*flags)

                self.assertEqual(result.returncode, status, result.stderr)
                self.assertEqual(result.stdout, "")
                for part in parts:
                    self.assertIn(part, result.stderr)


class WithoutServer(unittest.TestCase):
    def test_an_unreachable_server_is_a_clear_error(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("bench", "--server", "127.0.0.1:1", "--output", Path(folder, "report.json"))

            self.assertEqual(os.listdir(folder), [])
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertIn("server 127.0.0.1:1: ", result.stderr)
        self.assertIn("switchyard health --server 127.0.0.1:1 --wait", result.stderr)

    def test_a_load_that_no_request_survives_fails(self):
        # Hundreds of steps, before each of which the server looks at deadlines that are over after the first few.
        with ServerProcess(DEMO_MODEL) as server:
            run("health", "--server", server.address, "--wait", 60)
            flags = ["--prompt-tokens", 6, "--output-tokens", 400, "--timeout", 0.001, "--requests", 3]
            result = run("bench", "--server", server.address, *flags)

        self.assertEqual(result.returncode, 1)
        self.assertIn("3 failed with DEADLINE_EXCEEDED", result.stdout)
        self.assertIn("no request completed", result.stderr)


if __name__ == "__main__":
    unittest.main()
