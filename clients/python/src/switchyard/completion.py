"""What a generation gives: pieces while it runs, a completion at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

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
    completion: int = 0  # whose it is: 0 to n - 1


@dataclass(frozen=True)
class RouterTrace:
    """The experts that one router chose for a run of tokens, and the gate of each of them."""

    layer: int
    kind: str  # as Router.kind
    heads: int
    top_k: int
    expert_ids: Sequence[int]  # tokens * heads * top_k, the token outermost, by falling score
    weights: Sequence[float]


@dataclass(frozen=True)
class RoutingTrace:
    """Which experts worked on consecutive tokens of prompt and completion.

    cached: they were found in the prefix cache, so nothing was routed and `routers` is empty. The last token of a
    completion is in no trace: what would follow it is not computed.
    """

    completion: int  # whose it is: 0 to n - 1
    first_position: int  # 0 is the first token of the prompt
    tokens: int
    cached: bool
    routers: Sequence[RouterTrace]


@dataclass(frozen=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int  # of all completions that were returned; counts a matched stop token
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
class Choice:
    """One of the completions that a request asked for. Fields are as in Completion."""

    text: str
    token_ids: Sequence[int]
    logprobs: Sequence[TokenLogprobs]
    finish_reason: str
    stop_string: str | None
    stop_token_id: int | None
    eos_token_id: int | None
    logprob_sum: float  # over its tokens


@dataclass(frozen=True)
class Completion:
    """A whole completion, or the first of several; `choices` has all n of them, this one too.

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
    choices: Sequence[Choice]
    prompt_logprobs: Sequence[TokenLogprobs]  # from the prompt's second token on, if asked for by prompt_top_logprobs
    routing: Sequence[RoutingTrace] = ()  # if asked for


@dataclass(frozen=True)
class Score:
    """How likely one continuation is."""

    token_ids: Sequence[int]
    logprob_sum: float
    is_greedy: bool  # whether each token is the likeliest at its place
    logprobs: Sequence[TokenLogprobs]


@dataclass(frozen=True)
class Scores:
    scores: Sequence[Score]  # in the order of the continuations
    usage: Usage  # completion_tokens: those that were scored
    timings: Timings
    request_id: str


def to_logprob(message: inference_pb2.TokenLogprob) -> Logprob:
    return Logprob(message.token_id, message.logprob, message.token)


def to_token_logprobs(message: inference_pb2.TokenLogprobs) -> TokenLogprobs:
    return TokenLogprobs(to_logprob(message.chosen), tuple(map(to_logprob, message.top)))


def to_routing_trace(message: inference_pb2.RoutingTrace) -> RoutingTrace:
    routers = tuple(
        RouterTrace(r.layer, r.kind, r.heads, r.top_k, tuple(r.expert_ids), tuple(r.weights)) for r in message.routers
    )
    return RoutingTrace(message.completion, message.first_position, message.tokens, message.cached, routers)


def to_delta(message, completion: int = 0) -> Delta:
    """From a Delta message, or from anything else with its fields."""
    logprobs = tuple(map(to_token_logprobs, message.logprobs))
    return Delta(message.text, tuple(message.token_ids), logprobs, getattr(message, "completion", completion))


def join(deltas: Sequence[Delta]) -> list[Delta]:
    """One delta for each completion, with all that came of it."""
    parts: list[list[Delta]] = []
    for delta in deltas:
        while len(parts) <= delta.completion:
            parts.append([])
        parts[delta.completion].append(delta)
    return [
        Delta(
            "".join(delta.text for delta in part),
            tuple(token_id for delta in part for token_id in delta.token_ids),
            tuple(token for delta in part for token in delta.logprobs),
            completion,
        )
        for completion, part in enumerate(parts)
    ]


def to_usage(message: inference_pb2.Usage) -> Usage:
    return Usage(message.prompt_tokens, message.completion_tokens, message.cached_prompt_tokens)


def to_timings(message: inference_pb2.Timings) -> Timings:
    return Timings(
        message.queue_seconds, message.time_to_first_token_seconds, message.decode_seconds, message.total_seconds
    )


def to_end(message) -> dict:
    """How a Finished or CompletionEnd message says that it ended."""
    stop = message.WhichOneof("matched_stop")
    return {
        "finish_reason": "stop" if message.reason == inference_pb2.FINISH_REASON_STOP else "length",
        "stop_string": message.stop_string if stop == "stop_string" else None,
        "stop_token_id": message.stop_token_id if stop == "stop_token_id" else None,
        "eos_token_id": message.eos_token_id if stop == "eos_token_id" else None,
    }


def to_completion(
    wholes: Sequence[Delta],
    finished: inference_pb2.Finished,
    prompt_logprobs: Sequence[TokenLogprobs],
    routing: Sequence[RoutingTrace] = (),
) -> Completion:
    """wholes: all that came of each completion, in order; those of which nothing came may be missing at the end."""
    missing = [Delta("", ())] * (max(1, len(finished.completions)) - len(wholes))
    wholes = [*wholes, *missing]
    choices = tuple(
        Choice(whole.text, whole.token_ids, whole.logprobs, **to_end(end), logprob_sum=end.logprob_sum)
        for whole, end in zip(wholes, finished.completions)
    )
    return Completion(
        text=wholes[0].text,
        token_ids=wholes[0].token_ids,
        logprobs=wholes[0].logprobs,
        **to_end(finished),
        usage=to_usage(finished.usage),
        timings=to_timings(finished.timings),
        seed=finished.seed,
        request_id=finished.request_id,
        prompt_token_ids=tuple(finished.prompt_token_ids),
        choices=choices,
        prompt_logprobs=tuple(prompt_logprobs),
        routing=tuple(routing),
    )


def to_scores(response: inference_pb2.ScoreResponse) -> Scores:
    scores = tuple(
        Score(
            tuple(score.token_ids),
            score.logprob_sum,
            score.is_greedy,
            tuple(map(to_token_logprobs, score.logprobs)),
        )
        for score in response.scores
    )
    return Scores(scores, to_usage(response.usage), to_timings(response.timings), response.request_id)
