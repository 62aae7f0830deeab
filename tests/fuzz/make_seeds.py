#!/usr/bin/env python3
"""Writes the inputs that the fuzzers begin with, corpus/NAME/seed_*, from the reference checkpoints and tokenizers.

    python3 tests/fuzz/make_seeds.py       needs sentencepiece (Debian: python3-sentencepiece) for tokenizers of few bytes

Models are reference checkpoints with every size made smaller: a fuzzer spends its time on what is small.
"""

import json
import os
import re
import struct
import tempfile
from math import prod
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
GOLDEN = TESTS / "golden/data"
BOUNDARY = b"\n--file--\n"

# Of each set: {size in its shapes: smaller size}, and the config fields that say so.
SMALLER = {
    "jetmoe": (
        {97: 5, 40: 4, 56: 6, 28: 3, 24: 4, 48: 8, 5: 3},
        {"vocab_size": 5, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
         "kv_channels": 2, "ffn_hidden_size": 3, "moe_num_experts": 3},
    ),
    "moeut": (
        {97: 5, 34: 4, 39: 4, 15: 6, 13: 2, 11: 3, 12: 2},
        {"n_tokens": 5, "d_model": 4, "n_layers": 2, "group_size": 1, "n_heads": 2, "ff_n_experts": 3,
         "att_n_experts": 3, "d_head": 2, "ff_expert_size": 2},
    ),
    "moeut_att1": (
        {101: 5, 30: 4, 27: 4, 3: 2, 9: 3, 10: 2},
        {"n_tokens": 5, "d_model": 4, "n_layers": 1, "group_size": 1, "n_heads": 2, "ff_n_experts": 3, "d_head": 2,
         "ff_expert_size": 2},
    ),
    "moa_lm": (
        {97: 5, 36: 4, 79: 3, 28: 4, 14: 2, 7: 3},
        {"state_size": 4, "transformer.encoder_n_layers": 1, "transformer.ff_multiplier": 0.75,
         "transformer.head_projection_size": "2", "moe.att.n_experts": 3, "transformer.n_heads": 2},
    ),
    "moduleformer": (
        {97: 5, 36: 4, 48: 2, 24: 6, 14: 2, 5: 3, 7: 3, 22: 2},
        {"vocab_size": 5, "n_embd": 4, "n_layer": 1, "att_hidden": 6, "ffd_hidden": 2, "gating_size": 2,
         "n_att_experts": 3, "n_mlp_experts": 3},
    ),
    "moduleformer_gates": (
        {89: 5, 32: 4, 48: 2, 18: 6, 12: 2, 5: 3, 6: 3, 20: 2},
        {"vocab_size": 5, "n_embd": 4, "n_layer": 1, "n_head": 3, "att_hidden": 6, "ffd_hidden": 2, "gating_size": 2,
         "n_att_experts": 3, "n_mlp_experts": 3},
    ),
    "molm_identity_kv": (
        {97: 5, 32: 4, 40: 2, 12: 2, 6: 3, 8: 3, 24: 2},
        {"vocab_size": 5, "n_embd": 4, "n_layer": 1, "att_hidden": 4, "ffd_hidden": 2, "gating_size": 2,
         "n_att_experts": 3, "n_mlp_experts": 3},
    ),
    "moeut_train": (
        {97: 5, 34: 4, 39: 4, 15: 6, 13: 2, 11: 3, 12: 2},
        {"state_size": 4, "transformer.encoder_n_layers": 2, "transformer.universal.group_size": 1,
         "transformer.n_heads": 2, "transformer.head_projection_size": "2", "moe.att.n_experts": 3, "moe.n_experts": 3,
         "moe.expert_size": 2},
    ),
    "switchhead_xl_qkvo": (
        {97: 5, 32: 4, 64: 8, 22: 4, 8: 6, 11: 2},
        {"state_size": 4, "transformer.encoder_n_layers": 1, "transformer.n_heads": 2,
         "transformer.head_projection_size": "2", "moe.att.n_experts": 3},
    ),
    "switchall_options": (
        {97: 5, 28: 3, 36: 4, 9: 3, 12: 2, 24: 4, 10: 6},
        {"state_size": 4, "embedding_size": "3", "transformer.encoder_n_layers": 1, "transformer.n_heads": 2,
         "transformer.head_projection_size": "2", "moe.att.n_experts": 3, "moe.n_experts": 3, "moe.expert_size": 2},
    ),
}


def write(target, name, content):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed_{name}").write_bytes(content)


def config_of(golden):
    """The fields that a family reads: a training run has a hundred more."""
    sources = "".join(path.read_text() for path in (TESTS.parent / "engine/model/families").glob("*.cc"))
    known = set(re.findall(r'"([\w.]+)"', sources))
    config = json.loads((GOLDEN / golden / "config.json").read_text())
    return {key: value for key, value in config.items() if key in known}


def golden_tensors(golden):
    """[(name, dtype, shape, bytes)]."""
    for path in sorted((GOLDEN / golden).glob("model*.safetensors")):
        content = path.read_bytes()
        (header_bytes,) = struct.unpack("<Q", content[:8])
        for name, entry in json.loads(content[8 : 8 + header_bytes]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                data = content[8 + header_bytes :][begin:end]
                yield name, entry["dtype"], entry["shape"], data


def smaller_tensors(golden, sizes):
    for name, dtype, shape, data in golden_tensors(golden):
        if re.search(r"\.(h|layers|unique_layers)\.[1-9]", "." + name):
            continue
        shape = [sizes.get(size, size) for size in shape]
        if dtype == "F32":
            dtype, data = "BF16", b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4))
        yield name, dtype, shape, data[: prod(shape) * {"BF16": 2, "I8": 1, "I64": 8}[dtype]]


