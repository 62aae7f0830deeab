"""The two demo language models: a pre-norm decoder around the layers of layers.py."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from layers import (
    GatedExpertFeedForward,
    MixtureOfAttention,
    RmsNorm,
    Router,
    SigmaMoe,
    SwitchHeadAttention,
)


@dataclass
class ModelConfig:
    kind: str  # "moa": JetMoE; "switchhead": SwitchHead attention with sigma-MoE feed-forward
    vocabulary: int = 2048
    context_tokens: int = 512
    dim: int = 256
    layers: int = 4
    heads: int = 4  # moa: shared key/value heads; switchhead: attention heads
    head_dim: int = 48
    attention_experts: int = 4  # switchhead: of each head
    attention_chosen: int = 2
    feed_forward_experts: int = 4  # moa: must equal attention_experts
    feed_forward_chosen: int = 2  # moa: must equal attention_chosen
    feed_forward_hidden: int = 256  # width of one expert
    rope_base: float = 10000.0
    dropout: float = 0.1

    @property
    def adds_bos(self):
        return self.kind == "moa"


def small_config(kind):
    """The shapes the committed models have."""
    if kind == "moa":
        return ModelConfig(kind)
    return ModelConfig(kind, feed_forward_experts=8, feed_forward_chosen=4, feed_forward_hidden=128)


class Block(nn.Module):
    """x += attention(norm(x)); x += feed_forward(norm(x))."""

    def __init__(self, config):
        super().__init__()
        c = config
        if c.kind == "moa":
            self.attention = MixtureOfAttention(
                c.dim, c.heads, c.head_dim, c.attention_experts, c.attention_chosen, c.rope_base
            )
            self.feed_forward = GatedExpertFeedForward(
                c.dim, c.feed_forward_hidden, c.feed_forward_experts, c.feed_forward_chosen
            )
            self.attention_norm, self.feed_forward_norm = RmsNorm(c.dim, 1e-6), RmsNorm(c.dim, 1e-6)
        else:
            rotated = c.head_dim // 2 // 2 * 2
            self.attention = SwitchHeadAttention(
                c.dim, c.heads, c.head_dim, c.attention_experts, c.attention_chosen, c.rope_base, rotated
            )
            self.feed_forward = SigmaMoe(
                c.dim, c.feed_forward_hidden, c.feed_forward_experts, c.feed_forward_chosen
            )
            self.attention_norm, self.feed_forward_norm = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.dropout = c.dropout

    def forward(self, x, windows):
        x = x + self.drop(self.attention(self.attention_norm(x), windows), windows)
        return x + self.drop(self.feed_forward(self.feed_forward_norm(x), windows), windows)

    def drop(self, update, windows):
        """Dropout with one mask for a whole window: a random number a channel instead of one a value,
        which on a CPU is the difference between free and a tenth of the step."""
        if not self.training or self.dropout == 0:
            return update
        mask = functional.dropout(torch.ones(windows, 1, update.shape[-1]), self.dropout)
        return (update.view(windows, -1, update.shape[-1]) * mask).view_as(update)


class LanguageModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        is_moa = config.kind == "moa"
        self.embedding = nn.Parameter(torch.randn(config.vocabulary, config.dim) * config.dim**-0.5)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RmsNorm(config.dim, 1e-6) if is_moa else nn.LayerNorm(config.dim)
        # JetMoE ties the head to the embedding; the SwitchHead models have a head with a bias.
        self.head = None if is_moa else nn.Linear(config.dim, config.vocabulary)

    def forward(self, inputs):
        """inputs [windows, window_tokens] -> logits [windows * window_tokens, vocabulary]."""
        x = functional.embedding(inputs.flatten(), self.embedding)
        x = self.blocks[0].drop(x, inputs.shape[0])
        for block in self.blocks:
            x = block(x, inputs.shape[0])
        x = self.norm(x)
        return functional.linear(x, self.embedding) if self.head is None else self.head(x)

    def routers(self):
        """[(name, Router)] in execution order."""
        return [(name, module) for name, module in self.named_modules() if isinstance(module, Router)]

    def balance_loss(self):
        return torch.stack([router.balance_loss for _, router in self.routers()]).sum()

    def parameter_counts(self):
        """(all, active): active leaves out, of every expert tensor, the experts a token does not choose,
        and the embedding table, of which a token reads one row, unless it is the head as well."""
        c = self.config
        total = active = 0
        for name, tensor in self.named_parameters():
            total += tensor.numel()
            share = 1.0
            if tensor.dim() == 3:
                in_attention = ".attention." in name
                experts = c.attention_experts if in_attention else c.feed_forward_experts
                share = (c.attention_chosen if in_attention else c.feed_forward_chosen) / experts
            if name == "embedding" and self.head is not None:
                share = 0.0
            active += int(tensor.numel() * share)
        return total, active
