"""Plants mistakes in copies of kernels, one at a time, and expects the op tests to fail for each.

    planted_mistakes.py SOURCE_FOLDER BUILD_FOLDER

A mistake is compiled as the build compiles the file, and linked as the build links kernels_test, with the one object
replaced. A mistake that the tests let through is a hole in them; one whose text is not found has gone stale. A copy with
no mistake in it has to pass.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# file, what is there once, what stands there instead, which tests have to notice
MISTAKES = {
    "nothing": (
        "attention_chunk.cuh", "if (key <= position) {", "if (key <= position) {", "PagedAttentionTest.*"),
    "a missing barrier before staged keys are used": (
        "attention_chunk.cuh",
        "    __syncthreads();\n    TileLogits(",
        "    TileLogits(",
        "PagedAttentionTest.*"),
    "a missing barrier between slices of a product": (
        "product_matrix.cu",
        "      __syncthreads();\n      if (own < kTileFeatures * kTileRows) {",
        "      if (own < kTileFeatures * kTileRows) {",
        "MatMul*Reference*"),
    "a causal mask that hides a token from itself": (
        "attention_chunk.cuh", "if (key <= position) {", "if (key < position) {", "PagedAttentionTest.*"),
    "a causal mask that shows the next token": (
        "attention_chunk.cuh", "if (key <= position) {", "if (key <= position + 1) {", "PagedAttentionTest.*"),
    "a row of the next expert": (
        "product.h", "return {args.offsets[expert], args.offsets[expert + 1]};",
        "return {args.offsets[expert], args.offsets[expert + 1] + 1};", "ExpertMatMulTest.*"),
    "a last feature that is left out": (
        "product_lanes.cu", "feature < args.out_features && place", "feature + 1 < args.out_features && place",
        "MatMulTest.*"),
    "a gate that is not applied": (
        "product.h", "value *= args.gates[assignment];", "value *= 1;", "ExpertMatMulTest.*"),
    "an order that does not ascend": (
        "group_by_expert.cu", "PopulationCount(votes & ((1U << lane) - 1))", "PopulationCount(votes >> lane >> 1)",
        "GroupByExpertTest.*"),
    "a tie that the higher id wins": (
        "token_rank.h", "uint64_t{order} << 32 | static_cast<uint32_t>(~static_cast<uint32_t>(id))",
        "uint64_t{order} << 32 | static_cast<uint32_t>(id)", "SelectTokensTest.*LowestId*"),
    "a rotation of the wrong pair": (
        "rope.cu", "const int64_t second = first + args.half;", "const int64_t second = first + 1;", "RopeTest.*"),
    "a list of rows that is ignored": (
        "normalize.cu", "args.rows.exists() ? args.rows[row] : row;", "row;", "NormalizeTest.*"),
}

# The source whose object has the mistake, for mistakes in headers.
UNIT_OF = {
    "attention_chunk.cuh": "paged_attention.cu",
    "product.h": "product_lanes.cu",
    "token_rank.h": "select_tokens.cu",
}


class Build:
    def __init__(self, source: pathlib.Path, folder: pathlib.Path):
        self.source = source
        self.folder = folder
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.compile_commands = {
            pathlib.Path(entry["file"]).name: entry["command"]
            for entry in commands if "switchyard_cuda_host.dir" in entry["command"]
        }
        listed = subprocess.run(["ninja", "-t", "commands", "-s", "tests/kernels/kernels_test"], cwd=folder, check=True,
                                text=True, stdout=subprocess.PIPE).stdout
        # Without the step that lists the tests for ctest.
        self.link_command = listed.strip().splitlines()[-1]

    def object_of(self, unit: str) -> str:
        return re.search(r" -o (\S+)", self.compile_commands[unit]).group(1)

    def compiled(self, unit: str, work: pathlib.Path) -> str:
        planted = str(work / "planted.o")
        words = shlex.split(self.compile_commands[unit])
        if pathlib.Path(words[0]).name == "ccache":
            del words[0]
        words[words.index("-o") + 1] = planted
        words[-1] = str(work / "kernels" / "cuda" / unit)
        words = [word for word in words if word not in ("-O2", "-O3")]
        words[1:1] = [f"-I{work}", "-O1"]  # the copies come first, the rest of the tree after them
        subprocess.run(words, cwd=self.folder, check=True)
        return planted

    def fails_with(self, mistake: tuple, work: pathlib.Path) -> bool:
        name, text, instead, tests = mistake
        kernels = work / "kernels" / "cuda"
        kernels.mkdir(parents=True)
        for path in (self.source / "kernels" / "cuda").iterdir():
            (kernels / path.name).write_text(path.read_text())
        original = (kernels / name).read_text()
        if original.count(text) != 1:
            raise RuntimeError(f"{name} has {original.count(text)} places that read: {text}")
        (kernels / name).write_text(original.replace(text, instead))

        unit = UNIT_OF.get(name, name)
        program = str(work / "planted_test")
        link = self.link_command.replace(f" {self.object_of(unit)} ", f" {self.compiled(unit, work)} ")
        subprocess.run(re.sub(r" -o \S+", f" -o {program}", link), cwd=self.folder, shell=True, check=True)
        arguments = [program, f"--gtest_filter=*{tests}/cuda_host", "--gtest_brief=1", "--gtest_fail_fast"]
        # A test that fails and one that a fault of the stand-in stops are equally good.
        done = subprocess.run(arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if re.search(r"^\[=+\] 0 tests", done.stdout, re.MULTILINE):
            raise RuntimeError(f"no test is called {tests}")
        return done.returncode != 0


def main() -> None:
    build = Build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

    def fails(item: tuple) -> tuple:
        with tempfile.TemporaryDirectory() as work:
            return item[0], build.fails_with(item[1], pathlib.Path(work))

    errors = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for what, failed in pool.map(fails, MISTAKES.items()):
            print(f"{'caught' if failed else 'passed'}: {what}", flush=True)
            errors += failed != (what != "nothing")
    if errors:
        sys.exit(f"{errors} of {len(MISTAKES)} are not as they should be: every mistake caught, nothing passed")


if __name__ == "__main__":
    main()
