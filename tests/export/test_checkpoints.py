"""Checkpoints as their projects save them: every tensor and every hyper-parameter arrives."""

import collections
import hashlib
import io
import json
import pickle
import shutil
import struct
import sys
import types
import unittest.mock
from math import prod

import torch_archive as t
from export_case import DATA, ExportCase, stored_tensors

EXPECTED = json.loads((DATA / "expected_tensors.json").read_text())


class Checkpoints(ExportCase):
    def check(self, folder, file, left_out=()):
        """Exports, and compares all tensors but those whose names end so."""
        tensors = self.exported(DATA / folder / file, "--verify")

        found = {
            name: [dtype, shape, hashlib.sha256(content).hexdigest()]
            for name, (dtype, shape, content) in tensors.items()
        }
        wanted = {name: fields for name, fields in EXPECTED[folder].items() if not name.endswith(tuple(left_out))}
        self.assertEqual(found, wanted)
        return json.loads((self.output / "config.json").read_text())

    def test_a_plain_state_dict_with_its_config_beside_it(self):
        config = self.check("moeut_att1", "model.pt")

        self.assertEqual(config, json.loads((DATA / "moeut_att1/config.json").read_text()))

    def test_a_single_layer(self):
        self.check("moa_layer", "model.pt")

    def test_a_training_checkpoint_gives_its_own_arguments_and_no_statistics(self):
        config = self.check(
            "moeut_train_preln", "model-100000.pth", left_out=["pkm.iter", "pkm.kv_sel_counts_100"]
        )

        self.assertEqual(config, json.loads((DATA / "moeut_train_preln/expected_config.json").read_text()))

    def test_shards_with_an_index_lose_their_constants(self):
        self.check("molm_identity_kv", "pytorch_model.bin.index.json", left_out=["attn.mask", "attn.cum_weight"])

    def test_a_folder_stands_for_the_index_in_it(self):
        self.check("molm_identity_kv", "", left_out=["attn.mask", "attn.cum_weight"])

    def test_what_was_exported_can_be_exported_again(self):
        once = self.exported(DATA / "molm_identity_kv", "--shard-bytes", 40000)
        first, self.output = self.output, self.folder / "again"

        self.assertEqual(self.exported(first), once)

    def test_the_family_is_told_by_the_tensor_names(self):
        families = {
            "moa_layer/model.pt": "moa_layer",
            "moeut_att1/model.pt": "moeut",
            "moeut_train_preln/model-100000.pth": "moeut_train",
            "molm_identity_kv": "moduleformer",
        }
        for index, (file, family) in enumerate(families.items()):
            self.output = self.folder / str(index)

            _, out, _ = self.run_export(DATA / file)

            self.assertRegex(out, rf"family +{family} \(told")


class Hyperparameters(ExportCase):
    def moeut_without_config(self):
        return shutil.copy(DATA / "moeut_att1/model.pt", self.folder)

    def test_names_what_is_missing_when_there_is_no_config(self):
        self.assert_refused(
            self.moeut_without_config(), "moeut: these hyper-parameters are missing: n_layers, n_heads. .*--config"
        )

    def test_names_what_the_given_config_lacks(self):
        config = self.write_json("mine.json", {"n_layers": 4})

        self.assert_refused(
            self.moeut_without_config(), "missing: n_heads. .*mine.json does not have them", "--config", config
        )

    def test_fills_in_what_the_shapes_say(self):
        config = self.write_json("mine.json", {"n_layers": 4, "n_heads": 3, "ff_k": 3})

        self.exported(self.moeut_without_config(), "--config", config)

        self.assertEqual(
            json.loads((self.output / "config.json").read_text()),
            {
                "n_layers": 4,
                "n_heads": 3,
                "ff_k": 3,
                "n_tokens": 101,
                "d_model": 30,
                "ff_n_experts": 9,
                "ff_expert_size": 10,
                "att_n_experts": 1,
                "d_head": 9,
                "group_size": 2,
            },
        )

    def test_refuses_a_config_that_contradicts_the_shapes(self):
        config = self.write_json("mine.json", {"n_layers": 4, "n_heads": 3, "d_model": 32})

        self.assert_refused(
            self.moeut_without_config(), "d_model is 32 in .*, but the shapes of the tensors say 30", "--config", config
        )

    def test_refuses_a_family_whose_tensors_are_not_there(self):
        self.assert_refused(
            DATA / "moeut_att1/model.pt", "--family jetmoe: .*no tensor model.embed_tokens.weight", "--family", "jetmoe"
        )


