"""Opens whatever holds a checkpoint: one file, an index of shards, or a folder with either."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional

from switchyard_export.errors import ExportError
from switchyard_export.inert_pickle import Record
from switchyard_export.input_file import InputFile
from switchyard_export.safetensors_file import read_safetensors
from switchyard_export.tensor import StoredTensor
from switchyard_export.torch_file import PickledTensor, TorchFile

INDEX_NAMES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
SINGLE_NAMES = ("model.safetensors", "pytorch_model.bin")
SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")

# Where projects put the weights inside what they save, when not at the top.
_WEIGHT_KEYS = ("model", "state_dict", "model_state_dict", "module")
# Wrappers of torch that put their own word before every name.
_WRAPPER_PREFIXES = ("module.", "_orig_mod.")
_MAX_JSON_BYTES = 64 << 20


@dataclass
class Checkpoint:
    folder: Path  # where its config.json and tokenizer lie, if anywhere
    files: List[Path] = field(default_factory=list)
    tensors: Dict[str, StoredTensor] = field(default_factory=dict)
    arguments: Optional[Dict[str, Any]] = None  # hyper-parameters from inside the file, as they were stored


def open_checkpoint(path):
    path = Path(path)
    file = find_file(path) if path.is_dir() else path
    if not file.is_file():
        raise ExportError(f"{file}: there is no such file")
    checkpoint = Checkpoint(folder=file.parent)
    if file.name.endswith(".index.json"):
        _read_shards(checkpoint, file)
    else:
        _read_file(checkpoint, file)
    if not checkpoint.tensors:
        raise ExportError(f"{file}: holds no tensors")
    checkpoint.tensors = _without_wrappers(checkpoint.tensors)
    if "__metadata__" in checkpoint.tensors:
        raise ExportError(f"{file}: has a tensor called __metadata__, a name that safetensors files reserve")
    return checkpoint


def find_file(folder):
    """The one file of a folder that is the checkpoint, or its index."""
    for name in INDEX_NAMES + SINGLE_NAMES:
        if (folder / name).is_file():
            return folder / name
    candidates = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if len(candidates) != 1:
        found = ", ".join(file.name for file in candidates[:10]) or "none"
        raise ExportError(f"{folder}: name one checkpoint file; there are {len(candidates)} of them: {found}")
    return candidates[0]


def read_json_object(path):
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            raise ExportError(f"{path}: is larger than {_MAX_JSON_BYTES} bytes")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExportError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{path}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ExportError(f"{path}: is not a JSON object")
    return value


def _read_shards(checkpoint, index_path):
    weight_map = read_json_object(index_path).get("weight_map")
    if not isinstance(weight_map, dict):
        raise ExportError(f'{index_path}: is not an index of shards: it has no object "weight_map"')
    for name, file_name in weight_map.items():
        if not isinstance(file_name, str) or file_name in ("", ".", "..") or set("/\\\0") & set(file_name):
            raise ExportError(f"{index_path}: puts tensor {name} into {file_name!r}, which is not a plain file name")
    for file_name in dict.fromkeys(weight_map.values()):
        file = index_path.parent / file_name
        if not file.is_file():
            raise ExportError(f"{index_path}: names the shard {file_name}, which is not there; download it")
        _read_file(checkpoint, file)
    for name in sorted(weight_map.keys() ^ checkpoint.tensors.keys()):
        where = "in the index, but in no shard" if name in weight_map else "in a shard, but not in the index"
        raise ExportError(f"{index_path}: tensor {name} is {where}")


def _read_file(checkpoint, file):
    opened = InputFile(file)
    start = opened.read(0, min(opened.file_bytes, 64))
    if start.startswith(b"PK"):
        tensors, arguments = _read_torch(file)
        checkpoint.arguments = arguments or checkpoint.arguments
    elif start[8:9] == b"{":
        tensors = read_safetensors(file)
    else:
        raise ExportError(f"{file}: {_what_else(start)}")
    for name in tensors:
        if name in checkpoint.tensors:
            raise ExportError(f"{file}: tensor {name} is in another shard too")
    checkpoint.tensors.update(tensors)
    checkpoint.files.append(file)


def _what_else(start):
    if start.startswith(b"\x80"):
        return (
            "is a bare pickle, as torch.save wrote before torch 1.6; open it where you trust it, with torch.load, "
            "and save it again with torch.save"
        )
    if start.startswith(b"version https://git-lfs"):
        return "is a pointer of Git LFS, not the file itself; run git lfs pull"
    if not start:
        return "is empty"
    return "is neither a file of torch.save (1.6 or later) nor safetensors"


def _read_torch(file):
    """(tensors, hyper-parameters or None)."""
    torch_file = TorchFile(file)
    saved = torch_file.value
    if isinstance(saved, Record) and isinstance(saved.state, dict) and "_modules" in saved.state:
        raise ExportError(f"{file}: holds a whole {saved.kind} object; save its state_dict() instead")
    weights = _find_weights(saved)
    if weights is None:
        raise ExportError(
            f"{file}: holds no state dict, neither at its top nor at {', '.join(_WEIGHT_KEYS)}; "
            f"found {_describe(saved)}"
        )
    tensors = {}
    for name, value in weights.items():
        if isinstance(value, PickledTensor):
            if not isinstance(name, str):
                raise ExportError(f"{file}: has a tensor whose name, {name}, is not text")
            tensors[name] = torch_file.tensor(name, value)
    return tensors, _find_arguments(saved)


def _find_weights(saved):
    if not isinstance(saved, dict):
        return None
    candidates = [saved] + [saved[key] for key in _WEIGHT_KEYS if isinstance(saved.get(key), dict)]
    # Beside the weights there may be a tensor or two of another kind, such as a random state.
    most = max(candidates, key=_count_tensors)
    return most if _count_tensors(most) else None


def _count_tensors(values):
    return sum(isinstance(value, PickledTensor) for value in values.values())


def _find_arguments(saved):
    invariants = saved.get("run_invariants")
    arguments = invariants.get("args") if isinstance(invariants, dict) else None
    return dict(arguments) if isinstance(arguments, dict) and arguments else None


def _describe(saved):
    if isinstance(saved, dict):
        return "the keys " + ", ".join(repr(key)[:40] for key in list(saved)[:10]) if saved else "an empty dictionary"
    return f"a {type(saved).__name__}"


def _without_wrappers(tensors):
    for prefix in _WRAPPER_PREFIXES * 2:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name[len(prefix) :]: tensor for name, tensor in tensors.items()}
    return tensors
