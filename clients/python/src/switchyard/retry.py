"""When a call is sent again, and what of a repeated stream is new."""

from __future__ import annotations

import json
from typing import Sequence

import grpc

from switchyard.completion import Delta, join
from switchyard.errors import ServerError

MAX_RETRIES = 4  # gRPC itself makes at most five attempts

# Nothing that these services do is worse for being done twice. A server never says UNKNOWN: it is what gRPC makes of a
# stream that a proxy drops because the server behind it is gone.
RETRYABLE = ("UNAVAILABLE", "UNKNOWN")


def service_config(retries: int) -> str:
    """How gRPC spreads calls over the addresses of a name, and repeats those that have not begun to be answered."""
    policy = {
        "maxAttempts": retries + 1,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": list(RETRYABLE),
    }
    services = ("switchyard.v1.InferenceService", "switchyard.v1.ExpertService")
    return json.dumps(
        {
            "loadBalancingConfig": [{"round_robin": {}}],
            "methodConfig": [{"name": [{"service": name} for name in services], "retryPolicy": policy}],
            "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1},
        }
    )


def is_broken(error: grpc.RpcError) -> bool:
    """Whether the way to the server, or the server as a whole, is gone: another one would go on."""
    return error.code().name in RETRYABLE or "RST_STREAM" in (error.details() or "")


class Replay:
    """Takes a repeated stream and leaves out what came before it broke."""

    def __init__(self, known: Sequence[Delta]):
        self._known = join(known)
        self._seen = [Delta("", (), (), whole.completion) for whole in self._known]

    def rest_of(self, delta: Delta) -> Delta | None:
        """What is new in it, or None. ServerError when the repetition says something else than the first time."""
        if delta.completion >= len(self._known):
            return delta
        known, before = self._known[delta.completion], self._seen[delta.completion]
        (seen,) = join([Delta(before.text, before.token_ids, before.logprobs), _of_first(delta)])
        self._seen[delta.completion] = seen
        _check_alike(known.token_ids, seen.token_ids)
        _check_alike(known.text, seen.text)
        rest = Delta(
            _beyond(known.text, before.text, seen.text),
            _beyond(known.token_ids, before.token_ids, seen.token_ids),
            _beyond(known.logprobs, before.logprobs, seen.logprobs),
            delta.completion,
        )
        return rest if rest.text or rest.token_ids else None


def _of_first(delta: Delta) -> Delta:
    return Delta(delta.text, delta.token_ids, delta.logprobs)


def _check_alike(known, seen) -> None:
    common = min(len(known), len(seen))
    if known[:common] != seen[:common]:
        raise ServerError(
            "the server that goes on continues otherwise than the one before it: do they have the same model, version and "
            "processor?",
            grpc.StatusCode.DATA_LOSS,
        )


def _beyond(known, before, seen):
    """The end of `seen` that is neither in what was known nor in what was seen before."""
    return seen[max(len(known), len(before)) :]
