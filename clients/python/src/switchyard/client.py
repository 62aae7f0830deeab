"""The client: one connection to one server."""

from __future__ import annotations

import collections
import random
import time
from typing import Any, Iterable, Iterator, Sequence

import grpc
from google.protobuf import wrappers_pb2

from switchyard.completion import (
    Completion,
    Scores,
    to_completion,
    to_delta,
    to_routing_trace,
    to_scores,
    to_token_logprobs,
)
from switchyard.errors import DeadlineError, from_grpc
from switchyard.model import ExpertStatistics, Load, ModelInfo, Tokens, to_expert_statistics, to_load, to_model_info
from switchyard.profile import ExpertProfile, to_profile
from switchyard.request import generation_request, score_request
from switchyard.retry import MAX_RETRIES, service_config
from switchyard.stream import GenerationStream
from switchyard.v1 import experts_pb2, experts_pb2_grpc, inference_pb2, inference_pb2_grpc

# gRPC's own limit of 4 MiB for what is received is too small for long prompts with log-probabilities.
DEFAULT_MAX_MESSAGE_BYTES = 64 << 20
SERVING = 1

_PHASES = {
    "prefill": experts_pb2.PHASE_PREFILL,
    "decode": experts_pb2.PHASE_DECODE,
    "recompute": experts_pb2.PHASE_RECOMPUTE,
    "warm_up": experts_pb2.PHASE_WARM_UP,
}
_WINDOWS = {
    "life": experts_pb2.WINDOW_LIFE,
    "10s": experts_pb2.WINDOW_10_SECONDS,
    "1m": experts_pb2.WINDOW_1_MINUTE,
    "10m": experts_pb2.WINDOW_10_MINUTES,
    "reset": experts_pb2.WINDOW_SINCE_RESET,
}


class _CallDetails(
    collections.namedtuple(
        "_CallDetails", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")
    ),
    grpc.ClientCallDetails,
):
    """What gRPC tells an interceptor of a call, with other metadata."""


