"""Compares a folder with what was meant to be written into it."""

import hashlib
from pathlib import Path

from switchyard_export.checkpoint import read_json_object
from switchyard_export.errors import ExportError
from switchyard_export.model_folder import INDEX_NAME, SINGLE_NAME
from switchyard_export.safetensors_file import read_safetensors


def verify_folder(folder, expected, on_bytes=lambda count: None):
    """Reads all weights of `folder` back. expected: {name: Written}, as the checkpoint gave them.

    Returns [(file name, tensors, bytes)]. ExportError names the first tensor that differs.
    """
    folder = Path(folder)
    index = folder / INDEX_NAME
    file_of = read_json_object(index)["weight_map"] if index.exists() else dict.fromkeys(expected, SINGLE_NAME)
    seen, rows = set(), []
    for file_name in dict.fromkeys(file_of.values()):
        tensors = read_safetensors(folder / file_name)
        for name, tensor in tensors.items():
            if name not in expected or file_of.get(name) != file_name:
                raise ExportError(f"{folder / file_name}: tensor {name} should not be here")
            _compare(folder / file_name, name, tensor, expected[name], on_bytes)
        seen.update(tensors)
        rows.append((file_name, len(tensors), sum(tensor.tensor_bytes for tensor in tensors.values())))
    for name in expected:
        if name not in seen:
            raise ExportError(f"{folder}: tensor {name} was not written")
    return rows


def _compare(file, name, tensor, expected, on_bytes):
    if (tensor.dtype, tensor.shape) != (expected.dtype, expected.shape):
        raise ExportError(
            f"{file}: tensor {name} is {tensor.dtype} of shape {tensor.shape}, "
            f"not {expected.dtype} of shape {expected.shape}"
        )
    checksum = hashlib.sha256()
    for chunk in tensor.chunks():
        checksum.update(chunk)
        on_bytes(len(chunk))
    if checksum.hexdigest() != expected.checksum:
        raise ExportError(
            f"{file}: tensor {name} reads back with the checksum {checksum.hexdigest()[:16]} where the checkpoint "
            f"gave {expected.checksum[:16]}; is the disk sound?"
        )