class SideFiles(ExportCase):
    def tokenizer_names(self):
        return sorted(path.name for path in self.output.glob("tokenizer*"))

    def test_a_sentencepiece_model_gets_the_name_the_server_looks_for(self):
        given = self.folder / "tokenizer.model.model"
        given.write_bytes(b"\n\x0e\n\x05<unk>")

        self.exported(DATA / "moeut_att1/model.pt", "--tokenizer", given)

        self.assertEqual((self.output / "tokenizer.model").read_bytes(), given.read_bytes())
        self.assertEqual(self.tokenizer_names(), ["tokenizer.model"])

    def test_the_tokenizer_beside_the_checkpoint_comes_along(self):
        source = shutil.copytree(DATA / "molm_identity_kv", self.folder / "in")
        (source / "tokenizer.json").write_text('{"model": {}}')
        (source / "tokenizer_config.json").write_text("{}")

        self.exported(source)

        self.assertEqual(self.tokenizer_names(), ["tokenizer.json", "tokenizer_config.json"])

    def test_refuses_a_tokenizer_that_is_none(self):
        given = self.folder / "notes.txt"
        given.write_text("hello")

        self.assert_refused(DATA / "moeut_att1/model.pt", "neither a SentencePiece", "--tokenizer", given)

    def test_the_ends_of_sequence_reach_generation_config(self):
        self.exported(DATA / "molm_identity_kv")

        generation = json.loads((self.output / "generation_config.json").read_text())
        self.assertEqual(generation, {"bos_token_id": 1, "eos_token_id": 1})


# Classes and functions of torch, as a pickle names them.
FloatStorage = type("FloatStorage", (), {"__module__": "torch"})


def _rebuild_tensor_v2(*arguments):
    return arguments


_rebuild_tensor_v2.__module__ = "torch._utils"


class Tensor:
    def __init__(self, key, shape):
        self.key, self.shape = key, shape

    def __reduce__(self):
        strides = tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
        return _rebuild_tensor_v2, (self.key, 0, self.shape, strides, False, collections.OrderedDict())


class Key(str):
    """Of a storage of 4 elements."""


class TorchPickler(pickle.Pickler):
    def persistent_id(self, value):
        return ("storage", FloatStorage, str(value), "cpu", 4) if isinstance(value, Key) else None


class PickleProtocols(ExportCase):
    def pickled(self, value, protocol):
        torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
        torch.FloatStorage, utils._rebuild_tensor_v2 = FloatStorage, _rebuild_tensor_v2
        out = io.BytesIO()
        with unittest.mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
            TorchPickler(out, protocol).dump(value)
        return out.getvalue()

    def test_every_protocol_that_torch_save_takes_gives_the_same_tensors(self):
        weights = {
            "q_proj.experts.w": Tensor(Key("0"), (2, 1, 2)),
            "q_proj.output_experts.w": Tensor(Key("1"), (2, 2, 1)),
        }
        value = {"state_dict": collections.OrderedDict(weights), "step": 1 << 40, "again": [weights, "é" * 300]}
        storages = {"0": struct.pack("<4f", 1, 2, 3, 4), "1": struct.pack("<4f", 5, 6, 7, 8)}
        config = self.write_json("mine.json", {"num_heads": 1})
        for protocol in (2, 3, 4, 5):
            with self.subTest(protocol):
                self.output = self.folder / f"out{protocol}"
                code = self.pickled(value, protocol)
                file = t.write(self.folder / "w.pt", code, storages, is_whole=True)

                tensors = self.exported(file, "--config", config)

                self.assertEqual(code[:2], bytes([0x80, protocol]))
                self.assertEqual(tensors["q_proj.experts.w"], ("F32", [2, 1, 2], storages["0"]))
                self.assertEqual(tensors["q_proj.output_experts.w"], ("F32", [2, 2, 1], storages["1"]))

    def test_a_protocol_of_the_future_is_refused(self):
        file = t.write(self.folder / "w.pt", b"\x80\x06N.", {}, is_whole=True)

        self.assert_refused(file, "has the pickle protocol 6; those of torch.save are 2 .* to 5")

    def test_a_frame_longer_than_the_pickle_is_refused(self):
        file = t.write(self.folder / "w.pt", b"\x80\x04\x95" + struct.pack("<Q", 3) + b"N.", {}, is_whole=True)

        self.assert_refused(file, "is truncated")


class WrappedNames(ExportCase):
    def test_words_that_wrappers_put_before_every_name_are_taken_away(self):
        weights = {
            "module._orig_mod.q_proj.experts.w": t.tensor("0", 4, [2, 1, 2], [2, 2, 1]),
            "module._orig_mod.q_proj.output_experts.w": t.tensor("0", 4, [2, 2, 1], [2, 1, 1]),
        }
        file = t.write(self.folder / "w.pt", t.dictionary({"state_dict": t.dictionary(weights)}), {"0": bytes(16)})

        self.exported(file, "--config", self.write_json("mine.json", {"num_heads": 1}))

        self.assertEqual(set(stored_tensors(self.output)), {"q_proj.experts.w", "q_proj.output_experts.w"})
