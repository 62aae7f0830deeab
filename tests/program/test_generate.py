"""`generate`, through a server and without one, and what a running server tells."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import PROGRAM, ServerProcess, run

SAMPLING = ["--temperature", 1.5, "--top-k", 50, "--top-p", 0.9, "--min-p", 0.01, "--repetition-penalty", 1.1]
SAMPLING += ["--typical-p", 0.95, "--no-repeat-ngram-size", 3, "--bad-word", "th", "--bad-word-tokens", "80,81"]
SAMPLING += ["--presence-penalty", 0.1, "--frequency-penalty", 0.1, "--seed", 7, "--max-tokens", 30, "--ignore-eos"]


class GenerateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.model = tiny_model.write_moa(cls.folder / "tiny-moa")
        cls.server = ServerProcess(cls.model)
        cls.addClassCleanup(cls.server.stop)
        waited = run("health", "--server", cls.server.address, "--wait", 60)
        assert waited.returncode == 0, waited.stderr

    def here(self, *flags):
        return self.generate("--model", self.model, *flags)

    def there(self, *flags):
        return self.generate("--server", self.server.address, *flags)

    def generate(self, *flags):
        result = run("generate", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_a_server_and_this_process_give_the_same_tokens(self):
        flags = ["--prompt", "the beginning", "--format", "ids", *SAMPLING]

        here, there = self.here(*flags).stdout, self.there(*flags).stdout

        self.assertEqual(here, there)
        self.assertEqual(len(here.split()), 30)

    def test_greedy_equals_the_offline_continuation(self):
        tokens, output = self.folder / "tokens", self.folder / "output"
        tiny_model.write_tokens(tokens, [1, 80, 81])
        run("logits", "--model", self.model, "--tokens", tokens, "--output", output, "--greedy", 12)
        expected = tiny_model.read_safetensors(output)["greedy"][1]

        flags = ["--prompt-tokens", "1,80,81", "--temperature", 0, "--max-tokens", 12, "--ignore-eos"]
        ids = self.there(*flags, "--format", "ids").stdout.split()

        self.assertEqual([int(token_id) for token_id in ids], expected)

    def test_allowed_tokens_are_the_only_ones(self):
        flags = ["--prompt-tokens", "1,80", "--max-tokens", 9, "--ignore-eos", "--format", "ids"]

        ids = self.here(*flags, "--allowed-token-id", 70, "--allowed-token-id", 71).stdout.split()

        self.assertEqual(len(ids), 9)
        self.assertLessEqual(set(ids), {"70", "71"})

    def test_a_token_file_is_the_same_prompt_as_its_ids(self):
        tiny_model.write_tokens(self.folder / "prompt", [1, 80, 81])
        flags = ["--temperature", 0, "--max-tokens", 5, "--format", "ids"]

        from_ids = self.here("--prompt-tokens", "1,80,81", *flags).stdout
        from_file = self.here("--prompt-tokens", self.folder / "prompt", *flags).stdout

        self.assertEqual(from_ids, from_file)

    def test_text_holds_whole_characters_whatever_the_tokens_are(self):
        result = subprocess.run(
            [PROGRAM, "generate", "--server", self.server.address, "--prompt", "x", *map(str, SAMPLING)],
            capture_output=True, check=True,
        )

        self.assertTrue(result.stdout.decode("utf-8").endswith("\n"))

    def test_json_has_every_event_and_the_logprobs(self):
        flags = ["--prompt", "x", "--max-tokens", 3, "--ignore-eos", "--logprobs", 2, "--format", "json"]

        events = [json.loads(line) for line in self.there(*flags).stdout.splitlines()]

        tokens = [token for event in events[:-1] for token in event["delta"].get("logprobs", [])]
        self.assertEqual(len(tokens), 3)
        self.assertTrue(all(len(token["top"]) == 2 for token in tokens))
        self.assertEqual(events[-1]["finished"]["reason"], "FINISH_REASON_LENGTH")
        self.assertEqual(events[-1]["finished"]["usage"]["completion_tokens"], 3)

    def test_logprobs_in_text_are_a_table_after_it(self):
        flags = ["--prompt-tokens", "1,80", "--max-tokens", 3, "--ignore-eos", "--logprobs", 1, "--temperature", 0]

        result = self.here(*flags)

        self.assertIn("logprob", result.stdout)

    def test_several_completions_are_printed_one_after_the_other(self):
        flags = ["--prompt-tokens", "1,80", "--max-tokens", 6, "--ignore-eos", "--temperature", 2, "--seed", 9]

        texts = self.here(*flags, "--n", 2).stdout
        ids = [self.there(*flags, "--n", 2, "--format", "ids").stdout for _ in range(2)]
        apart = [self.there(*flags[:-1], seed, "--format", "ids").stdout for seed in (9, 10)]

        self.assertRegex(texts, r"\[0\] 6 tokens, log-probability -[\d.]+, ended by the limit of tokens\n")
        self.assertIn("\n[1] 6 tokens", texts)
        self.assertEqual(ids[0], "".join(apart))
        self.assertEqual(ids[1], ids[0])

    def test_the_best_completion_is_printed_alone(self):
        flags = ["--prompt-tokens", "1,80", "--max-tokens", 6, "--ignore-eos", "--format", "ids"]

        best = self.there(*flags, "--best-of", 4, "--seed", 2).stdout
        found = self.there(*flags, "--beam-width", 3, "--length-penalty", 0.5, "--priority", 1).stdout

        self.assertEqual([len(best.split()), len(found.split())], [6, 6])

    def test_prompt_logprobs_are_a_table_of_their_own(self):
        flags = ["--prompt-tokens", "1,80,81", "--max-tokens", 1, "--prompt-logprobs", 1]

        for result in (self.here(*flags), self.there(*flags)):
            table = result.stdout.split("the prompt, from its second token on\n")[1].splitlines()
            self.assertEqual(len(table), 3)

        events = [json.loads(line) for line in self.there(*flags, "--format", "json").stdout.splitlines()]
        told = [token for event in events for token in event.get("prompt_logprobs", {}).get("tokens", [])]
        self.assertEqual(len(told), 2)

    def test_stats_go_to_standard_error(self):
        flags = ["--prompt-tokens", "1,80", "--max-tokens", 5, "--ignore-eos", "--stats"]

        for result in (self.here(*flags), self.there(*flags)):
            self.assertRegex(result.stderr, r"5 tokens at [\d.]+ tokens/s, first token after [\d.]+ ms, 2 prompt tokens")

    def test_bad_values_come_back_with_their_limits(self):
        wrong = [
            (["--prompt", "x", "--temperature", "-1"], "temperature"),
            (["--prompt", "x", "--temperature", "nan"], "temperature"),
            (["--prompt", ""], "prompt_text"),
            (["--prompt-tokens", "1,266"], "266"),
            (["--prompt-tokens", "1,,2"], "1,,2"),
            (["--prompt-tokens", ",".join(["5"] * 97)], "96"),
            (["--prompt", "x", "--max-tokens", "0"], "max_tokens"),
            (["--prompt", "x", "--logprobs", "21"], "top_logprobs"),
            (["--prompt", "x", "--typical-p", "0"], "typical_p"),
            (["--prompt", "x", "--no-repeat-ngram-size", "257"], "257"),
            (["--prompt", "x", "--bad-word", ""], "bad_words[0]"),
            (["--prompt", "x", "--bad-word-tokens", "1,,2"], "1,,2"),
            (["--prompt", "x", "--allowed-token-id", "266"], "allowed_token_ids[0]"),
            (["--prompt", "x", "--n", "17"], "n is 17"),
            (["--prompt", "x", "--n", "3", "--best-of", "2"], "best_of is 2"),
            (["--prompt", "x", "--beam-width", "2", "--temperature", "1"], "sampling"),
            (["--prompt", "x", "--priority", "101"], "priority is 101"),
            (["--prompt", "x", "--prompt-logprobs", "21"], "prompt_top_logprobs"),
        ]
        for flags, part in wrong:
            for where in (["--model", self.model], ["--server", self.server.address]):
                with self.subTest(flags=flags, where=where[0]):
                    result = run("generate", *where, *flags)

                    self.assertEqual(result.returncode, 1)
                    self.assertEqual(result.stdout, "")
                    self.assertIn(part, result.stderr)

    def test_no_server_is_a_clear_error(self):
        for command in (["generate", "--prompt", "x"], ["experts"], ["health"]):
            with self.subTest(command[0]):
                result = run(*command, "--server", "127.0.0.1:1")

                self.assertEqual(result.returncode, 1)
                self.assertIn("server 127.0.0.1:1", result.stderr)

    def test_experts_account_for_every_token(self):
        self.there("--prompt-tokens", "1,80,81", "--max-tokens", 4, "--ignore-eos")

        report = json.loads(run("experts", "--server", self.server.address, "--json").stdout)

        self.assertEqual(report["model"], "tiny-moa")
        kinds = [(router["layer"], router["kind"]) for router in report["routers"]]
        self.assertEqual(kinds, [(0, "attn"), (0, "ffn"), (1, "attn"), (1, "ffn")])
        routed = report["tokens_routed"]["prefill"] + report["tokens_routed"]["decode"]
        self.assertGreaterEqual(routed, 6)
        for router in report["routers"]:
            self.assertEqual(router["tokens_routed"], routed)
            self.assertEqual(sum(expert["tokens"] for expert in router["stats"]), 2 * routed)

    def test_experts_table_can_leave_out_the_feed_forward(self):
        self.there("--prompt-tokens", "1,80,81", "--max-tokens", 4, "--ignore-eos")

        text = run("experts", "--server", self.server.address, "--attention").stdout

        self.assertIn("attn (", text)
        self.assertIn("expert 3", text)
        self.assertNotIn("ffn (", text)


class Serve(unittest.TestCase):
    def test_sigterm_ends_it_with_status_0(self):
        with tempfile.TemporaryDirectory() as folder:
            with ServerProcess(tiny_model.write_switchhead(Path(folder, "model")), "--drain-timeout", "1") as server:
                waited = run("health", "--server", server.address, "--wait", 60)

                status = server.stop()

        self.assertEqual(waited.stdout, "SERVING\n")
        self.assertEqual(status, 0)

    def test_a_taken_port_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_model.write_moa(Path(folder, "model"))
            with ServerProcess(model) as server:
                result = run("serve", "--model", model, "--listen", server.address)

        self.assertEqual(result.returncode, 1)
        self.assertIn(server.address, result.stderr)

    def test_sizes_may_have_units(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_model.write_moa(Path(folder, "model"))
            flags = ["--kv-cache-memory", "1M", "--name", "tiny", "--max-running", "3"]
            with ServerProcess(model, *flags) as server:
                run("health", "--server", server.address, "--wait", 60)
                log = "".join(server.log)

        # 1 MiB holds 1048576 / (16 tokens * 256 bytes) = 256 blocks of 16 tokens.
        self.assertIn("model=tiny ", log)
        self.assertIn("kv_tokens_total=4096 ", log)


if __name__ == "__main__":
    unittest.main()
