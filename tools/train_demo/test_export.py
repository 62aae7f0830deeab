#!/usr/bin/env python3
"""Checks layers.py and export.py: an exported tiny model, read back from its files by the plain numpy
forward below, gives the logits of the torch model. One token and one head at a time, no batching, no
grouping by expert: slow, and short enough to compare with the papers. Exits 77 (skipped) without torch."""

import json
import struct
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; install python3-torch and python3-numpy")
    sys.exit(77)

import export
from model import LanguageModel, ModelConfig

sigmoid = lambda x: 1 / (1 + np.exp(-x))
softmax = lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def read_safetensors(path):
    file_bytes = Path(path).read_bytes()
    (header_bytes,) = struct.unpack("<Q", file_bytes[:8])
    tensors = {}
    for name, entry in json.loads(file_bytes[8 : 8 + header_bytes]).items():
        if name != "__metadata__":
            start, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
            upper_half = np.frombuffer(file_bytes[start:end], "<u2").astype(np.uint32) << 16
            tensors[name] = upper_half.view(np.float32).reshape(entry["shape"]).astype(np.float64)
    return tensors


def largest(scores, count):
    return np.argsort(-scores, kind="stable")[:count]


def rotated(x, position, channels, base):
    """x [head_dim]; the pair (i, i + channels/2) turns by position * base^(-2i/channels)."""
    half = channels // 2
    turn = np.exp(1j * position * base ** (-np.arange(half) * 2 / channels))
    pairs = (x[:half] + 1j * x[half:channels]) * turn
    return np.concatenate([pairs.real, pairs.imag, x[channels:]])


def attend(query, keys, values, scale):
    return softmax(np.array(keys) @ query * scale) @ np.array(values)


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean() + epsilon) * weight


def layer_norm(x, weights, name):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * weights[name + ".weight"] + weights[name + ".bias"]


def jetmoe_logits(config, weights, tokens):
    heads, head_dim = config["num_key_value_heads"], config["kv_channels"]
    chosen, hidden, base = config["moe_top_k"], config["ffn_hidden_size"], config["rope_theta"]
    cache = [([], []) for _ in range(config["num_hidden_layers"])]
    rows = []
    for position, token in enumerate(tokens):
        x = weights["model.embed_tokens.weight"][token]
        for layer, (keys, values) in enumerate(cache):
            w = {name.removeprefix(f"model.layers.{layer}."): value for name, value in weights.items()}
            turn = lambda rows: np.array([rotated(row, position, head_dim, base) for row in rows])
            a = rms_norm(x, w["input_layernorm.weight"], 1e-6)
            scores = w["self_attention.experts.router.layer.weight"] @ a
            key, value = (w["self_attention.kv_proj.weight"] @ a).reshape(2, heads, head_dim)
            keys.append(turn(key))
            values.append(value)
            x = x + w["self_attention.experts.bias"]
            for expert, gate in zip(largest(scores, chosen), softmax(np.sort(scores)[::-1][:chosen])):
                query = turn(
                    (w["self_attention.experts.input_linear.weight"][expert] @ a).reshape(heads, head_dim)
                )
                out = [
                    attend(query[h], [k[h] for k in keys], [v[h] for v in values], head_dim**-0.5)
                    for h in range(heads)
                ]
                output = w["self_attention.experts.output_linear.weight"][expert]
                x = x + gate * output @ np.concatenate(out)
            a = rms_norm(x, w["post_attention_layernorm.weight"], 1e-6)
            scores = w["mlp.router.layer.weight"] @ a
            x = x + w["mlp.bias"]
            for expert, gate in zip(largest(scores, chosen), softmax(np.sort(scores)[::-1][:chosen])):
                up = w["mlp.input_linear.weight"][expert] @ a
                up = up[:hidden] * sigmoid(up[:hidden]) * up[hidden:]
                x = x + gate * w["mlp.output_linear.weight"][expert] @ up
        rows.append(
            weights["model.embed_tokens.weight"]
            @ rms_norm(x, weights["model.norm.weight"], config["rms_norm_eps"])
        )
    return np.array(rows)


def switchhead_logits(config, weights, tokens):
    heads, head_dim = config["transformer.n_heads"], int(config["transformer.head_projection_size"])
    experts, chosen, base = config["moe.att.n_experts"], config["moe.att.k"], config["rope.base"]
    channels = int(config["rope.rotate_fraction"] * head_dim) // 2 * 2
    cache = [[([], []) for _ in range(heads)] for _ in range(config["transformer.encoder_n_layers"])]
    rows = []
    for position, token in enumerate(tokens):
        x = weights["embedding.weight"][token]
        for layer, head_caches in enumerate(cache):
            w = {name.removeprefix(f"unique_layers.{layer}."): value for name, value in weights.items()}
            a = layer_norm(x, w, "norm1")

            def mixture(name, head, vector):
                scores = w[f"self_attn.selections.{name}"].reshape(heads, experts, -1)[head] @ a
                matrices = w[f"self_attn.projections.{name}"].reshape(heads, experts, len(vector), -1)[head]
                return sum(sigmoid(scores[e]) * (vector @ matrices[e]) for e in largest(scores, chosen))

            for head, (keys, values) in enumerate(head_caches):
                own = slice(head * head_dim, (head + 1) * head_dim)
                query, key = (
                    rotated(w["self_attn.projections." + name][own] @ a, position, channels, base)
                    for name in "qk"
                )
                keys.append(key)
                values.append(mixture("v", head, a))
                x = x + mixture("o", head, attend(query, keys, values, head_dim**-0.5))
            b = layer_norm(x, w, "norm2")
            scores = w["pkm.expert_sel"] @ b
            for e in largest(scores, config["pkm.n_heads"]):
                x = x + sigmoid(scores[e]) * np.maximum(b @ w["pkm.keys"][e], 0) @ w["pkm.values"][e]
        rows.append(weights["output.weight"] @ layer_norm(x, weights, "out_norm") + weights["output.bias"])
    return np.array(rows)


def largest_difference(kind, plain_logits):
    torch.manual_seed(7)
    # 140 tokens cross the query blocks of layers.causal_attention; odd sizes catch swapped axes.
    config = ModelConfig(
        kind,
        vocabulary=53,
        dim=22,
        layers=2,
        heads=3,
        head_dim=10,
        attention_experts=5,
        feed_forward_experts=5,
        feed_forward_hidden=14,
    )
    model = LanguageModel(config).eval()
    tokens = torch.randint(config.vocabulary, (140,))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for tensor in model.parameters():  # norms and biases away from 1 and 0, or they would not be seen
            tensor += 0.1 * torch.randn_like(tensor)
        export.write_model(model, Path(folder))
        export.round_to_stored(model)
        stored_config = json.loads((Path(folder) / "config.json").read_text())
        plain = plain_logits(
            stored_config, read_safetensors(Path(folder) / "model.safetensors"), tokens.tolist()
        )
        return np.abs(plain - model(tokens[None]).numpy()).max()


def main():
    failed = False
    for kind, plain_logits in (("moa", jetmoe_logits), ("switchhead", switchhead_logits)):
        difference = largest_difference(kind, plain_logits)
        failed |= not difference < 1e-4
        print(f"{kind}: largest difference of a logit to the plain forward {difference:.1e} (limit 1e-04)")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
