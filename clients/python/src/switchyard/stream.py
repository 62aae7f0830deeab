"""A generation while it runs."""

from __future__ import annotations

import random
import time
from typing import Callable, Iterator

import grpc

from switchyard.completion import (
    Completion,
    Delta,
    RoutingTrace,
    TokenLogprobs,
    join,
    to_completion,
    to_delta,
    to_routing_trace,
    to_token_logprobs,
)
from switchyard.errors import ServerError, from_grpc
from switchyard.retry import Replay, is_broken


class GenerationStream:
    """An iterator over the deltas of one request; those of several completions come mixed, each says whose it is.

    After the last delta, `finished` holds the whole Completion; before, it is None. `prompt_logprobs` grows while
    they come, before the first delta; `routing` grows all the time, if it was asked for. Closing the stream early
    (close(), or leaving a `with` block) cancels the request, and the server stops working for it. Iterating raises the
    errors of switchyard.errors.

    When the server goes away in the middle, the request is sent again up to `max_resumptions` times. The same request gives
    the same tokens on every server like it, so what came already is left out, and the caller sees a pause; `routing`
    alone begins anew. `resumptions` counts them.
    """

    def __init__(self, start: Callable[[], grpc.Call], max_resumptions: int = 0):
        self._start = start
        self._max_resumptions = max_resumptions
        self.resumptions = 0
        self._pause_seconds = 0.1
        self._replay: Replay | None = None
        self._prompt_logprobs_seen = 0
        self._deltas: list[Delta] = []
        self._closed = False
        self.prompt_logprobs: list[TokenLogprobs] = []
        self.routing: list[RoutingTrace] = []
        self.finished: Completion | None = None
        self._call = start()

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        if self._closed or self.finished is not None:
            raise StopIteration
        while True:
            try:
                delta = self._next_delta()
                break
            except grpc.RpcError as error:
                if not self._resume_after(error):
                    self._closed = True
                    raise from_grpc(error) from None
        if delta is not None:
            self._deltas.append(delta)
            return delta
        if self.finished is None:
            raise ServerError("the stream ended without its `finished` event", grpc.StatusCode.DATA_LOSS)
        raise StopIteration

    def _next_delta(self) -> Delta | None:
        """The next one that has not come yet; None at the end."""
        for response in self._call:
            event = response.WhichOneof("event")
            if event == "delta":
                delta = to_delta(response.delta)
                new = delta if self._replay is None else self._replay.rest_of(delta)
                if new is not None:
                    return new
            if event == "prompt_logprobs":
                self._take_prompt_logprobs(list(map(to_token_logprobs, response.prompt_logprobs.tokens)))
            if event == "routing":
                self.routing.append(to_routing_trace(response.routing))
            if event == "finished":
                self.finished = to_completion(
                    join(self._deltas), response.finished, self.prompt_logprobs, self.routing
                )
        return None

    def _take_prompt_logprobs(self, tokens: list[TokenLogprobs]) -> None:
        known = max(0, len(self.prompt_logprobs) - self._prompt_logprobs_seen)
        self._prompt_logprobs_seen += len(tokens)
        self.prompt_logprobs.extend(tokens[known:])

    def _resume_after(self, error: grpc.RpcError) -> bool:
        """Begins again, if that helps and is allowed."""
        if self._closed or self.resumptions == self._max_resumptions or not is_broken(error):
            return False
        self.resumptions += 1
        time.sleep(self._pause_seconds * (0.5 + random.random()))
        self._pause_seconds *= 2
        self._replay = Replay(self._deltas)
        self._prompt_logprobs_seen = 0
        self.routing = []
        self._call = self._start()
        return True

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
        if hasattr(self, "_call"):  # not when the call could not even be made
            self.close()
