"""Twice the load that a server can carry: it must refuse the excess at once, keep what it admits moving, and be its old self
afterwards."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from soak import Server  # noqa: E402

QUEUED = 32
REFUSAL_LIMIT_S = 0.05


def bench(options, server, folder, name, *arguments):
    output = os.path.join(folder, name + ".json")
    command = [options.client, "bench", "--server", server.address, "--output", output, "--prompt-tokens", "fixed:64",
               "--output-tokens", "fixed:32", "--warm-up-requests", "4", *map(str, arguments)]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return json.loads(Path(output).read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    server = Server(options.server, options.model, ["--max-queued", str(QUEUED)])
    with tempfile.TemporaryDirectory() as folder:
        before = bench(options, server, folder, "before", "--concurrency", 1, "--requests", 30)
        full = bench(options, server, folder, "full", "--concurrency", 64, "--duration", options.seconds / 2)
        rate = full["requests"]["completed_per_second"]
        over = bench(options, server, folder, "over", "--request-rate", 2 * rate, "--duration", options.seconds)
        after = bench(options, server, folder, "after", "--concurrency", 1, "--requests", 30)
        status = server.stop()

    def latency(report, name, percentile):
        return report["latency_seconds"][name][percentile]

    refused = over["failures"].get("RESOURCE_EXHAUSTED", {"count": 0, "seconds_until_answer": {"p99": 0, "max": 0}})
    # What is admitted waits for those before it in the queue, and then runs beside the others.
    bound = (QUEUED / rate) * 2 + 3 * latency(full, "end_to_end", "p99")
    print(f"carries {rate:.0f} requests/s; at {2 * rate:.0f}/s: {over['requests']['completed']} completed, {refused['count']} refused")
    print(f"refusals answered after: {refused['seconds_until_answer']}")
    print(f"admitted, end to end: p99 {latency(over, 'end_to_end', 'p99'):.3f} s, at most {bound:.3f} s is fine")
    print(f"one request alone: median {latency(before, 'end_to_end', 'p50'):.4f} s before, {latency(after, 'end_to_end', 'p50'):.4f} s after")
    failures = []
    if refused["count"] == 0:
        failures.append("nothing was refused at twice the rate")
    if set(over["failures"]) - {"RESOURCE_EXHAUSTED"}:
        failures.append(f"other errors than RESOURCE_EXHAUSTED: {over['failures']}")
    if refused["seconds_until_answer"]["p99"] > REFUSAL_LIMIT_S:
        failures.append("refusals took longer than 50 ms")
    if latency(over, "end_to_end", "p99") > bound:
        failures.append("admitted requests took too long")
    if latency(after, "end_to_end", "p50") > 2 * latency(before, "end_to_end", "p50"):
        failures.append("the server did not recover")
    if status != 0:
        failures.append(f"the server ended with status {status}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
