"""The tensors of each family: names, shapes, how they are filled, how much of them one token uses.

Shapes are as the families store them: expert stacks [experts, out, in] for jetmoe, [experts, in, out] for the others.
"""

from math import prod
from typing import NamedTuple, Tuple


class Tensor(NamedTuple):
    name: str
    shape: Tuple[int, ...]
    # Standard deviation is 1/sqrt(fan_in), which keeps activations near 1. 0: not random, but `value` everywhere.
    fan_in: int
    value: float = 0.0
    used_elements: int = 0  # multiplied with, or added, for one token, in all executed layers

    @property
    def elements(self):
        return prod(self.shape)


def layout(shape):
    """All tensors of a model, in the order of its layers."""
    return _LAYOUTS[shape.family](shape)


def key_value_elements(shape):
    """Values that the cache holds for one token, in all layers."""
    if shape.family == "moduleformer":
        return shape.layers * shape.dim  # one head without projections: keys and values are the same vector
    return shape.layers * 2 * shape.heads * shape.head_dim


class _Layer:
    """Collects the tensors of one stored layer."""

    def __init__(self, prefix, repeats):
        self.tensors = []
        self._prefix, self._repeats = prefix, repeats

    def _add(self, name, shape, fan_in, value, used):
        self.tensors.append(Tensor(self._prefix + name, shape, fan_in, value, used * self._repeats))

    def matrix(self, name, shape, fan_in):
        self._add(name, shape, fan_in, 0.0, prod(shape))

    def experts(self, name, shape, fan_in, used):
        """`used`: how many of shape[0] matrices one token takes."""
        self._add(name, shape, fan_in, 0.0, used * prod(shape[1:]))

    def table(self, name, shape, fan_in):
        """Not used for a token: what it gives is the same for all."""
        self._add(name, shape, fan_in, 0.0, 0)

    def bias(self, name, width):
        self._add(name, (width,), 0, 0.0, width)

    def rms_norm(self, name, width):
        self._add(name + ".weight", (width,), 0, 1.0, 0)

    def layer_norm(self, name, width):
        self.rms_norm(name, width)
        self._add(name + ".bias", (width,), 0, 0.0, 0)


def _embedding(name, shape):
    return Tensor(name, (shape.vocabulary, shape.dim), shape.dim)


def _jetmoe(shape):
    dim, width, hidden, experts = shape.dim, shape.heads * shape.head_dim, shape.hidden, shape.experts
    # The head is the embedding once more, so the one tensor counts as used.
    tensors = [_embedding("model.embed_tokens.weight", shape)._replace(used_elements=shape.vocabulary * dim)]
    for index in range(shape.stored_layers):
        layer = _Layer(f"model.layers.{index}.", 1)
        layer.rms_norm("input_layernorm", dim)
        layer.matrix("self_attention.experts.router.layer.weight", (shape.attention_experts, dim), dim)
        chosen = shape.attention_chosen
        layer.experts(
            "self_attention.experts.input_linear.weight", (shape.attention_experts, width, dim), dim, chosen
        )
        layer.experts(
            "self_attention.experts.output_linear.weight", (shape.attention_experts, dim, width), width, chosen
        )
        layer.bias("self_attention.experts.bias", dim)
        layer.matrix("self_attention.kv_proj.weight", (2 * width, dim), dim)
        layer.rms_norm("post_attention_layernorm", dim)
        layer.matrix("mlp.router.layer.weight", (experts, dim), dim)
        layer.experts("mlp.input_linear.weight", (experts, 2 * hidden, dim), dim, shape.chosen)
        layer.experts("mlp.output_linear.weight", (experts, dim, hidden), hidden, shape.chosen)
        layer.bias("mlp.bias", dim)
        tensors += layer.tensors
    end = _Layer("model.", 1)
    end.rms_norm("norm", dim)
    return tensors + end.tensors


