#!/usr/bin/env python3
"""Puts together what the parts of tests/gpu/run.sh left behind: result.json, and rows for the table of docs/gpu.md.

Fails when a part failed, so that the script does.
"""

import argparse
import json
import os
import sys
from pathlib import Path

TIMES_TRANSFORMERS = 10  # aimed at, for one request
NAMES = {"jetmoe-8b": "JetMoE-8B shape, BF16", "moeut-1b": "MoEUT-1B shape, BF16"}


def read_parts(folder):
    parts = []
    for line in (folder / "parts.tsv").read_text(encoding="utf-8").splitlines():
        name, verdict, seconds = line.split("\t")
        parts.append({"name": name, "verdict": verdict, "seconds": float(seconds)})
    return parts


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def compared(benchmarks, transformers):
    """Decoding and prefill of the shape that transformers ran, over what it took there."""
    if not transformers or not transformers["measured"]:
        return None
    ours = next((report for report in benchmarks if report["shape"] == transformers["shape"]), None)
    decode = next((row for row in ours["decode"] if row["batch"] == 1), None) if ours else None
    if decode is None:
        return None
    times = decode["tokens_per_second"] / transformers["decode"]["tokens_per_second"]
    return {
        "decode_times": times,
        "prefill_times": ours["prefill"]["tokens_per_second"] / transformers["prefill"]["tokens_per_second"],
        "target": TIMES_TRANSFORMERS,
        "verdict": "met" if times >= TIMES_TRANSFORMERS else "missed",
    }


def percent(share):
    return f"{100 * share:.0f} %"


def verdicts(parts, names):
    chosen = [part for part in parts if part["name"] in names]
    return ", ".join(f"{part['name']} {part['verdict']} ({part['seconds']:.0f} s)" for part in chosen)


def judged(row):
    return f", {row['verdict']}" if "verdict" in row else ""


def kernel_rows(report, name):
    batches = sorted({row["batch"] for row in report["kernels"]})
    for batch in batches:
        shares = [
            f"{row['name']} {percent(row['share_of_copy'])}" for row in report["kernels"] if row["batch"] == batch
        ]
        yield f"{name}: kernels of a decode step of {batch}, share of a device copy", "; ".join(shares)


def benchmark_rows(report):
    name = NAMES.get(report["shape"], report["shape"])
    copy = report["copy_bytes_per_second"]
    matrix = report["matrix_flops_per_second"]
    anchors = (
        f"copy {copy['before'] / 1e9:.0f} and {copy['after'] / 1e9:.0f} GB/s, "
        f"BF16 matrix {matrix['rate'] / 1e12:.0f} TFLOP/s ({matrix['source']})"
    )
    yield f"{name}: anchors before and after", anchors
    yield from kernel_rows(report, name)
    decodes = [
        f"batch {row['batch']}: {row['tokens_per_second']:.0f} "
        f"({percent(row['share_of_roofline'])} of the roofline{judged(row)})"
        for row in report["decode"]
    ]
    yield f"{name}: decode tokens/s", "; ".join(decodes)
    prefill = report["prefill"]
    share = f"{percent(prefill['share_of_matrix_rate'])} of the matrix rate"
    yield (
        f"{name}: prefill tokens/s, {prefill['tokens']} tokens",
        f"{prefill['tokens_per_second']:.0f} ({share}, {prefill['verdict']})",
    )


def transformers_row(transformers, comparison):
    if transformers is None:
        return "not measured: it did not finish"
    if not transformers["measured"]:
        return f"not measured: {transformers['reason']}"
    text = (
        f"decode {transformers['decode']['tokens_per_second']:.1f} tokens/s at batch 1, "
        f"prefill {transformers['prefill']['tokens_per_second']:.0f} tokens/s"
    )
    if comparison is None:
        return text
    return f"{text}; ours is {comparison['decode_times']:.1f} times that in decode, {comparison['verdict']}"


def rows_of(result):
    parts = result["parts"]
    suites = ["op_suite", "golden", "batch_invariance", "end_to_end"]
    yield "op, golden, invariance and end-to-end suites", verdicts(parts, suites)
    checks = verdicts(parts, ["memcheck", "racecheck"]) or "not run: compute-sanitizer is not installed"
    yield "compute-sanitizer, memcheck and racecheck", checks
    for report in result["benchmarks"]:
        yield from benchmark_rows(report)
    yield (
        "the same JetMoE shape in PyTorch `transformers`",
        transformers_row(result["transformers"], result["comparison"]),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the folder of the parts' files")
    parser.add_argument("--card", required=True, help="name and driver, as nvidia-smi prints them")
    parser.add_argument("--date", required=True)
    flags = parser.parse_args()

    parts = read_parts(flags.results)
    benchmarks = [read_json(path) for path in sorted(flags.results.glob("bench-*.json"))]
    transformers = read_json(flags.results / "transformers.json")
    result = {
        "schema": 1,
        "card": flags.card,
        "date": flags.date,
        "failures": sum(part["verdict"] != "passed" for part in parts),
        "parts": parts,
        "benchmarks": benchmarks,
        "transformers": transformers,
        "comparison": compared(benchmarks, transformers),
    }
    partial = flags.results / "result.json.partial"
    partial.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, flags.results / "result.json")

    print("\n| what | card, driver, date | result |\n|---|---|---|")
    for what, text in rows_of(result):
        print(f"| {what} | {flags.card}, {flags.date} | {text} |")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
