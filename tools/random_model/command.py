"""The command line of tools/make_random_model."""

import argparse
import signal
import sys

from switchyard_export.errors import ExportError
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

from random_model.configs import config_of
from random_model.layout import key_value_elements, layout
from random_model.random_values import RandomValues, zeros
from random_model.shapes import SHAPES, with_layers


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="make_random_model",
        description="Writes a random checkpoint (bfloat16) with the true shape of a published model, to measure with. "
        "It has no tokenizer: serve it token ids.",
    )
    parser.add_argument("--shape", choices=SHAPES, metavar="NAME", help="which model; --list names them")
    parser.add_argument("--output", metavar="DIR", help="folder to write; must hold no model yet")
    parser.add_argument("--layers", type=int, metavar="N", help="executed layers, instead of the model's own number")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="same seed, same bytes (default: 1)")
    parser.add_argument(
        "--zeros",
        action="store_true",
        help="every weight is zero: the files have their true sizes but take no disk space, for what reads headers only",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and write nothing")
    parser.add_argument("--list", action="store_true", help="print all shapes with their parameters")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    options = parser.parse_args(arguments)
    if not options.list and not options.shape:
        parser.error("give --shape NAME, or --list")
    if options.shape and not options.output and not options.dry_run and not options.list:
        parser.error("give --output DIR, or --dry-run")
    if options.seed < 0:
        parser.error(f"--seed is {options.seed}; it must not be negative")
    if options.layers is not None and options.layers < 1:
        parser.error(f"--layers is {options.layers}; it must be at least 1")
    return options


def main(arguments=None):
    """Returns the exit status."""
    options = parse_arguments(arguments)
    if options.list:
        print_list()
        return 0
    # As Ctrl-C does: through StagedFolder, which removes what is half done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        shape = SHAPES[options.shape]
        make(with_layers(shape, options.layers) if options.layers else shape, options)
    except (ExportError, OSError, ValueError) as error:
        print(f"make_random_model: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parameters(tensors):
    """(in total, active: what one token multiplies with or adds)."""
    return sum(tensor.elements for tensor in tensors), sum(tensor.used_elements for tensor in tensors)


def print_list():
    titles = f"{'total':>9} {'active':>9} {'kv/token':>9} {'file':>9}"
    print(f"{'name':<25} {'family':<13} {'width':>5} {'layers':>6} {titles}")
    for shape in SHAPES.values():
        total, active = parameters(layout(shape))
        print(
            f"{shape.name:<25} {shape.family:<13} {shape.dim:>5} {shape.layers:>6} {total / 1e6:>7.1f} M "
            f"{active / 1e6:>7.1f} M {key_value_elements(shape):>9} {total * 2 / 1e9:>6.2f} GB"
        )


def make(shape, options):
    tensors = layout(shape)
    values_of = zeros if options.zeros else RandomValues(options.seed).stored
    stored = {tensor.name: values_of(tensor) for tensor in tensors}
    shards = plan_shards(stored, DEFAULT_SHARD_BYTES)
    total, active = parameters(tensors)
    if not options.quiet:
        print(f"{shape.name}: {total / 1e6:.1f} M parameters, {active / 1e6:.1f} M active, {shape.layers} layers")
        for name, members in shards.items():
            print(f"  {name}: {len(members)} tensors, {sum(t.tensor_bytes for t in members.values()):,} bytes")
    if options.dry_run:
        return
    existing = existing_model_files(options.output, with_tokenizer=True)
    if existing:
        raise ExportError(f"--output {options.output}: holds {existing[0].name} already; choose another folder")
    check_disk_space(options.output, 0 if options.zeros else 2 * total)

    config = config_of(shape)
    with StagedFolder(options.output) as folder:
        write_json(folder.staging / "config.json", config)
        if "eos_token_id" in config:
            ids = {key: config[key] for key in ("bos_token_id", "eos_token_id")}
            write_json(folder.staging / "generation_config.json", ids)
        progress = Progress("writing", 2 * total, sys.stderr, options.quiet)
        write_weights(folder.staging, shards, progress.add, with_checksums=False)
        progress.finish()
        folder.publish()
