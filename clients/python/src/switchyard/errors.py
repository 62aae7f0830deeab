"""What can go wrong, as exceptions: one class for each thing that a caller does about it."""

from __future__ import annotations

import grpc


class SwitchyardError(Exception):
    """Base of all errors of this package.

    `code` is the gRPC status code and `message` what the server (or, when it cannot be reached, gRPC) said.
    """

    def __init__(self, message: str, code: grpc.StatusCode):
        super().__init__(message)
        self.message = message
        self.code = code


class InvalidRequestError(SwitchyardError):
    """The request is wrong; the message names the field, the value and the limit. Retrying does not help."""


class ModelNotFoundError(SwitchyardError):
    """The server has no model of that name."""


class OverloadedError(SwitchyardError):
    """The server's queue is full. Retry after a pause, or on another server."""


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
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.CANCELLED: CancelledError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
}


def from_grpc(error: grpc.RpcError) -> SwitchyardError:
    """The error of this package that stands for a failed call."""
    code, message = error.code(), error.details() or ""
    return _CLASSES.get(code, ServerError)(message, code)
