"""Writes a model as a folder the server loads: config.json, model.safetensors, generation_config.json."""

import json
import struct
from pathlib import Path

import torch

import data


def write_safetensors(path, tensors):
    """tensors {name: bfloat16 tensor}. The format: a 64-bit little-endian header length, a JSON header
    with dtype, shape and byte range of every tensor, then the bytes."""
    header, position = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        tensor_bytes = tensors[name].numel() * 2
        header[name] = {
            "dtype": "BF16",
            "shape": list(tensors[name].shape),
            "data_offsets": [position, position + tensor_bytes],
        }
        position += tensor_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors then start 8-byte aligned
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            out.write(tensors[name].contiguous().view(torch.int16).numpy().astype("<i2").tobytes())


# Our names -> the names of the JetMoE checkpoints; the shapes agree.
JETMOE_OUTSIDE = {"embedding": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
JETMOE_BLOCK = {
    "attention_norm.weight": "input_layernorm.weight",
    "attention.router.weight": "self_attention.experts.router.layer.weight",
    "attention.query": "self_attention.experts.input_linear.weight",
    "attention.output": "self_attention.experts.output_linear.weight",
    "attention.bias": "self_attention.experts.bias",
    "attention.key_value": "self_attention.kv_proj.weight",
    "feed_forward_norm.weight": "post_attention_layernorm.weight",
    "feed_forward.router.weight": "mlp.router.layer.weight",
    "feed_forward.input": "mlp.input_linear.weight",
    "feed_forward.output": "mlp.output_linear.weight",
    "feed_forward.bias": "mlp.bias",
}
# Our names -> the names of the SwitchHead training code.
SWITCHHEAD_OUTSIDE = {
    "embedding": "embedding.weight",
    "norm.weight": "out_norm.weight",
    "norm.bias": "out_norm.bias",
    "head.weight": "output.weight",
    "head.bias": "output.bias",
}
SWITCHHEAD_BLOCK = {
    "attention_norm.weight": "norm1.weight",
    "attention_norm.bias": "norm1.bias",
    "attention.query": "self_attn.projections.q",
    "attention.key": "self_attn.projections.k",
    "attention.value": "self_attn.projections.v",
    "attention.output": "self_attn.projections.o",
    "attention.value_router.weight": "self_attn.selections.v",
    "attention.output_router.weight": "self_attn.selections.o",
    "feed_forward_norm.weight": "norm2.weight",
    "feed_forward_norm.bias": "norm2.bias",
    "feed_forward.router.weight": "pkm.expert_sel",
    "feed_forward.keys": "pkm.keys",
    "feed_forward.values": "pkm.values",
}


def exported_tensors(model):
    """{checkpoint name: bfloat16 tensor}."""
    if model.config.kind == "moa":
        outside, inside, prefix = JETMOE_OUTSIDE, JETMOE_BLOCK, "model.layers"
    else:
        outside, inside, prefix = SWITCHHEAD_OUTSIDE, SWITCHHEAD_BLOCK, "unique_layers"
    tensors = {}
    for name, tensor in model.named_parameters():
        if name.startswith("blocks."):
            _, layer, rest = name.split(".", 2)
            name = f"{prefix}.{layer}.{inside[rest]}"
        else:
            name = outside[name]
        tensors[name] = tensor.detach().bfloat16()
    return tensors


def jetmoe_config(config):
    return {
        "architectures": ["JetMoEForCausalLM"],
        "model_type": "jetmoe",
        "torch_dtype": "bfloat16",
        "vocab_size": config.vocabulary,
        "hidden_size": config.dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads * config.attention_chosen,
        "num_key_value_heads": config.heads,
        "kv_channels": config.head_dim,
        "ffn_hidden_size": config.feed_forward_hidden,
        "max_position_embeddings": config.context_tokens,
        "activation_function": "silu",
        "glu": True,
        "bias": True,
        "moe_num_experts": config.attention_experts,
        "moe_top_k": config.attention_chosen,
        "rms_norm_eps": 1e-06,
        "rope_theta": config.rope_base,
        "tie_word_embeddings": True,
        "use_cache": True,
        "bos_token_id": data.BOS_ID,
        "eos_token_id": data.EOS_ID,
        "initializer_range": 0.01,
    }


def switchhead_arguments(config):
    """The argument dictionary of the training code: flags are 0 or 1, optional numbers are strings."""
    return {
        "task": "bible_transformer",
        "state_size": config.dim,
        "embedding_size": "none",
        "tied_embedding": 0,
        "sentencepiece.n_pieces": config.vocabulary,
        "lm.unroll": config.context_tokens // 2,
        "lm.trafo.context_blocks": 1,  # context = unroll * (1 + context_blocks)
        "lm.trafo.last_layer_context": 0,
        "lm.trafo.embedding_mode_init": "default",
        "transformer.variant": "preln_moe",
        "transformer.encoder_n_layers": config.layers,
        "transformer.n_heads": config.heads,
        "transformer.head_projection_size": str(config.head_dim),
        "transformer.ff_multiplier": 2.0,  # of a dense feed-forward; not used by preln_moe
        "transformer.activation": "relu",
        "moe.att.enable": 1,
        "moe.att.variant": "full_rope",
        "moe.att.n_experts": config.attention_experts,
        "moe.att.k": config.attention_chosen,
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
        "rope.base": config.rope_base,
        "moe.n_experts": config.feed_forward_experts,
        "moe.expert_size": config.feed_forward_hidden,
        "pkm.n_heads": config.feed_forward_chosen,  # the training code's name for the chosen experts
        "moe.selection_mode": "sigmoid",
        "moe.activation_after_topk": 0,
        "moe.topk_mode": "full",
        "moe.sel_norm": "none",
        "moe.norm_keys": 0,
    }


def write_json(path, value):
    Path(path).write_text(json.dumps(value, indent=1) + "\n")


def write_model(model, folder):
    config = model.config
    write_json(
        folder / "config.json",
        jetmoe_config(config) if config.kind == "moa" else switchhead_arguments(config),
    )
    sampling = {"do_sample": True, "temperature": 0.8, "top_p": 0.95}
    if config.adds_bos:
        sampling = {"bos_token_id": data.BOS_ID, "eos_token_id": data.EOS_ID} | sampling
    write_json(folder / "generation_config.json", sampling)
    write_safetensors(folder / "model.safetensors", exported_tensors(model))


def round_to_stored(model):
    """Gives the model in memory the weights that were stored, so that an evaluation speaks of the files."""
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(tensor.bfloat16().float())