def _moduleformer(shape):
    dim, hidden, gate = shape.dim, shape.hidden, GATING_SIZE
    tensors = [_embedding("transformer.wte.weight", shape)]
    for index in range(shape.stored_layers):
        layer = _Layer(f"transformer.h.{index}.", 1)
        stacks = (
            ("ln_1", "attn.q_proj.", shape.attention_experts, dim, shape.attention_chosen),
            ("ln_2", "mlpf.", shape.experts, hidden, shape.chosen),
        )
        for norm, prefix, experts, width, chosen in stacks:
            layer.layer_norm(norm, dim)
            layer.experts(prefix + "experts.weight", (experts, dim, width), dim, chosen)
            layer.experts(prefix + "output_experts.weight", (experts, width, dim), width, chosen)
            layer.matrix(prefix + "gate.w_gate.0.weight", (gate, dim), dim)
            layer.bias(prefix + "gate.w_gate.0.bias", gate)
            layer.matrix(prefix + "gate.w_gate.3.weight", (experts, gate), gate)
        tensors += layer.tensors
    end = _Layer("", 1)
    end.layer_norm("transformer.ln_f", dim)
    end.matrix("lm_head.weight", (shape.vocabulary, dim), dim)
    return tensors + end.tensors


def _training_code(shape):
    """SwitchHead, SwitchAll, and MoEUT as its training code stores it."""
    dim = shape.dim
    shares_layers = shape.family == "moeut_train"
    tensors = [_embedding("embedding.weight", shape)]
    for index in range(shape.stored_layers):
        layer = _Layer(f"unique_layers.{index}.", shape.layers // shape.stored_layers)
        layer.layer_norm("self_attn.norm" if shares_layers else "norm1", dim)
        _switchhead_attention(layer, shape)
        layer.layer_norm("pkm.norm" if shares_layers else "norm2", dim)
        if shape.experts:
            experts, hidden, chosen = shape.experts, shape.hidden, shape.chosen
            layer.matrix("pkm.expert_sel", (experts, dim), dim)
            layer.experts("pkm.keys", (experts, dim, hidden), dim, chosen)
            layer.experts("pkm.values", (experts, hidden, dim), chosen * hidden, chosen)
        else:
            hidden = dense_width(shape)
            layer.matrix("linear1.weight", (hidden, dim), dim)
            layer.bias("linear1.bias", hidden)
            layer.matrix("linear2.weight", (dim, hidden), hidden)
            layer.bias("linear2.bias", dim)
        tensors += layer.tensors
    end = _Layer("", 1)
    end.layer_norm("out_norm", dim)
    end.matrix("output.weight", (shape.vocabulary, dim), dim)
    end.bias("output.bias", shape.vocabulary)
    return tensors + end.tensors


def _switchhead_attention(layer, shape):
    dim, heads, head_dim = shape.dim, shape.heads, shape.head_dim
    stack, used = heads * shape.attention_experts, heads * shape.attention_chosen
    layer.matrix("self_attn.projections.q", (heads * head_dim, dim), dim)
    layer.matrix("self_attn.projections.k", (heads * head_dim, dim), dim)
    layer.experts("self_attn.projections.v", (stack, dim, head_dim), dim, used)
    # All chosen experts of all heads add up, so together they are the fan-in.
    layer.experts("self_attn.projections.o", (stack, head_dim, dim), used * head_dim, used)
    layer.matrix("self_attn.selections.v", (stack, dim), dim)
    layer.matrix("self_attn.selections.o", (stack, dim), dim)
    if shape.positions == "xl":
        layer.table("self_attn.pos_to_pk", (heads * head_dim, dim), dim)


def dense_width(shape):
    return int(shape.dim * shape.multiplier)


GATING_SIZE = 256  # of the routers of all published MoLM

_LAYOUTS = {
    "jetmoe": _jetmoe,
    "moduleformer": _moduleformer,
    "moeut_train": _training_code,
    "switchhead": _training_code,
}