class _ApiKey(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Sends the key with every call."""

    def __init__(self, key: str):
        self._metadata = ("authorization", f"Bearer {key}")

    def _with_key(self, details: grpc.ClientCallDetails) -> _CallDetails:
        return _CallDetails(
            details.method,
            details.timeout,
            [*(details.metadata or ()), self._metadata],
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )

    def intercept_unary_unary(self, continuation, client_call_details, request):
        return continuation(self._with_key(client_call_details), request)

    def intercept_unary_stream(self, continuation, client_call_details, request):
        return continuation(self._with_key(client_call_details), request)


class Client:
    """A connection to a Switchyard server. Safe to use from several threads.

    address: "host:port". Nothing is sent before the first call.
    model: refuse to talk to another model than this; empty accepts whatever the server serves.
    timeout: seconds that one call may take in all, unless the call says otherwise; None is no limit.
    retries: 0 to 4; how often a call is sent again when its server is not there or goes away. Calls then go round the
    addresses of a name ("dns:///name:port"), and a stream that breaks is begun again on another server and goes on where
    it was: see GenerationStream.
    tls: use TLS and believe the authorities that gRPC does; tls_ca: believe these instead. PEM, as bytes.
    tls_certificate, tls_key: for servers that ask their clients for one. PEM, as bytes.
    tls_server_name: the name that the server's certificate must have, if not the host's.
    api_key: for servers that want one. Without TLS everybody on the way can read it.
    """

    def __init__(
        self,
        address: str,
        *,
        model: str = "",
        timeout: float | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        retries: int = 0,
        tls: bool = False,
        tls_ca: bytes | None = None,
        tls_certificate: bytes | None = None,
        tls_key: bytes | None = None,
        tls_server_name: str | None = None,
        api_key: str | None = None,
    ):
        if not 0 <= retries <= MAX_RETRIES:
            raise ValueError(f"retries is {retries}; it is 0 to {MAX_RETRIES}")
        self._model = model
        self._timeout = timeout
        self._retries = retries
        options = [
            ("grpc.max_send_message_length", max_message_bytes),
            ("grpc.max_receive_message_length", max_message_bytes),
            # gRPC's defaults, 1 s and 120 s, would find a server that has just come up far too late.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 5000),
        ]
        if retries > 0:
            options.append(("grpc.service_config", service_config(retries)))
        if tls_server_name is not None:
            options.append(("grpc.ssl_target_name_override", tls_server_name))
        if tls or tls_ca is not None or tls_certificate is not None:
            credentials = grpc.ssl_channel_credentials(tls_ca, tls_key, tls_certificate)
            channel = grpc.secure_channel(address, credentials, options)
        else:
            channel = grpc.insecure_channel(address, options)
        self._channel = channel if api_key is None else grpc.intercept_channel(channel, _ApiKey(api_key))
        self._inference = inference_pb2_grpc.InferenceServiceStub(self._channel)
        self._experts = experts_pb2_grpc.ExpertServiceStub(self._channel)
        # The messages of grpc.health.v1 have one field each, a string and an enum, both number 1: on the wire they
        # are these wrappers. A health.proto of our own would clash with the one of grpcio-health-checking.
        self._check_health = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=wrappers_pb2.StringValue.SerializeToString,
            response_deserializer=wrappers_pb2.Int32Value.FromString,
        )

    def close(self) -> None:
        """Closes the connection; streams that still run are cancelled."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def generate(
        self, prompt: str | Sequence[int], *, timeout: float | None = None, **parameters: Any
    ) -> GenerationStream:
        """Starts a completion of `prompt` (text or token ids) and returns an iterator over its pieces.

        `parameters` are those of switchyard.request.generation_request: temperature, max_tokens, stop_strings and so
        on. What is not given takes the model's default; see model_info().
        """
        request = generation_request(prompt, model=self._model, **parameters)
        if self._retries > 0 and not request.HasField("beam_search") and not request.sampling.HasField("seed"):
            # The server would choose another one each time.
            request.sampling.seed = random.getrandbits(63)
        seconds = self._seconds(timeout)
        deadline = None if seconds is None else time.monotonic() + seconds

        def start() -> grpc.Call:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            return self._inference.Generate(request, timeout=left)

        return GenerationStream(start, self._retries)

    def generate_once(
        self, prompt: str | Sequence[int], *, timeout: float | None = None, **parameters: Any
    ) -> Completion:
        """As `generate`, but returns the whole completion in one answer."""
        request = generation_request(prompt, model=self._model, **parameters)
        response = self._call(self._inference.GenerateOnce, request, timeout)
        wholes = [to_delta(part, index) for index, part in enumerate([response, *response.further_completions])]
        logprobs = tuple(map(to_token_logprobs, response.prompt_logprobs))
        return to_completion(wholes, response.finished, logprobs, tuple(map(to_routing_trace, response.routing)))

    def score(
        self,
        prompt: str | Sequence[int],
        continuations: Sequence[str] | Sequence[Sequence[int]],
        *,
        timeout: float | None = None,
        **parameters: Any,
    ) -> Scores:
        """How likely each of `continuations` (all texts, or all token ids) is after `prompt`, which is computed once.

        `parameters` are those of switchyard.request.score_request.
        """
        request = score_request(prompt, continuations, model=self._model, **parameters)
        return to_scores(self._call(self._inference.Score, request, timeout))

    def tokenize(
        self,
        text: str,
        *,
        add_bos: bool | None = None,
        parse_special_tokens: bool | None = None,
        timeout: float | None = None,
    ) -> Tokens:
        """Token ids of a text. add_bos: whether the beginning-of-sequence token comes first; None: the model's way."""
        request = inference_pb2.TokenizeRequest(
            model=self._model, text=text, add_bos=add_bos, parse_special_tokens=parse_special_tokens
        )
        response = self._call(self._inference.Tokenize, request, timeout)
        return Tokens(tuple(response.token_ids), tuple(response.pieces))

    def detokenize(self, token_ids: Iterable[int], *, timeout: float | None = None) -> str:
        """The text of token ids; control tokens are left out."""
        request = inference_pb2.DetokenizeRequest(model=self._model, token_ids=token_ids)
        return self._call(self._inference.Detokenize, request, timeout).text

    def model_info(self, *, timeout: float | None = None) -> ModelInfo:
        """The model's dimensions, memory, defaults and routers."""
        request = inference_pb2.GetModelInfoRequest(model=self._model)
        return to_model_info(self._call(self._inference.GetModelInfo, request, timeout))

    def load(self, *, timeout: float | None = None) -> Load:
        """What the server does at this moment, and what it has done since its start."""
        request = inference_pb2.GetLoadRequest(model=self._model)
        return to_load(self._call(self._inference.GetLoad, request, timeout))

    def expert_stats(
        self,
        *,
        layers: Iterable[int] = (),
        kinds: Iterable[str] = (),
        phases: Iterable[str] = (),
        window: str = "life",
        timeout: float | None = None,
    ) -> ExpertStatistics:
        """How many tokens each expert handled, and how evenly they share the work.

        Empty filters mean all layers and kinds, and the phases "prefill" and "decode"; there are also "recompute"
        and "warm_up". window: "life" (since the server began), "10s", "1m", "10m", or "reset" (since the last
        reset_expert_window).
        """
        request = self._expert_request(layers, kinds, phases, window)
        return to_expert_statistics(self._call(self._experts.GetExpertStats, request, timeout))

    def stream_expert_stats(
        self,
        *,
        interval: float = 1.0,
        layers: Iterable[int] = (),
        kinds: Iterable[str] = (),
        phases: Iterable[str] = (),
        window: str = "life",
        timeout: float | None = None,
    ) -> Iterator[ExpertStatistics]:
        """As expert_stats, at once and then every `interval` seconds (0.1 to 60) until the iterator is closed."""
        request = experts_pb2.StreamExpertStatsRequest(
            stats=self._expert_request(layers, kinds, phases, window), interval_ms=round(1000 * interval)
        )
        call = self._experts.StreamExpertStats(request, timeout=self._seconds(timeout))
        return self._read_expert_stats(call)

    def reset_expert_window(self, *, timeout: float | None = None) -> None:
        """The window "reset" begins now, for every client of the server. At its admin address only, as profile_experts."""
        self._call(self._experts.ResetExpertWindow, experts_pb2.ResetExpertWindowRequest(model=self._model), timeout)

    def profile_experts(
        self, text: str, *, min_occurrences: int = 10, most_tokens: int = 8, timeout: float | None = None
    ) -> ExpertProfile:
        """Routes a text through the serving model: which tokens each expert gets more often than chance.

        Tokens that occur less than min_occurrences times are left out; of each expert at most most_tokens are told.
        OverloadedError while another text is being profiled, or when the queue is full. A timeout ends the work.
        """
        request = experts_pb2.ProfileExpertsRequest(
            model=self._model, text=text, min_occurrences=min_occurrences, most_tokens=most_tokens
        )
        return to_profile(self._call(self._experts.ProfileExperts, request, timeout))

    def is_serving(self, *, timeout: float = 1.0) -> bool:
        """Whether the server is ready: reachable, its model loaded and warm."""
        try:
            return self._check_health(wrappers_pb2.StringValue(), timeout=timeout).value == SERVING
        except grpc.RpcError:
            return False

    def wait_until_serving(self, timeout: float = 60.0) -> None:
        """Returns when the server is ready; DeadlineError when that takes longer than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        pause = 0.01
        while not self.is_serving():
            if time.monotonic() + pause > deadline:
                raise DeadlineError(
                    f"the server is not ready after {timeout} s", grpc.StatusCode.DEADLINE_EXCEEDED
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.25)

    def _expert_request(
        self, layers: Iterable[int], kinds: Iterable[str], phases: Iterable[str], window: str
    ) -> experts_pb2.GetExpertStatsRequest:
        return experts_pb2.GetExpertStatsRequest(
            model=self._model,
            layers=layers,
            kinds=kinds,
            phases=[_PHASES[phase] for phase in phases],
            window=_WINDOWS[window],
        )

    @staticmethod
    def _read_expert_stats(call) -> Iterator[ExpertStatistics]:
        try:
            for response in call:
                yield to_expert_statistics(response)
        except grpc.RpcError as error:
            raise from_grpc(error) from None
        finally:
            call.cancel()

    def _seconds(self, timeout: float | None) -> float | None:
        return self._timeout if timeout is None else timeout

    def _call(self, method, request, timeout: float | None):
        try:
            return method(request, timeout=self._seconds(timeout))
        except grpc.RpcError as error:
            raise from_grpc(error) from None
