"""The families of checkpoints: how to recognise each by its tensor names, and what the shapes say about its config.

Shapes cannot tell everything: whether 15 rows of a router are 3 heads of 5 experts or 5 heads of 3, for example. What
they do tell is filled in where a config lacks it, and a config that says otherwise is refused here rather than later.
"""

import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Tuple

from switchyard_export.errors import ExportError

# Counters of the training, buffers of constants and tables that the server computes itself.
_NOT_WEIGHTS = re.compile(
    r"(\.pkm\.(kv_sel_counts_100|iter)|\.attn\.(mask|cum_weight)|\.rotary_emb\.inv_freq)$"
)


@dataclass(frozen=True)
class Family:
    name: str
    title: str
    markers: Tuple[str, ...]  # names of tensors that every checkpoint of the family has
    # Hyper-parameters that neither shapes nor defaults give. Alternative spellings are joined with "|".
    required: Tuple[str, ...]
    # ({tensor: shape}, config) -> {hyper-parameter: value as the shapes say}
    sizes: Callable[[Dict[str, Tuple[int, ...]], Dict[str, Any]], Dict[str, int]]
    constants: Tuple[Tuple[str, Any], ...] = ()  # config entries that every config of the family has
    fills_sizes: bool = True  # whether a config without them gets the sizes


def is_weight(name):
    return _NOT_WEIGHTS.search(name) is None


def find_family(tensors, config, forced=None):
    """The family whose tensors these are. `forced` is the name of one to take instead."""
    if forced:
        family = FAMILIES[forced]
        for marker in family.markers:
            if marker not in tensors:
                raise ExportError(f"--family {forced}: the checkpoint has no tensor {marker}, which that family has")
        return family
    found = [family for family in FAMILIES.values() if all(marker in tensors for marker in family.markers)]
    if not found:
        raise ExportError(
            "the tensor names belong to no known family (they begin with "
            f"{', '.join(list(tensors)[:4])}); known: {', '.join(FAMILIES)}"
        )
    if len(found) > 1:  # the training code's models share names; its arguments tell them apart
        universal = "universal" in str((config or {}).get("transformer.variant", "")) or any(
            name.endswith("self_attn.norm.weight") for name in tensors
        )
        return FAMILIES["moeut_train" if universal else "switchhead"]
    return found[0]


def complete_config(family, config, tensors, where):
    """The config that is written: `config` with what the shapes add. `where` names its source in messages."""
    missing = [names for names in family.required if config is None or _get(config, names) is None]
    if missing:
        raise ExportError(
            f"{family.name}: these hyper-parameters are missing: {', '.join(missing)}. "
            + ("The checkpoint holds none; give" if config is None else f"{where} does not have them; give")
            + f" them with --config FILE, a JSON object ({family.title})"
        )
    complete = dict(config)
    for key, value in family.constants:
        complete.setdefault(key, value)
    for names, size in _sizes(family, tensors, complete).items():
        given = _get(complete, names)
        if given is None and family.fills_sizes:
            complete[names.split("|")[0]] = size
        elif given is not None and _as_int(given) != size:
            raise ExportError(
                f"{family.name}: {names.replace('|', ' or ')} is {given} in {where}, "
                f"but the shapes of the tensors say {size}"
            )
    return complete


def _get(config, names):
    """The first of the spellings "a|b" that has a value. The training code spells None as text."""
    for name in names.split("|"):
        if config.get(name) not in (None, "none", "None"):
            return config[name]
    return None


def _as_int(value):
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _sizes(family, tensors, config):
    try:
        return family.sizes({name: tensor.shape for name, tensor in tensors.items()}, config)
    except KeyError as missing:
        raise ExportError(f"{family.name}: tensor {missing.args[0]} is missing") from None
    except (IndexError, ValueError):
        raise ExportError(f"{family.name}: its tensors have not the number of dimensions they should have") from None


def _heads(config):
    heads = _as_int(config["n_heads"])
    if heads is None or heads < 1:
        raise ExportError(f"n_heads is {config['n_heads']!r}, not a number of heads")
    return heads


def _count_layers(shapes, prefix):
    return len({name[len(prefix) :].split(".")[0] for name in shapes if name.startswith(prefix)})


def _jetmoe_sizes(shapes, _):
    layer = "model.layers.0."
    vocabulary, dim = shapes["model.embed_tokens.weight"]
    experts = shapes[layer + "mlp.router.layer.weight"][0]
    return {
        "vocab_size": vocabulary,
        "hidden_size": dim,
        "num_hidden_layers": _count_layers(shapes, "model.layers."),
        "ffn_hidden_size|intermediate_size": shapes[layer + "mlp.output_linear.weight"][2],
        "moe_num_experts|num_local_experts": experts,
    }


def _moduleformer_sizes(shapes, _):
    layer = "transformer.h.0."
    vocabulary, dim = shapes["transformer.wte.weight"]
    attention_experts, _, attention_hidden = shapes[layer + "attn.q_proj.experts.weight"]
    experts, _, hidden = shapes[layer + "mlpf.experts.weight"]
    return {
        "vocab_size": vocabulary,
        "n_embd": dim,
        "n_layer": _count_layers(shapes, "transformer.h."),
        "att_hidden": attention_hidden,
        "ffd_hidden": hidden,
        "n_att_experts": attention_experts,
        "n_mlp_experts": experts,
    }


