"""What can go wrong, as exceptions: one class for each thing that a caller does about it."""

from __future__ import annotations

from typing import Sequence, Tuple, Union

import grpc
from google.protobuf.message import DecodeError

from switchyard.v1 import error_details_pb2

Metadata = Sequence[Tuple[str, Union[str, bytes]]]


class SwitchyardError(Exception):
    """Base of all errors of this package.

    `code` is the gRPC status code and `message` what the server (or, when it cannot be reached, gRPC) said.
    `retry_after_seconds` is how long to wait before sending the same request again, when the server says that this
    helps, else None.
    """

    def __init__(self, message: str, code: grpc.StatusCode, retry_after_seconds: float | None = None):
        super().__init__(message)
        self.message = message
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class InvalidRequestError(SwitchyardError):
    """The request is wrong; the message names the field, the value and the limit. Retrying does not help."""


class ModelNotFoundError(SwitchyardError):
    """The server has no model of that name."""


class AccessDeniedError(SwitchyardError):
    """The server wants an API key, another one, or its admin address for this; the message says which."""


class OverloadedError(SwitchyardError):
    """The server has no room for this.

    With `retry_after_seconds` its queue is full: retry after so long, or on another server. Without it the message is too
    large, or this client did not read its stream.
    """


class DeadlineError(SwitchyardError):
    """The call took longer than its timeout; the server has stopped working for it."""


class CancelledError(SwitchyardError):
    """The call was cancelled on this side."""


class UnavailableError(SwitchyardError):
    """The server cannot be reached, is loading its model, or is stopping. Retry later or elsewhere."""


class ServerError(SwitchyardError):
    """Something is wrong in the server, or between it and this client."""


_CLASSES = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequestError,
    grpc.StatusCode.ALREADY_EXISTS: InvalidRequestError,
    grpc.StatusCode.NOT_FOUND: ModelNotFoundError,
    grpc.StatusCode.UNAUTHENTICATED: AccessDeniedError,
    grpc.StatusCode.PERMISSION_DENIED: AccessDeniedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.CANCELLED: CancelledError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
}


def from_grpc(error: grpc.RpcError) -> SwitchyardError:
    """The error of this package that stands for a failed call."""
    code, message = error.code(), error.details() or ""
    return _CLASSES.get(code, ServerError)(message, code, _retry_after_seconds(error.trailing_metadata() or ()))


def _retry_after_seconds(metadata: Metadata) -> float | None:
    for key, value in metadata:
        if key != "grpc-status-details-bin":
            continue
        try:
            for detail in error_details_pb2.ErrorStatus.FromString(value).details:
                if detail.type_url == "type.googleapis.com/google.rpc.RetryInfo":
                    delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
                    return delay.seconds + delay.nanos / 1e9
        except DecodeError:
            return None
    return None
