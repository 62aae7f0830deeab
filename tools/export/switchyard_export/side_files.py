"""The files beside the weights: tokenizer and generation defaults."""

import shutil
from pathlib import Path

from switchyard_export.checkpoint import read_json_object
from switchyard_export.errors import ExportError
from switchyard_export.model_folder import TOKENIZER_NAMES


def find_tokenizer(given, checkpoint_folder):
    """{name in the output: file}. `given`: a file or folder that the person named, or None."""
    if given is None:
        return _tokenizer_in(checkpoint_folder)
    given = Path(given)
    if given.is_dir():
        found = _tokenizer_in(given)
        if not found:
            raise ExportError(f"--tokenizer {given}: the folder has neither tokenizer.json nor tokenizer.model")
        return found
    if not given.is_file():
        raise ExportError(f"--tokenizer {given}: there is no such file")
    if given.suffix == ".json":
        if "model" not in read_json_object(given):
            raise ExportError(f"--tokenizer {given}: is not a tokenizer.json: it has no field model")
        found = {"tokenizer.json": given}
    else:
        # A SentencePiece file begins with the field of its first piece.
        with open(given, "rb") as file:
            if file.read(1) != b"\n":
                raise ExportError(f"--tokenizer {given}: is neither a SentencePiece model nor a tokenizer.json")
        found = {"tokenizer.model": given}
    config = given.parent / "tokenizer_config.json"
    if config.is_file():
        found["tokenizer_config.json"] = config
    return found


def _tokenizer_in(folder):
    found = {name: folder / name for name in TOKENIZER_NAMES if (folder / name).is_file()}
    return found if "tokenizer.json" in found or "tokenizer.model" in found else {}


def copy_files(files, folder):
    for name, source in files.items():
        shutil.copyfile(source, Path(folder, name))


def generation_config(checkpoint_folder, config):
    """What generation_config.json should hold, or None when nothing is known."""
    beside = checkpoint_folder / "generation_config.json"
    if beside.is_file():
        return read_json_object(beside)
    known = {
        key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if config.get(key) is not None
    }
    return known or None
