"""Writes tiny model folders with random weights: a few thousand parameters, every kind of file a real one has."""

import array
import json
import random
import re
import struct
from pathlib import Path

DIM, LAYERS, HEADS, HEAD_DIM, EXPERTS, CHOSEN, HIDDEN, CONTEXT = 16, 2, 2, 8, 4, 2, 12, 96
MERGES = [("t", "h"), ("th", "e"), ("i", "n"), ("Ġ", "the"), ("a", "n"), ("an", "d"), ("Ġ", "and")]


def byte_alphabet():
    """The characters by which byte-level BPE spells the 256 bytes, in byte order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def vocabulary():
    pieces = ["<unk>", "<s>", "</s>", *byte_alphabet(), *("".join(pair) for pair in MERGES)]
    return {piece: token_id for token_id, piece in enumerate(pieces)}


def write_tokenizer(folder):
    added = [
        {
            "id": token_id, "content": content, "special": True, "single_word": False,
            "lstrip": False, "rstrip": False, "normalized": False,
        }
        for token_id, content in enumerate(["<unk>", "<s>", "</s>"])
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "vocab": vocabulary(), "merges": [" ".join(pair) for pair in MERGES],
        },
    }
    Path(folder, "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def encode(text):
    """Token ids of a text without control tokens. Words as the GPT-2 pattern cuts them; merges by rank."""
    alphabet, ids_of_pieces, ids = byte_alphabet(), vocabulary(), []
    for word in re.findall(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+", text):
        parts = [alphabet[byte] for byte in word.encode()]
        for left, right in MERGES:
            index = 0
            while index + 1 < len(parts):
                if parts[index] == left and parts[index + 1] == right:
                    parts[index : index + 2] = [left + right]
                index += 1
        ids += [ids_of_pieces[part] for part in parts]
    return ids


def safetensors_bytes(tensors):
    """tensors {name: (dtype, shape, bytes)}."""
    header, position = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [position, position + len(data)]}
        position += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def read_safetensors(path):
    """{name: (shape, list of numbers)}."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            numbers = array.array({"F32": "f", "I32": "i", "I64": "q"}[entry["dtype"]])
            numbers.frombytes(raw[8 + length + begin : 8 + length + end])
            tensors[name] = (entry["shape"], list(numbers))
    return tensors


def write_tokens(path, token_ids):
    data = array.array("q", token_ids).tobytes()
    Path(path).write_bytes(safetensors_bytes({"tokens": ("I64", [len(token_ids)], data)}))


class RandomTensors:
    """Gathers F32 tensors; weights around 0, norms around 1."""

    def __init__(self, seed):
        self.random, self.tensors = random.Random(seed), {}

    def add(self, name, *shape, deviation=0.3, mean=0.0):
        count = 1
        for size in shape:
            count *= size
        values = array.array("f", [self.random.gauss(mean, deviation) for _ in range(count)])
        self.tensors[name] = ("F32", list(shape), values.tobytes())


def moa_tensors(seed=1):
    t, width = RandomTensors(seed), HEADS * HEAD_DIM
    t.add("model.embed_tokens.weight", len(vocabulary()), DIM, deviation=1.0)
    t.add("model.norm.weight", DIM, mean=1.0, deviation=0.1)
    for layer in range(LAYERS):
        p = f"model.layers.{layer}."
        t.add(p + "input_layernorm.weight", DIM, mean=1.0, deviation=0.1)
        t.add(p + "post_attention_layernorm.weight", DIM, mean=1.0, deviation=0.1)
        t.add(p + "self_attention.experts.router.layer.weight", EXPERTS, DIM)
        t.add(p + "self_attention.experts.input_linear.weight", EXPERTS, width, DIM)
        t.add(p + "self_attention.experts.output_linear.weight", EXPERTS, DIM, width)
        t.add(p + "self_attention.experts.bias", DIM)
        t.add(p + "self_attention.kv_proj.weight", 2 * width, DIM)
        t.add(p + "mlp.router.layer.weight", EXPERTS, DIM)
        t.add(p + "mlp.input_linear.weight", EXPERTS, 2 * HIDDEN, DIM)
        t.add(p + "mlp.output_linear.weight", EXPERTS, DIM, HIDDEN)
        t.add(p + "mlp.bias", DIM)
    return t.tensors


