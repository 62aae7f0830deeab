"""What nvcc makes of the kernels: registers, stack, spills and tensor-core instructions of each.

    device_code.py --source FOLDER --objects FOLDER --nvcc FILE --table FILE [--write] -- NVCC_FLAGS...

Compiles every kernel for each architecture and reads what the assembler reports and, for tensor cores, the machine code
itself: no disassembler has to be installed, and no device is needed. Fails when a kernel of the decode path spills, when
a kernel that should use tensor cores does not, or when the table of the same compiler release says something else.
--write makes the table anew. Objects that are newer than all sources are taken as they are.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import struct
import subprocess
import sys

ARCHITECTURES = (80, 90)
MACHINE_CUDA = 190
SECTION_BYTES = 64
INSTRUCTION_BYTES = 16
OPCODE_MASK = 0xFFF  # the lowest bits of an instruction, since sm_70
TENSOR_OPCODE = 0x23C

# What every token of a decode step goes through; the names of templates are beginnings.
MUST_NOT_SPILL = (
    "ActivateKernel", "AddKernel", "AttentionChunkKernel", "AttentionKernel", "AttentionMergeKernel", "CombineKernel",
    "EmbedKernel", "GroupByExpertKernel", "NormalizeKernel", "ProductLanesKernel<float, 1>",
    "ProductLanesKernel<unsigned short, 1>", "ProductNarrowKernel", "ProductWideKernel", "RopeKernel",
    "SelectExpertsKernel", "SelectTokensKernel", "StoreRowsKernel")
MUST_USE_TENSOR_CORES = ("AttentionChunkKernel", "AttentionKernel", "ProductNarrowKernel", "ProductWideKernel")


def compiled(arguments, source: pathlib.Path, newest: float) -> tuple:
    """(object, what the assembler reported)."""
    target = arguments.objects / f"{source.stem}.o"
    report = target.with_suffix(".txt")
    if target.exists() and report.exists() and target.stat().st_mtime > newest:
        return target, report.read_text()
    command = [arguments.nvcc, "-c", "-O3", "-DNDEBUG", "-Xptxas", "-v", "--compress-mode=none", *arguments.flags,
               f"-I{arguments.source}", str(source), "-o", str(target)]
    command += [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ARCHITECTURES]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")
    report.write_text(done.stdout)
    return target, done.stdout


def reported(text: str) -> dict:
    """(architecture, mangled name) -> registers, bytes of stack, bytes spilled."""
    found = {}
    parts = re.split(r"Compiling entry function '(\S+)' for 'sm_(\d+)'", text)
    for name, arch, rest in zip(parts[1::3], parts[2::3], parts[3::3]):
        registers = re.search(r"Used (\d+) registers", rest)
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", rest)
        found[int(arch), name] = (int(registers[1]), int(frame[1]), int(frame[2]) + int(frame[3]))
    return found


def cubins_in(data: bytes):
    """The ELF files of devices inside an object."""
    at = data.find(b"\x7fELF", 1)
    while at >= 0:
        machine = struct.unpack_from("<H", data, at + 18)[0]
        if machine == MACHINE_CUDA:
            yield data[at:]
        at = data.find(b"\x7fELF", at + 4)


def tensor_instructions(cubin: bytes) -> dict:
    """(architecture, mangled name) -> tensor-core instructions."""
    flags = struct.unpack_from("<I", cubin, 48)[0]
    # ABI version 8 of the format moved the architecture one byte up.
    arch = flags >> 8 & 0xFF if cubin[8] >= 8 else flags & 0xFF
    sections_at = struct.unpack_from("<Q", cubin, 40)[0]
    count, names_index = struct.unpack_from("<HH", cubin, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, sections_at + i * SECTION_BYTES) for i in range(count)]
    names_at = sections[names_index][4]
    found = {}
    for name_at, _, _, _, begin, size, _, _, _, _ in sections:
        end = cubin.index(b"\0", names_at + name_at)
        name = cubin[names_at + name_at:end].decode()
        if name.startswith(".text."):
            opcodes = (struct.unpack_from("<I", cubin, at)[0] & OPCODE_MASK
                       for at in range(begin, begin + size, INSTRUCTION_BYTES))
            found[arch, name[len(".text."):]] = sum(opcode == TENSOR_OPCODE for opcode in opcodes)
    return found


def rows_of(arguments) -> list:
    """(kernel, architecture, registers, stack, spills, tensor-core instructions), sorted."""
    arguments.objects.mkdir(parents=True, exist_ok=True)
    kernels = arguments.source / "kernels"
    newest = max(path.stat().st_mtime for folder in (kernels, kernels / "cuda") for path in folder.iterdir())
    resources, tensors = {}, {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = sorted((kernels / "cuda").glob("*.cu"))
        for target, report in pool.map(lambda source: compiled(arguments, source, newest), sources):
            resources.update(reported(report))
            for cubin in cubins_in(target.read_bytes()):
                tensors.update(tensor_instructions(cubin))
    keys = sorted(resources)
    names = subprocess.run(["c++filt"], input="\n".join(name for _, name in keys), text=True, check=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    shown = [re.sub(r"^void |switchyard::|\(.*$", "", name) for name in names]
    return sorted((name, key[0], *resources[key], tensors[key]) for name, key in zip(shown, keys))


def table_text(release: str, rows: list) -> str:
    lines = [f"nvcc {release}", f"{'kernel':<40} sm  registers  stack  spills  tensor"]
    for name, arch, registers, stack, spills, tensor in rows:
        lines.append(f"{name:<40} {arch} {registers:>10} {stack:>6} {spills:>7} {tensor:>7}")
    return "\n".join(lines) + "\n"


def errors_in(rows: list) -> list:
    errors = []
    for kernel in MUST_NOT_SPILL:
        found = [row for row in rows if row[0].startswith(kernel)]
        if {row[1] for row in found} != set(ARCHITECTURES):
            errors.append(f"{kernel} is compiled for {sorted({row[1] for row in found})}, not for {ARCHITECTURES}")
        errors += [f"{row[0]} spills {row[4]} bytes on sm_{row[1]}" for row in found if row[4] > 0]
    for kernel in MUST_USE_TENSOR_CORES:
        errors += [f"{row[0]} has no tensor-core instruction on sm_{row[1]}"
                   for row in rows if row[0].startswith(kernel) and row[5] == 0]
    return errors


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--objects", type=pathlib.Path, required=True)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--table", type=pathlib.Path, required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    printed = subprocess.run([arguments.nvcc, "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout
    release = re.search(r"release (\S+),", printed)[1]
    rows = rows_of(arguments)
    text = table_text(release, rows)
    print(text)
    if arguments.write:
        arguments.table.write_text(text)
    errors = errors_in(rows)
    kept = arguments.table.read_text()
    if kept.splitlines()[0] == f"nvcc {release}" and kept != text:
        errors.append(f"{arguments.table} says something else; look why, then run this with --write")
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()
