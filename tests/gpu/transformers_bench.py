#!/usr/bin/env python3
"""Decodes and prefills a random JetMoE in PyTorch `transformers`, to compare with gpu_bench on the same card.

    tests/gpu/transformers_bench.py --shape jetmoe-8b --json FILE

BF16 weights made on the device, batch 1, the library's own attention and cache. Where PyTorch, transformers or a device
is missing, or the library fails, the file says so and why, and this succeeds all the same: there is nothing to compare
with, which is no mistake of ours.
"""

import argparse
import inspect
import json
import os
import statistics
import sys
import time

# In the words of transformers.JetMoeConfig; the sizes of tests/gpu/model_shape.cc.
SHAPES = {
    "jetmoe-8b": {
        "vocab_size": 32000,
        "hidden_size": 2048,
        "num_hidden_layers": 24,
        "num_key_value_heads": 16,
        "kv_channels": 128,
        "intermediate_size": 5632,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 8192,
    },
    "tiny-jetmoe": {
        "vocab_size": 48,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "kv_channels": 8,
        "intermediate_size": 16,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 64,
    },
}
WARM_UP_STEPS = 4


class NotMeasured(Exception):
    """Why there is nothing to compare with."""


def libraries(device):
    try:
        import torch
    except ImportError as error:
        raise NotMeasured(f"PyTorch cannot be imported: {error}") from error
    if device == "cuda" and not torch.cuda.is_available():
        raise NotMeasured(f"PyTorch {torch.__version__} finds no CUDA device")
    try:
        import transformers

        return torch, transformers, transformers.JetMoeConfig, transformers.JetMoeForCausalLM
    except (ImportError, AttributeError) as error:
        raise NotMeasured(f"transformers has no JetMoE that can be imported: {error}") from error


class Bench:
    def __init__(self, flags):
        self.torch, self.transformers, config_class, model_class = libraries(flags.device)
        self.device = flags.device
        self.torch.manual_seed(1)
        self.torch.set_default_dtype(self.torch.bfloat16)
        with self.torch.device(flags.device):
            self.model = model_class(config_class(**SHAPES[flags.shape])).eval()
        # The last token's logits alone, as a server wants them, where the library knows how.
        parameters = inspect.signature(self.model.forward).parameters
        self.last_logits = {name: 1 for name in ("logits_to_keep", "num_logits_to_keep") if name in parameters}

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def seconds_of(self, call):
        self.wait()
        begin = time.perf_counter()
        result = call()
        self.wait()
        return time.perf_counter() - begin, result

    def prompt(self, tokens):
        ids = [(i * 7919 + 13) % self.model.config.vocab_size for i in range(tokens)]
        return self.torch.tensor([ids], device=self.device)

    def step(self, output):
        token = output.logits[:, -1:].argmax(-1)
        return self.model(token, past_key_values=output.past_key_values, use_cache=True)

    def decode_seconds(self, context, steps):
        output = self.model(self.prompt(context), use_cache=True, **self.last_logits)
        seconds = []
        for _ in range(WARM_UP_STEPS + steps):
            step_seconds, output = self.seconds_of(lambda before=output: self.step(before))
            seconds.append(step_seconds)
        return statistics.median(seconds[WARM_UP_STEPS:])

    def prefill_seconds(self, tokens, repeats):
        prompt = self.prompt(tokens)
        seconds = [
            self.seconds_of(lambda: self.model(prompt, use_cache=True, **self.last_logits))[0]
            for _ in range(repeats + 1)
        ]
        return statistics.median(seconds[1:])


def measured(flags):
    bench = Bench(flags)
    with bench.torch.inference_mode():
        step_seconds = bench.decode_seconds(flags.context, flags.steps)
        whole_seconds = bench.prefill_seconds(flags.prefill_tokens, flags.repeats)
    return {
        "measured": True,
        "shape": flags.shape,
        "torch": bench.torch.__version__,
        "transformers": bench.transformers.__version__,
        "decode": {"batch": 1, "context": flags.context, "tokens_per_second": 1 / step_seconds},
        "prefill": {"tokens": flags.prefill_tokens, "tokens_per_second": flags.prefill_tokens / whole_seconds},
    }


def report_of(flags):
    try:
        return measured(flags)
    except NotMeasured as reason:
        return {"measured": False, "reason": str(reason)}
    except Exception as error:  # whatever another project's code raises
        return {"measured": False, "reason": f"transformers failed: {type(error).__name__}: {error}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="jetmoe-8b")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: to try the script")
    parser.add_argument("--context", type=int, default=128, help="prompt tokens before the decode steps")
    parser.add_argument("--steps", type=int, default=32, help="decode steps to measure")
    parser.add_argument("--prefill-tokens", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3, help="prefills to measure")
    parser.add_argument("--json", required=True, help="a file for the numbers")
    flags = parser.parse_args()
    report = report_of(flags)
    with open(flags.json + ".partial", "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    os.replace(flags.json + ".partial", flags.json)
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