def moa_config():
    return {
        "model_type": "jetmoe",
        "vocab_size": len(vocabulary()),
        "hidden_size": DIM,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS * CHOSEN,
        "num_key_value_heads": HEADS,
        "kv_channels": HEAD_DIM,
        "ffn_hidden_size": HIDDEN,
        "max_position_embeddings": CONTEXT,
        "activation_function": "silu",
        "glu": True,
        "bias": True,
        "moe_num_experts": EXPERTS,
        "moe_top_k": CHOSEN,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def switchhead_tensors(seed=2):
    t, width = RandomTensors(seed), HEADS * HEAD_DIM
    t.add("embedding.weight", len(vocabulary()), DIM, deviation=1.0)
    t.add("output.weight", len(vocabulary()), DIM)
    t.add("output.bias", len(vocabulary()))
    norms = ["out_norm"]
    for layer in range(LAYERS):
        p = f"unique_layers.{layer}."
        norms += [p + "norm1", p + "norm2"]
        t.add(p + "self_attn.projections.q", width, DIM)
        t.add(p + "self_attn.projections.k", width, DIM)
        t.add(p + "self_attn.projections.v", HEADS * EXPERTS, DIM, HEAD_DIM)
        t.add(p + "self_attn.projections.o", HEADS * EXPERTS, HEAD_DIM, DIM)
        t.add(p + "self_attn.selections.v", HEADS * EXPERTS, DIM)
        t.add(p + "self_attn.selections.o", HEADS * EXPERTS, DIM)
        t.add(p + "linear1.weight", HIDDEN, DIM)
        t.add(p + "linear1.bias", HIDDEN)
        t.add(p + "linear2.weight", DIM, HIDDEN)
        t.add(p + "linear2.bias", DIM)
    for norm in norms:
        t.add(norm + ".weight", DIM, mean=1.0, deviation=0.1)
        t.add(norm + ".bias", DIM)
    return t.tensors


def switchhead_config():
    return {
        "state_size": DIM,
        "embedding_size": "none",
        "tied_embedding": 0,
        "lm.unroll": CONTEXT // 2,
        "lm.trafo.context_blocks": 1,
        "lm.trafo.last_layer_context": 0,
        "lm.trafo.embedding_mode_init": "default",
        "transformer.variant": "preln_moeatt",
        "transformer.encoder_n_layers": LAYERS,
        "transformer.n_heads": HEADS,
        "transformer.head_projection_size": str(HEAD_DIM),
        "transformer.ff_multiplier": HIDDEN / DIM,
        "transformer.activation": "relu",
        "moe.att.enable": 1,
        "moe.att.variant": "full_rope",
        "moe.att.n_experts": EXPERTS,
        "moe.att.k": CHOSEN,
        "moe.att.q_expert": 0,
        "moe.att.k_expert": 0,
        "moe.att.v_expert": 1,
        "moe.att.o_expert": 1,
        "moe.att.selection_mode": "sigmoid",
        "moe.att.v_size": "none",
        "moe.att.same_sel": 0,
        "moe.att.separate_kq_sel": 0,
        "moe.att.norm_qk": 0,
        "moe.att.norm_ret": 0,
        "moe.att.shared_experts": 0,
        "moe.att.qside_n_experts": "none",
        "moe.att.kq_n_experts": "none",
        "rope.rotate_fraction": 0.5,
        "rope.base": 10000.0,
    }


def write_model(folder, config, tensors):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    write_tokenizer(folder)
    return folder


def write_moa(folder):
    return write_model(folder, moa_config(), moa_tensors())


def write_switchhead(folder):
    return write_model(folder, switchhead_config(), switchhead_tensors())


def write_sharded_moa(folder):
    """As write_moa, in two shards with an index."""
    folder = write_moa(folder)
    (folder / "model.safetensors").unlink()
    tensors, shard_of = moa_tensors(), {}
    for number in (1, 2):
        name = f"model-0000{number}-of-00002.safetensors"
        part = {key: value for index, (key, value) in enumerate(tensors.items()) if index % 2 == number - 1}
        (folder / name).write_bytes(safetensors_bytes(part))
        shard_of.update({key: name for key in part})
    index = {"metadata": {}, "weight_map": shard_of}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
