"""The reference checkpoints as their projects saved them.

A torch file is a pickle and the bytes of each storage. data/pickles has the pickles that the projects wrote; the bytes
are those of the golden sets, which were saved from the same state dicts. Where data/ has the whole file, that is used.
"""

import shutil
import zipfile

from export_case import DATA

from switchyard_export.inert_pickle import InertUnpickler
from switchyard_export.safetensors_file import read_safetensors
from switchyard_export.tensor import ELEMENT_BYTES
from switchyard_export.torch_file import _CONSTRUCTORS, PickledTensor, _storage

GOLDEN = DATA.parent.parent / "golden/data"
WHOLE_FILES = {
    "moeut_att1": "model.pt",
    "moeut_train_preln": "model-100000.pth",
    "molm_identity_kv": "pytorch_model.bin.index.json",
}
# Saved as safetensors by the projects themselves.
SAFETENSORS = ("jetmoe", "jetmoe_bf16_sharded")


def file_name(name):
    if name == "moeut":
        return "model.pt"
    return "pytorch_model.bin" if name.startswith("moduleformer") else "model-100000.pth"


def write_original(name, folder):
    """Writes the checkpoint of a golden set to `folder`, with the files beside it; returns what to export."""
    if name in SAFETENSORS:
        for file in GOLDEN.joinpath(name).glob("*"):
            if file.name != "expected.safetensors":
                shutil.copy(file, folder)
        return folder
    if name in WHOLE_FILES:
        shutil.copytree(DATA / name, folder, dirs_exist_ok=True)
        return folder / WHOLE_FILES[name]
    # The training code's files have their arguments inside.
    if file_name(name) != "model-100000.pth":
        shutil.copy(GOLDEN / name / "config.json", folder)
    return _write_archive(name, folder / file_name(name))


def _write_archive(name, path):
    code = DATA.joinpath("pickles", name + ".pkl").read_bytes()
    storages = {}

    def storage(persistent_id):
        made = _storage(persistent_id)
        storages[made.key] = made
        return made

    value = InertUnpickler(code, _CONSTRUCTORS, storage).load()
    weights = value.get("model", value)
    contents = {}
    for file in GOLDEN.joinpath(name).glob("model*.safetensors"):
        for tensor_name, tensor in read_safetensors(file).items():
            pickled = weights[tensor_name]
            assert isinstance(pickled, PickledTensor) and pickled.shape == tuple(tensor.shape), tensor_name
            contents[pickled.storage.key] = b"".join(tensor.chunks())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("save_tmp/data.pkl", code)
        for key, made in storages.items():
            # What is no weight is the optimizer's.
            content = contents.get(key) or bytes(made.elements * ELEMENT_BYTES[made.dtype])
            archive.writestr(f"save_tmp/data/{key}", content)
        archive.writestr("save_tmp/version", b"3\n")
    return path
