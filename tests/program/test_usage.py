"""The command line: help, versions, wrong usage."""

import unittest

from switchyard_process import run

COMMANDS = ["serve", "generate", "logits", "score", "inspect", "experts", "bench", "health"]


class Usage(unittest.TestCase):
    def test_help_names_every_command(self):
        result = run("--help")

        self.assertEqual(result.returncode, 0)
        for command in COMMANDS:
            self.assertRegex(result.stdout, rf"\n  {command} ")

    def test_each_command_has_help(self):
        for command in COMMANDS:
            with self.subTest(command):
                result = run(command, "--help")

                self.assertEqual(result.returncode, 0)
                self.assertIn("Usage: ", result.stdout)

    def test_version_is_a_name_and_a_number(self):
        result = run("--version")

        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^switchyard \d+\.\d+\.\d+\n$")

    def test_no_command_is_wrong_usage(self):
        result = run()

        self.assertEqual(result.returncode, 2)
        self.assertIn("subcommand is required", result.stderr)

    def test_an_unknown_flag_is_wrong_usage(self):
        result = run("inspect", "folder", "--colour", "red")

        self.assertEqual(result.returncode, 2)
        self.assertIn("--colour", result.stderr)

    def test_values_that_flags_do_not_take_are_wrong_usage(self):
        wrong = [
            ("generate", "--server", "x", "--prompt", "y", "--temperature", "warm"),
            ("generate", "--server", "x", "--prompt", "y", "--seed", "-1"),
            ("generate", "--model", "x", "--prompt", "y", "--device", "abacus"),
            ("logits", "--model", "x", "--tokens", "y", "--output", "z", "--dtype", "f64"),
            ("serve", "--model", "x", "--threads", "-1"),
            ("serve", "--model", "x", "--kv-cache-memory", "much"),
            ("serve", "--model", "x", "--kv-cache-memory", "0%"),
            ("serve", "--model", "x", "--kv-cache-memory", "101%"),
            ("serve", "--model", "x", "--kv-cache-memory", "many%"),
            ("serve", "--model", "x", "--stall-timeout", "0"),
            ("serve", "--model", "x", "--max-streams", "0"),
            ("serve", "--model", "x", "--max-message-bytes", "1"),
            ("serve", "--model", "x", "--log-level", "chatty"),
        ]
        for arguments in wrong:
            with self.subTest(arguments):
                result = run(*arguments)

                self.assertEqual(result.returncode, 2)
                self.assertIn(arguments[-2], result.stderr)

    def test_generate_wants_one_place_and_one_prompt(self):
        wrong = [
            ("generate", "--prompt", "x"),
            ("generate", "--server", "x"),
            ("generate", "--server", "x", "--model", "y", "--prompt", "z"),
            ("generate", "--server", "x", "--prompt", "y", "--prompt-tokens", "1"),
        ]
        for arguments in wrong:
            with self.subTest(arguments):
                self.assertEqual(run(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
