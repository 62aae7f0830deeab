"""The whole program with its CUDA backend, on the stand-in of tests/cuda_host."""

import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard_process import ServerProcess, run

TOKENS = [1, 70, 12, 200, 33, 33, 90, 101, 5]
GENERATE = ("--prompt-tokens", "1,70,12", "--max-tokens", 9, "--temperature", 0, "--ignore-eos", "--format", "ids")


class CudaHost(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.models = (tiny_model.write_moa(self.folder / "moa"), tiny_model.write_switchhead(self.folder / "switchhead"))

    def logits(self, model, device):
        tiny_model.write_tokens(self.folder / "tokens.safetensors", TOKENS)
        output = self.folder / "output.safetensors"
        result = run("logits", "--model", model, "--tokens", self.folder / "tokens.safetensors", "--output", output,
                     "--device", device)
        self.assertEqual(result.returncode, 0, result.stderr)
        return tiny_model.read_safetensors(output)

    def generate(self, *flags):
        result = run("generate", *GENERATE, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_logits_are_those_of_the_cpu(self):
        for model in self.models:
            with self.subTest(model.name):
                cuda, cpu = self.logits(model, "cuda"), self.logits(model, "cpu")

                self.assertEqual(cuda.keys(), cpu.keys())
                for name, (_, numbers) in cuda.items():
                    self.assertLessEqual(max(abs(a - b) for a, b in zip(numbers, cpu[name][1])), 2e-4, name)

    def test_generates_what_the_cpu_generates_with_graphs_and_without(self):
        for model in self.models:
            with self.subTest(model.name):
                expected = self.generate("--model", model, "--device", "cpu")

                self.assertEqual(self.generate("--model", model, "--device", "cuda"), expected)
                self.assertEqual(self.generate("--model", model, "--device", "cuda", "--no-cuda-graphs"), expected)

    def test_serves_what_the_cpu_generates(self):
        expected = self.generate("--model", self.models[0], "--device", "cpu")

        with ServerProcess(self.models[0], "--device", "cuda:0", "--kv-cache-memory", "1%") as server:
            waited = run("health", "--server", server.address, "--wait", 60)
            self.assertEqual(waited.returncode, 0, waited.stderr)
            self.assertEqual(self.generate("--server", server.address), expected)
        self.assertIn("event=kv_cache_sized", "".join(server.log))

    def test_a_second_device_does_not_exist(self):
        result = run("generate", *GENERATE, "--model", self.models[0], "--device", "cuda:1")

        self.assertEqual(result.returncode, 1)
        self.assertIn("CUDA device 1 does not exist; this machine has 1", result.stderr)


if __name__ == "__main__":
    unittest.main()
