"""The command line: reads a checkpoint, writes a model folder."""

import argparse
import math
import signal
import sys
from pathlib import Path

from switchyard_export import __version__
from switchyard_export.errors import ExportError

try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit("switchyard-export needs numpy; install it with: pip install numpy (Debian: apt install python3-numpy)")

from switchyard_export.checkpoint import open_checkpoint, read_json_object
from switchyard_export.dtypes import DTYPE_OF_FLAG, converted
from switchyard_export.families import FAMILIES, complete_config, find_family, is_weight
from switchyard_export.model_folder import (
    DEFAULT_SHARD_BYTES,
    StagedFolder,
    check_disk_space,
    existing_model_files,
    plan_shards,
    write_json,
    write_weights,
)
from switchyard_export.progress import Progress
from switchyard_export.side_files import copy_files, find_tokenizer, generation_config
from switchyard_export.verify import verify_folder

_DESCRIPTION = "Turns a checkpoint of a sparse-attention language model into a folder that Switchyard serves."
_EPILOG = """\
CHECKPOINT is a file (.pt .pth .ckpt .bin of torch 1.6 or later, or .safetensors), an index of shards
(*.index.json), or a folder with one of them. Nothing of the file is executed. The exit status is 1
when the checkpoint is refused; the output folder is then as it was before.

families: """ + ", ".join(FAMILIES)

_MAX_REPETITION = 4  # of a checkpoint's own bytes in what is written; shared storages could repeat without end
_TORCH_DTYPE = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="switchyard-export",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="file or folder to read")
    parser.add_argument("--output", metavar="DIR", required=True, help="folder to write; made if it is not there")
    parser.add_argument("--family", choices=FAMILIES, metavar="F", help="default: told by the tensor names")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="JSON object with the hyper-parameters; default: from inside the checkpoint, "
        "else config.json or args.json beside it",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="FILE",
        help="tokenizer.json, a SentencePiece model under any name, or a folder with them; "
        "default: those beside the checkpoint",
    )
    parser.add_argument(
        "--dtype",
        choices=("bf16", "f16", "f32", "keep"),
        default="keep",
        help="of every floating-point tensor, rounded to nearest even (default: keep)",
    )
    parser.add_argument("--verify", action="store_true", help="read back what was written and compare checksums")
    parser.add_argument("--overwrite", action="store_true", help="replace a model that is in DIR already")
    parser.add_argument(
        "--shard-bytes",
        type=int,
        default=DEFAULT_SHARD_BYTES,
        metavar="N",
        help=f"largest file of weights (default: {DEFAULT_SHARD_BYTES})",
    )
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    if options.shard_bytes < 1:
        parser.error(f"--shard-bytes is {options.shard_bytes}; it must be at least 1")
    return options


def main(arguments=None):
    """Returns the exit status."""
    options = parse_arguments(arguments)
    # As Ctrl-C does: through StagedFolder, which removes what is half done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        export(options, lambda label, text: options.quiet or print(f"{label:<12}{printable(text)}", flush=True))
    except KeyboardInterrupt:
        return 130
    except (ExportError, OSError) as error:
        print(f"switchyard-export: {printable(error)}", file=sys.stderr)
        return 1
    return 0


def export(options, say):
    """say(label, text) reports a step."""
    checkpoint = open_checkpoint(options.checkpoint)
    say("checkpoint", f"{', '.join(file.name for file in checkpoint.files[:3])}: {_summary(checkpoint.tensors)}")
    config, where = _find_config(options, checkpoint)
    family = find_family(checkpoint.tensors, config, options.family)
    say("family", family.name + ("" if options.family else " (told by the tensor names)"))
    config = complete_config(family, config, checkpoint.tensors, where)
    say("config", f"{len(config)} entries from {where}")
    config = _plain_entries(config, say)

    tensors = {name: tensor for name, tensor in checkpoint.tensors.items() if is_weight(name)}
    dropped = len(checkpoint.tensors) - len(tensors)
    if dropped:
        say("left out", f"{dropped} tensors of statistics and constants, which inference does not need")
    if options.dtype != "keep":
        dtype = DTYPE_OF_FLAG[options.dtype]
        tensors = {name: converted(name, tensor, dtype) for name, tensor in tensors.items()}
        for key in ("torch_dtype", "dtype"):
            if isinstance(config.get(key), str):
                config[key] = _TORCH_DTYPE[dtype]
    tokenizer = find_tokenizer(options.tokenizer, checkpoint.folder)
    in_place = {name for name, file in tokenizer.items() if file.resolve() == Path(options.output, name).resolve()}
    new_tokenizer = {name: file for name, file in tokenizer.items() if name not in in_place}
    _check_output(options, checkpoint, tensors, with_tokenizer=bool(new_tokenizer))

    with StagedFolder(options.output) as folder:
        write_json(folder.staging / "config.json", config)
        generation = generation_config(checkpoint.folder, config)
        if generation:
            write_json(folder.staging / "generation_config.json", _plain_entries(generation, say))
        copy_files(new_tokenizer, folder.staging)
        _write_tensors(options, folder.staging, tensors, say)
        names = folder.publish()
    say("done", f"{options.output}: {', '.join(names)}")
    if not tokenizer:
        say("note", "no tokenizer was found; without one the server takes token ids only (see --tokenizer)")


