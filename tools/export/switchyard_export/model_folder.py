"""The folder the server loads. It is written out of sight first, so nobody ever finds half a model in it."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from switchyard_export.errors import ExportError
from switchyard_export.safetensors_file import write_safetensors

DEFAULT_SHARD_BYTES = 5_000_000_000
INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
TOKENIZER_NAMES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")

_FREE_DISK_BYTES = 64 << 20  # left free, for what else is written meanwhile


def plan_shards(tensors, shard_bytes):
    """{file name: {name: StoredTensor}}, in order; a tensor larger than a shard gets one of its own."""
    shards, filled = [{}], 0
    for name, tensor in tensors.items():
        if shards[-1] and filled + tensor.tensor_bytes > shard_bytes:
            shards.append({})
            filled = 0
        shards[-1][name] = tensor
        filled += tensor.tensor_bytes
    if len(shards) == 1:
        return {SINGLE_NAME: shards[0]}
    return {f"model-{i:05}-of-{len(shards):05}.safetensors": shard for i, shard in enumerate(shards, 1)}


def existing_model_files(folder, with_tokenizer):
    """Files that a new model in this folder would replace or contradict; its tokenizer only if it brings one."""
    patterns = ("config.json", "generation_config.json", INDEX_NAME, SINGLE_NAME, "model-*-of-*.safetensors")
    if with_tokenizer:
        patterns += TOKENIZER_NAMES
    return sorted(file for pattern in patterns for file in Path(folder).glob(pattern))


class StagedFolder:
    """A context: write into `staging`, then publish(). Without publish(), the output folder stays as it was."""

    def __init__(self, output):
        self.output = Path(output)
        self.staging = None

    def __enter__(self):
        self._made = []
        missing = self.output
        while not missing.exists():
            self._made.append(missing)
            missing = missing.parent
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            # Inside, for a rename must not cross file systems and the output may be a mount of its own.
            self.staging = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.output))
        except OSError as error:
            self._remove_made()
            raise ExportError(f"{self.output}: cannot be made a folder: {error.strerror}") from None
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.staging, ignore_errors=True)
        self._remove_made()

    def publish(self):
        """Moves everything into place, config.json last: a folder without it is not a model."""
        names = sorted(file.name for file in self.staging.iterdir())
        for stale in existing_model_files(self.output, with_tokenizer=bool(set(names) & set(TOKENIZER_NAMES))):
            stale.unlink()
        for name in sorted(names, key=lambda name: name == "config.json"):
            os.replace(self.staging / name, self.output / name)
        self._made = []
        return names

    def _remove_made(self):
        for folder in self._made:
            try:
                folder.rmdir()
            except OSError:
                return  # somebody else uses it, or it was never made


def check_disk_space(output, needed_bytes):
    existing = Path(output)
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if needed_bytes + _FREE_DISK_BYTES > free:
        raise ExportError(
            f"{output}: needs {needed_bytes / 1e9:.2f} GB, but its disk has {free / 1e9:.2f} GB free; "
            "free some or choose another --output"
        )


def write_weights(folder, shards, on_bytes=lambda count: None, with_checksums=True):
    """Writes every shard, and the index when there are several. Returns {name: Written} of all tensors."""
    written, file_of = {}, {}
    for file_name, tensors in shards.items():
        written.update(write_safetensors(Path(folder, file_name), tensors, on_bytes, with_checksums))
        file_of.update(dict.fromkeys(tensors, file_name))
    if len(shards) > 1:
        total = sum(tensor.tensor_bytes for tensors in shards.values() for tensor in tensors.values())
        write_json(Path(folder, INDEX_NAME), {"metadata": {"total_size": total}, "weight_map": file_of})
    return written


def write_json(path, value):
    Path(path).write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")
