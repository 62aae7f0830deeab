"""The config.json of each family, in the words of the project it comes from."""


def config_of(shape):
    return _CONFIGS[shape.family](shape)


def _jetmoe(shape):
    return {
        "architectures": ["JetMoEForCausalLM"],
        "model_type": "jetmoe",
        "torch_dtype": "bfloat16",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.dim,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads * shape.attention_chosen,
        "num_key_value_heads": shape.heads,
        "kv_channels": shape.head_dim,
        "ffn_hidden_size": shape.hidden,
        "max_position_embeddings": shape.block_tokens,
        "activation_function": "silu",
        "glu": True,
        "bias": True,
        "moe_num_experts": shape.experts,
        "moe_top_k": shape.chosen,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _moduleformer(shape):
    return {
        "architectures": ["ModuleFormerForCausalLM"],
        "model_type": "moduleformer",
        "torch_dtype": "bfloat16",
        "vocab_size": shape.vocabulary,
        "block_size": shape.block_tokens // 2,
        "history_length": shape.block_tokens // 2,
        "n_embd": shape.dim,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "att_hidden": shape.heads * shape.head_dim,
        "ffd_hidden": shape.hidden,
        "activation_function": "gelu_new",
        "gate_type": "mlp",
        "gating_size": 256,
        "n_att_experts": shape.attention_experts,
        "k_att": shape.attention_chosen,
        "n_mlp_experts": shape.experts,
        "k_mlp": shape.chosen,
        "layer_norm_epsilon": 1e-05,
        "tie_word_embeddings": False,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    }


def _training_code(shape):
    """The argument dictionary: flags are 0 or 1, optional numbers are text."""
    is_moeut = shape.family == "moeut_train"
    variant = "preln_moe_universal" if is_moeut else "preln_moe" if shape.experts else "preln_moeatt"
    arguments = {
        "state_size": shape.dim,
        "embedding_size": "none",
        "sentencepiece.n_pieces": shape.vocabulary,
        "lm.unroll": shape.block_tokens,
        "lm.trafo.context_blocks": shape.memory_blocks,
        "lm.trafo.last_layer_context": 0,
        "transformer.variant": variant,
        "transformer.encoder_n_layers": shape.layers,
        "transformer.n_heads": shape.heads,
        "transformer.head_projection_size": str(shape.head_dim),
        "transformer.activation": "relu",
        "transformer.ff_multiplier": shape.multiplier or 2.0,
        "moe.att.enable": int(variant != "preln_moeatt"),
        "moe.att.n_experts": shape.attention_experts,
        "moe.att.k": shape.attention_chosen,
        "moe.att.q_expert": 0,
        "moe.att.k_expert": 0,
        "moe.att.v_expert": 1,
        "moe.att.o_expert": 1,
        "moe.att.v_size": "none",
        "moe.att.selection_mode": "sigmoid",
        "moe.att.same_sel": 0,
        "moe.att.separate_kq_sel": 0,
        "moe.n_experts": shape.experts or 128,
        "moe.expert_size": shape.hidden or 128,
        "pkm.n_heads": shape.chosen or 1,  # the training code's name for the chosen experts
        "moe.selection_mode": "sigmoid",
        "moe.activation_after_topk": 0,
        "rope.rotate_fraction": 0.5,
        "rope.base": 10000.0,
    }
    if is_moeut:
        return arguments | {
            "moe.nonorm": 1,
            "moe.bias": 0,
            "moe.sel_bias": 0,
            "transformer.universal.group_size": shape.stored_layers,
            "transformer.universal.group_type": "abab",
            "transformer.embedding_scale": "none",
            "lm.trafo.force_out_norm": 0,
            "lm.trafo.norm_input": 0,
        }
    return arguments | {
        "tied_embedding": 0,
        "lm.trafo.embedding_mode_init": "default",
        "moe.att.variant": "full" if shape.positions == "xl" else "full_rope",
        "moe.att.norm_qk": 0,
        "moe.att.norm_ret": 0,
        "moe.att.shared_experts": 0,
        "moe.att.qside_n_experts": "none",
        "moe.att.kq_n_experts": "none",
        "moe.topk_mode": "full",
        "moe.sel_norm": "none",
        "moe.norm_keys": 0,
    }


_CONFIGS = {
    "jetmoe": _jetmoe,
    "moduleformer": _moduleformer,
    "moeut_train": _training_code,
    "switchhead": _training_code,
}