def _write_tensors(options, staging, tensors, say):
    shards = plan_shards(tensors, options.shard_bytes)
    total = sum(tensor.tensor_bytes for tensor in tensors.values())
    files = "1 file" if len(shards) == 1 else f"{len(shards)} files"
    say("writing", f"{files}: {_summary(tensors)}")
    progress = Progress("writing", total, sys.stderr, options.quiet)
    written = write_weights(staging, shards, progress.add, with_checksums=options.verify)
    progress.finish()
    if options.verify:
        progress = Progress("verifying", total, sys.stderr, options.quiet)
        rows = verify_folder(staging, written, progress.add)
        progress.finish()
        for file_name, count, file_bytes in rows:
            say("verified", f"{file_name}: {count} tensors, {file_bytes:,} bytes, all SHA-256 equal")


def _find_config(options, checkpoint):
    """(config or None, where it came from)."""
    if options.config:
        return read_json_object(Path(options.config)), options.config
    if checkpoint.arguments is not None:
        return checkpoint.arguments, "the checkpoint"
    for name in ("config.json", "args.json"):
        if (checkpoint.folder / name).is_file():
            return read_json_object(checkpoint.folder / name), f"{name} beside the checkpoint"
    return None, "nowhere"


def _plain_entries(config, say):
    """The entries that JSON can hold. What an inert record stood for is not a hyper-parameter."""
    plain = {key: value for key, value in config.items() if isinstance(key, str) and _is_plain(value)}
    if len(plain) < len(config):
        left = ", ".join(str(key) for key in config if key not in plain)
        say("left out", f"entries that are no plain values: {left}")
    return plain


def _is_plain(value, depth=0):
    if type(value) is float:
        return math.isfinite(value)
    if type(value) in (list, tuple):
        return depth < 4 and all(_is_plain(item, depth + 1) for item in value)
    if type(value) is dict:
        return depth < 4 and all(type(k) is str and _is_plain(v, depth + 1) for k, v in value.items())
    return value is None or type(value) in (str, int, bool)


def _check_output(options, checkpoint, tensors, with_tokenizer):
    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise ExportError(f"--output {output}: is there, and is not a folder")
    existing = existing_model_files(output, with_tokenizer)
    sources = {file.resolve() for file in checkpoint.files}
    for file in existing:
        if file.resolve() in sources:
            raise ExportError(f"--output {output}: is the folder of the checkpoint itself; choose another")
    if existing and not options.overwrite:
        raise ExportError(
            f"--output {output}: holds {existing[0].name} already; choose another folder or give --overwrite"
        )
    total = sum(tensor.tensor_bytes for tensor in tensors.values())
    stored = sum(file.stat().st_size for file in checkpoint.files)
    kept = sum(checkpoint.tensors[name].tensor_bytes for name in tensors)
    if kept > _MAX_REPETITION * stored:
        raise ExportError(
            f"its tensors have {kept} bytes, but its files {stored}: they repeat the same storages too often"
        )
    check_disk_space(output, total)


def _summary(tensors):
    dtypes = sorted({tensor.dtype for tensor in tensors.values()})
    total = sum(tensor.tensor_bytes for tensor in tensors.values())
    return f"{len(tensors)} tensors of {', '.join(dtypes)}, {total:,} bytes"


def printable(text):
    """Text from a file must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(text))
