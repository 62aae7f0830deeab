"""What a server says of its model, and of the work of its experts."""

from __future__ import annotations

from dataclasses import dataclass, field
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
class RouterKind:
    """What the routers of one kind have in common; `routers` layers have one."""

    kind: str
    routers: int
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
    dtype: str  # that most of the weights are in: f32, f16 or bf16
    router_kinds: Sequence[RouterKind]
    has_expert_baseline: bool  # whether RouterFigures.drift is told


@dataclass(frozen=True)
class RouterFigures:
    """How evenly experts share the work; experts.proto defines each figure."""

    load_variation: float
    effective_experts: float
    dead_share: float
    max_over_mean: float
    margin: float | None  # None where every expert is chosen
    drift: float | None  # None without a baseline


@dataclass(frozen=True)
class ExpertCount:
    head: int
    expert: int
    tokens: int  # assignments to this expert
    gate_weight_sum: float
    utilization: float | None = None  # load over the fair share; None when nothing was routed


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
    figures: RouterFigures | None = None  # of all heads; None when nothing was routed
    head_figures: Mapping[int, RouterFigures] = field(default_factory=dict)  # of each head, when there are several


@dataclass(frozen=True)
class ExpertStatistics:
    model: str
    uptime_seconds: float
    routers: Sequence[RouterStatistics]
    window_seconds: float = 0.0  # how long the window is


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
        if field not in ("name", "default_sampling", "routers", "router_kinds")
    }
    defaults = {
        field.name: value for field, value in message.default_sampling.ListFields() if field.name != "logit_bias"
    }
    routers = tuple(Router(r.layer, r.kind, r.heads, r.experts, r.top_k) for r in message.routers)
    kinds = tuple(RouterKind(k.kind, k.routers, k.heads, k.experts, k.top_k) for k in message.router_kinds)
    return ModelInfo(
        name=message.model, default_sampling=defaults, routers=routers, router_kinds=kinds, **same_name
    )


def to_router_figures(message: experts_pb2.RouterFigures) -> RouterFigures:
    return RouterFigures(
        load_variation=message.load_variation,
        effective_experts=message.effective_experts,
        dead_share=message.dead_share,
        max_over_mean=message.max_over_mean,
        margin=message.margin if message.HasField("margin") else None,
        drift=message.drift if message.HasField("drift") else None,
    )


def to_expert_count(message: experts_pb2.ExpertStats) -> ExpertCount:
    utilization = message.utilization if message.HasField("utilization") else None
    return ExpertCount(message.head, message.expert, message.tokens, message.gate_weight_sum, utilization)


def to_expert_statistics(message: experts_pb2.GetExpertStatsResponse) -> ExpertStatistics:
    routers = tuple(
        RouterStatistics(
            layer=r.layer,
            kind=r.kind,
            heads=r.heads,
            experts=r.experts,
            top_k=r.top_k,
            tokens_routed=r.tokens_routed,
            counts=tuple(map(to_expert_count, r.stats)),
            figures=to_router_figures(r.figures) if r.HasField("figures") else None,
            head_figures={h.head: to_router_figures(h.figures) for h in r.head_figures},
        )
        for r in message.routers
    )
    return ExpertStatistics(message.model, message.uptime_seconds, routers, message.window_seconds)
