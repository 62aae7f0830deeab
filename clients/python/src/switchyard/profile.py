"""What the experts of a model specialise in, by a text that was routed through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from switchyard.v1 import experts_pb2


@dataclass(frozen=True)
class TokenAffinity:
    """A token that came to an expert more often than chance."""

    token_id: int
    piece: str  # as the vocabulary spells it
    routed: int  # how often it came to this expert
    occurrences: int  # of how often in all
    information_bits: float  # pointwise mutual information of token and expert; experts.proto has the formula


@dataclass(frozen=True)
class ExpertSpeciality:
    head: int
    expert: int
    assignments: int  # tokens of the text that came to it
    share: float  # of its head's assignments
    tokens: Sequence[TokenAffinity]  # by falling information


@dataclass(frozen=True)
class RouterSpecialities:
    layer: int
    kind: str
    heads: int
    experts: int
    top_k: int
    specialities: Sequence[ExpertSpeciality]  # of each head and expert


@dataclass(frozen=True)
class ExpertProfile:
    model: str
    tokens: int  # of the text
    distinct_tokens: int
    sequence_tokens: int  # that the text was cut into at most
    device: str
    dtype: str
    min_occurrences: int
    routers: Sequence[RouterSpecialities]  # those that have a choice


def _fields(kind: type, message) -> dict:
    return {name: getattr(message, name) for name in kind.__dataclass_fields__}


def to_speciality(message: experts_pb2.ExpertSpeciality) -> ExpertSpeciality:
    tokens = tuple(TokenAffinity(**_fields(TokenAffinity, token)) for token in message.tokens)
    return ExpertSpeciality(**{**_fields(ExpertSpeciality, message), "tokens": tokens})


def to_router(message: experts_pb2.RouterSpecialities) -> RouterSpecialities:
    specialities = tuple(map(to_speciality, message.specialities))
    return RouterSpecialities(**{**_fields(RouterSpecialities, message), "specialities": specialities})


def to_profile(message: experts_pb2.ProfileExpertsResponse) -> ExpertProfile:
    return ExpertProfile(**{**_fields(ExpertProfile, message), "routers": tuple(map(to_router, message.routers))})