def safetensors(tensors):
    header, data = {}, b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_models():
    for golden, (sizes, fields) in SMALLER.items():
        config = json.dumps(config_of(golden) | fields, separators=(",", ":")).encode()
        tensors = list(smaller_tensors(golden, sizes))
        write("model", golden, config + BOUNDARY + safetensors(tensors))
        if golden == "jetmoe":
            shards = {"a": tensors[::2], "b": tensors[1::2]}
            index = {"weight_map": {tensor[0]: file for file, members in shards.items() for tensor in members}}
            files = [json.dumps(index, separators=(",", ":")).encode(), *map(safetensors, shards.values())]
            write("model", "jetmoe_sharded", BOUNDARY.join([config, *files]))


def write_configs():
    for folder in sorted(path.parent for path in GOLDEN.glob("*/config.json")):
        config = config_of(folder.name)
        if len(config) > 3:  # single layers are no models
            write("config", folder.name, json.dumps(config, separators=(",", ":")).encode())


def write_safetensors():
    tensors = [
        ("w", "F32", [2, 3], bytes(24)),
        ("b", "BF16", [3], b"\x80\x3f\x80\x7f\0\0"),
        ("n", "I64", [], bytes(8)),
        ("e", "F16", [0, 4], b""),
    ]
    write("safetensors", "one_file", safetensors(tensors))
    write("safetensors", "empty", safetensors([]))
    index = {"metadata": {"total_size": 38}, "weight_map": {"w": "a", "b": "b", "n": "b", "e": "a"}}
    shards = [safetensors([tensors[0], tensors[3]]), safetensors(tensors[1:3])]
    write("safetensors", "two_shards", BOUNDARY.join([json.dumps(index).encode(), *shards]))
    with_metadata = json.dumps({"__metadata__": {"format": "pt"}, "a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}})
    write("safetensors", "metadata", struct.pack("<Q", len(with_metadata)) + with_metadata.encode() + b"\1")


TEXT = "in the beginning was the word and the word was with them 1 2 3 abba baab abab the end of the beginning\n"


def write_sentencepiece():
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # a model file quotes the paths it was trained with
        text, rules, model = Path("text"), Path("rules.tsv"), Path("m")
        text.write_text(TEXT * 20)
        rules.write_text("FB01\t66 69\nE4\t61 65\n2003\t20\n41\t61\n41 42\t78\n")
        common = {"input": text, "model_prefix": model, "minloglevel": 2, "hard_vocab_limit": False}
        runs = {
            "unigram_rules": {"model_type": "unigram", "vocab_size": 40, "normalization_rule_tsv": rules},
            "bpe": {"model_type": "bpe", "vocab_size": 40, "normalization_rule_name": "identity",
                    "user_defined_symbols": ["<x>"]},
            "bpe_bytes": {"model_type": "bpe", "vocab_size": 300, "normalization_rule_name": "identity",
                          "byte_fallback": True},
        }
        for name, options in runs.items():
            sentencepiece.SentencePieceTrainer.train(**common, **options)
            write("sentencepiece", name, model.with_suffix(".model").read_bytes())
        os.chdir(HERE)


def write_tokenizer_json():
    """The projects' kinds of tokenizer.json, each with the first part of its vocabulary."""
    for path in sorted((TESTS / "text/data").glob("*/tokenizer.json")):
        tokenizer = json.loads(path.read_text())
        vocabulary, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
        # Kept: single characters that merges begin with, bytes and controls of the first ids, and six merges.
        kept = [piece for piece, _ in sorted(vocabulary.items(), key=lambda item: item[1])][:24]
        few = []
        for merge in merges:
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            if len(few) < 6 and len(left) == len(right) == 1 and left + right in vocabulary:
                few.append(merge)
                kept += [left, right, left + right]
        for byte in range(256) if tokenizer["model"].get("byte_fallback") else ():
            kept.append(f"<0x{byte:02X}>")
        kept += [token["content"] for token in tokenizer["added_tokens"]]
        pieces = list(dict.fromkeys(kept))
        tokenizer["model"] |= {"vocab": {piece: id for id, piece in enumerate(pieces)}, "merges": few}
        ids = tokenizer["model"]["vocab"]
        for token in tokenizer["added_tokens"]:
            token["id"] = ids[token["content"]]
        write("tokenizer_json", path.parent.name, json.dumps(tokenizer, separators=(",", ":"), ensure_ascii=False).encode())


def write_expert_baselines():
    """Of the two routers that the fuzzer's model has, of others, and of another version."""
    router = {"layer": 0, "kind": "attn", "heads": 1, "experts": 2, "top_k": 1, "loads": [3, 4]}
    heads = {"layer": 1, "kind": "attn_v", "heads": 2, "experts": 2, "top_k": 1, "loads": [7, 0, 2, 5]}
    file = {"format": "switchyard-expert-baseline", "version": 1, "model": "m", "routers": [router, heads]}
    for name, fields in (
        ("fits", {}),
        ("other_routers", {"routers": [router | {"experts": 3, "loads": [1, 0, 9007199254740992]}]}),
        ("version", {"version": 2}),
        ("no_loads", {"routers": [router | {"loads": [0, 0]}]}),
    ):
        write("expert_baseline", name, json.dumps(file | fields, separators=(",", ":")).encode())


if __name__ == "__main__":
    write_expert_baselines()
    write_models()
    write_configs()
    write_safetensors()
    write_sentencepiece()
    write_tokenizer_json()
