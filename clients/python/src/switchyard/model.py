"""What a server says of its model, and of the work of its experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

from switchyard.v1 import experts_pb2, inference_pb2


@dataclass(frozen=True)
class Tokens:
    """A tokenized text: ids, and each token as the vocabulary spells it."""

    ids: Sequence[int]
    pieces: Sequence[str]


@dataclass(frozen=True)
class Router:
    """Chooses top_k of `experts` for each token; `heads` of them in a layer, one for each attention head or one in all.

    kind: attn (MoA), attn_q, attn_k, attn_v, attn_o (SwitchHead), ffn.
    """

    layer: int
    kind: str
    heads: int
    experts: int
    top_k: int


@dataclass(frozen=True)
class ModelInfo:
    name: str
    family: str
    vocabulary_size: int
    context_tokens: int
    layers: int
    parameters_total: int
    parameters_active: int  # that work on each token
    weights_bytes: int
    kv_bytes_per_token: int
    kv_block_tokens: int
    kv_blocks_total: int
    kv_tokens_total: int  # tokens that the KV cache holds, of all requests together
    max_step_tokens: int
    device: str
    server_version: str
    has_tokenizer: bool
    default_max_tokens: int
    default_sampling: dict[str, float]  # by the names of Client.generate
    routers: Sequence[Router]


@dataclass(frozen=True)
class ExpertCount:
    head: int
    expert: int
    tokens: int  # assignments to this expert
    gate_weight_sum: float


@dataclass(frozen=True)
class RouterStatistics:
    """The sum of `tokens` over experts is exactly tokens_routed * heads * top_k."""

    layer: int
    kind: str
    heads: int
    experts: int
    top_k: int
    tokens_routed: int
    counts: Sequence[ExpertCount]


@dataclass(frozen=True)
class ExpertStatistics:
    model: str
    uptime_seconds: float
    routers: Sequence[RouterStatistics]


@dataclass(frozen=True)
class Load:
    """What the server does at this moment and has done since its start; inference.proto says what each number is."""

    running_requests: int
    waiting_requests: int
    queued_tokens: int
    open_streams: int
    kv_blocks_total: int
    kv_blocks_used: int
    kv_blocks_cached: int
    kv_blocks_free: int
    steps_total: int
    preemptions_total: int
    not_finite_total: int
    stalls_total: int
    refusals_total: Mapping[str, int]
    step_seconds_total: float
    scheduling_seconds_total: float


def to_load(message: inference_pb2.GetLoadResponse) -> Load:
    numbers = {field: getattr(message, field) for field in Load.__dataclass_fields__}
    return Load(**{**numbers, "refusals_total": dict(message.refusals_total)})


def to_model_info(message: inference_pb2.GetModelInfoResponse) -> ModelInfo:
    same_name = {
        field: getattr(message, field)
        for field in ModelInfo.__dataclass_fields__
        if field not in ("name", "default_sampling", "routers")
    }
    defaults = {
        field.name: value for field, value in message.default_sampling.ListFields() if field.name != "logit_bias"
    }
    routers = tuple(Router(r.layer, r.kind, r.heads, r.experts, r.top_k) for r in message.routers)
    return ModelInfo(name=message.model, default_sampling=defaults, routers=routers, **same_name)


def to_expert_statistics(message: experts_pb2.GetExpertStatsResponse) -> ExpertStatistics:
    routers = tuple(
        RouterStatistics(
            layer=r.layer,
            kind=r.kind,
            heads=r.heads,
            experts=r.experts,
            top_k=r.top_k,
            tokens_routed=r.tokens_routed,
            counts=tuple(ExpertCount(s.head, s.expert, s.tokens, s.gate_weight_sum) for s in r.stats),
        )
        for r in message.routers
    )
    return ExpertStatistics(message.model, message.uptime_seconds, routers)
