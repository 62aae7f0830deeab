"""What a generation gives: pieces while it runs, a completion at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

import grpc

from switchyard.errors import ServerError, from_grpc
from switchyard.v1 import inference_pb2


@dataclass(frozen=True)
class Logprob:
    """How likely one token was. `token` is its bytes, which may be a part of a character."""

    token_id: int
    logprob: float  # natural logarithm, at most 0
    token: bytes


@dataclass(frozen=True)
class TokenLogprobs:
    """The chosen token, and the likeliest ones in its place by falling probability."""

    chosen: Logprob
    top: Sequence[Logprob]


@dataclass(frozen=True)
class Delta:
    """What came since the last delta. A token's text may come later than its id: text holds whole characters only."""

    text: str
    token_ids: Sequence[int]
    logprobs: Sequence[TokenLogprobs] = ()


@dataclass(frozen=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int  # counts a matched stop token
    cached_prompt_tokens: int


@dataclass(frozen=True)
class Timings:
    """Seconds on the server's clock, counted from when it accepted the request."""

    queue_seconds: float
    time_to_first_token_seconds: float
    decode_seconds: float  # from the first token to the last
    total_seconds: float

    def tokens_per_second(self, completion_tokens: int) -> float:
        """Tokens after the first for each second of decoding; 0 when there is only one."""
        if completion_tokens < 2 or self.decode_seconds <= 0:
            return 0.0
        return (completion_tokens - 1) / self.decode_seconds


@dataclass(frozen=True)
class Completion:
    """A whole completion.

    finish_reason is "stop" (end of sequence, a stop token or a stop string; one of the three fields below says
    which) or "length" (max_tokens, or the end of the context).
    """

    text: str
    token_ids: Sequence[int]
    logprobs: Sequence[TokenLogprobs]
    finish_reason: str
    stop_string: str | None
    stop_token_id: int | None
    eos_token_id: int | None
    usage: Usage
    timings: Timings
    seed: int  # the seed that was used; the same one gives the same completion
    request_id: str
    prompt_token_ids: Sequence[int]  # empty unless echo_prompt_tokens was set


class GenerationStream:
    """An iterator over the deltas of one completion.

    After the last delta, `finished` holds the whole Completion; before, it is None. Closing the stream
    early (close(), or leaving a `with` block) cancels the request, and the server stops working for it.
    Iterating raises the errors of switchyard.errors.
    """

    def __init__(self, call: grpc.Call):
        self._call = call
        self._deltas: list[Delta] = []
        self._closed = False
        self.finished: Completion | None = None

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        if self._closed or self.finished is not None:
            raise StopIteration
        try:
            for response in self._call:
                if response.WhichOneof("event") == "delta":
                    self._deltas.append(to_delta(response.delta))
                    return self._deltas[-1]
                if response.WhichOneof("event") == "finished":
                    self.finished = to_completion(join(self._deltas), response.finished)
        except grpc.RpcError as error:
            self._closed = True
            raise from_grpc(error) from None
        if self.finished is None:
            raise ServerError("the stream ended without its `finished` event", grpc.StatusCode.DATA_LOSS)
        raise StopIteration

    def close(self) -> None:
        """Cancels the request if it still runs; no more deltas come."""
        self._closed = True
        self._call.cancel()

    def result(self) -> Completion:
        """Reads the rest and returns the whole completion."""
        for _ in self:
            pass
        if self.finished is None:
            raise ServerError("the stream was closed before its end", grpc.StatusCode.CANCELLED)
        return self.finished

    def __enter__(self) -> "GenerationStream":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def to_logprob(message: inference_pb2.TokenLogprob) -> Logprob:
    return Logprob(message.token_id, message.logprob, message.token)


def to_delta(message) -> Delta:
    """From a Delta message, or from anything else with its fields."""
    logprobs = tuple(
        TokenLogprobs(to_logprob(token.chosen), tuple(map(to_logprob, token.top))) for token in message.logprobs
    )
    return Delta(message.text, tuple(message.token_ids), logprobs)


def join(deltas: Sequence[Delta]) -> Delta:
    return Delta(
        "".join(delta.text for delta in deltas),
        tuple(token_id for delta in deltas for token_id in delta.token_ids),
        tuple(token for delta in deltas for token in delta.logprobs),
    )


def to_completion(whole: Delta, finished: inference_pb2.Finished) -> Completion:
    stop = finished.WhichOneof("matched_stop")
    usage, timings = finished.usage, finished.timings
    return Completion(
        text=whole.text,
        token_ids=whole.token_ids,
        logprobs=whole.logprobs,
        finish_reason="stop" if finished.reason == inference_pb2.FINISH_REASON_STOP else "length",
        stop_string=finished.stop_string if stop == "stop_string" else None,
        stop_token_id=finished.stop_token_id if stop == "stop_token_id" else None,
        eos_token_id=finished.eos_token_id if stop == "eos_token_id" else None,
        usage=Usage(usage.prompt_tokens, usage.completion_tokens, usage.cached_prompt_tokens),
        timings=Timings(
            timings.queue_seconds, timings.time_to_first_token_seconds, timings.decode_seconds, timings.total_seconds
        ),
        seed=finished.seed,
        request_id=finished.request_id,
        prompt_token_ids=tuple(finished.prompt_token_ids),
    )