def _moeut_sizes(shapes, config):
    layer = "transformer.layers.0."
    heads = _heads(config)
    vocabulary, dim = shapes["embedding.weight"]
    experts, _, hidden = shapes[layer + "ffn.keys"]
    return {
        "n_tokens": vocabulary,
        "d_model": dim,
        "ff_n_experts": experts,
        "ff_expert_size": hidden,
        "att_n_experts": shapes[layer + "attention.sel_o"][0] // heads,
        "d_head": shapes[layer + "attention.q.weight"][0] // heads,
        "group_size": _count_layers(shapes, "transformer.layers."),
    }


def _training_sizes(shapes, _):
    """What all models of the training code have in common; the arguments themselves stay as they were."""
    sizes = {}
    if "unique_layers.0.pkm.keys" in shapes:
        sizes["moe.n_experts"], _, sizes["moe.expert_size"] = shapes["unique_layers.0.pkm.keys"]
    return sizes


def _switchhead_sizes(shapes, config):
    sizes = _training_sizes(shapes, config)
    sizes["state_size"] = shapes["unique_layers.0.self_attn.projections.v"][1]
    sizes["transformer.encoder_n_layers"] = _count_layers(shapes, "unique_layers.")
    return sizes


def _moeut_train_sizes(shapes, config):
    sizes = _training_sizes(shapes, config)
    sizes["state_size"] = shapes["unique_layers.0.self_attn.projections.v"][1]
    sizes["transformer.universal.group_size"] = _count_layers(shapes, "unique_layers.")
    return sizes


def _moa_lm_sizes(shapes, config):
    sizes = _training_sizes(shapes, config)
    sizes["moe.att.n_experts"], sizes["state_size"], _ = shapes["unique_layers.0.self_attn.data_to_q"]
    sizes["transformer.encoder_n_layers"] = _count_layers(shapes, "unique_layers.")
    return sizes


def _moa_layer_sizes(shapes, _):
    experts, dim, head_dim = shapes["q_proj.experts.w"]
    return {"embed_dim": dim, "num_expert": experts, "head_dim": head_dim}


def _switchhead_layer_sizes(shapes, config):
    heads = _heads(config)
    rows, dim = shapes["q.weight"]
    return {"d_model": dim, "n_experts": shapes["sel_o"][0] // heads, "d_head": rows // heads}


_TRAINING_REQUIRED = (
    "transformer.variant",
    "state_size",
    "transformer.encoder_n_layers",
    "transformer.n_heads",
    "moe.att.n_experts",
    "moe.att.k",
)
_TRAINING_TITLE = "the argument dictionary of the training code, such as its args.json"

FAMILIES = {
    family.name: family
    for family in (
        Family(
            "jetmoe",
            "the config.json of the model",
            ("model.embed_tokens.weight", "model.layers.0.self_attention.experts.router.layer.weight"),
            ("num_key_value_heads", "kv_channels|head_dim", "moe_top_k|num_experts_per_tok"),
            _jetmoe_sizes,
            constants=(("model_type", "jetmoe"),),
        ),
        Family(
            "moduleformer",
            "the config.json of the model",
            ("transformer.wte.weight", "transformer.h.0.attn.q_proj.experts.weight"),
            ("n_head", "k_att", "k_mlp"),
            _moduleformer_sizes,
            constants=(("model_type", "moduleformer"),),
        ),
        Family(
            "moeut",
            "the constructor keywords of MoEUTLM; att_k and ff_k default to 2 and 8",
            ("embedding.weight", "transformer.layers.0.attention.sel_o", "transformer.layers.0.ffn.keys"),
            ("n_layers", "n_heads"),
            _moeut_sizes,
        ),
        Family(
            "switchhead",
            _TRAINING_TITLE,
            ("embedding.weight", "unique_layers.0.self_attn.projections.v"),
            _TRAINING_REQUIRED,
            _switchhead_sizes,
            fills_sizes=False,
        ),
        Family(
            "moeut_train",
            _TRAINING_TITLE,
            ("embedding.weight", "unique_layers.0.self_attn.projections.v"),
            _TRAINING_REQUIRED,
            _moeut_train_sizes,
            fills_sizes=False,
        ),
        Family(
            "moa_lm",
            _TRAINING_TITLE,
            ("embedding.weight", "unique_layers.0.self_attn.data_to_q"),
            _TRAINING_REQUIRED,
            _moa_lm_sizes,
            fills_sizes=False,
        ),
        Family(
            "moa_layer",
            "the constructor keywords of MultiheadAttention",
            ("q_proj.experts.w", "q_proj.output_experts.w"),
            ("num_heads",),
            _moa_layer_sizes,
        ),
        Family(
            "switchhead_layer",
            "the constructor keywords of SwitchHeadRope or SwitchHeadXL, and cls, the class' name",
            ("q.weight", "sel_o"),
            ("n_heads", "cls"),
            _switchhead_layer_sizes,
        ),
    )
}
