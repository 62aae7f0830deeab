"""What goes wrong, and as which exception it comes, against the real server."""

import unittest

import grpc
from client_test import PROMPT, ClientTest
from switchyard import (
    AccessDeniedError,
    Client,
    DeadlineError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    SwitchyardError,
    UnavailableError,
)
from switchyard.errors import from_grpc
from switchyard.v1 import error_details_pb2


class Refusal(grpc.RpcError):
    """What grpcio raises for a server without room."""

    def __init__(self, trailing_metadata):
        super().__init__()
        self._trailing_metadata = trailing_metadata

    def code(self):
        return grpc.StatusCode.RESOURCE_EXHAUSTED

    def details(self):
        return "full"

    def trailing_metadata(self):
        return self._trailing_metadata


class Errors(ClientTest):
    def test_a_bad_value_is_an_invalid_request(self):
        with self.assertRaises(InvalidRequestError) as raised:
            self.client.generate_once(PROMPT, temperature=-1)
        self.assertIn("temperature", raised.exception.message)

        with self.assertRaises(InvalidRequestError):
            list(self.client.generate(PROMPT, top_p=0))

    def test_an_empty_prompt_is_an_invalid_request(self):
        for prompt in ("", []):
            with self.assertRaises(InvalidRequestError):
                self.client.generate_once(prompt)

    def test_another_model_is_not_found(self):
        with Client(self.server.address, model="other") as client:
            with self.assertRaises(ModelNotFoundError) as raised:
                client.model_info()
        self.assertIn("other", raised.exception.message)

    def test_a_timeout_that_has_passed_is_a_deadline_error(self):
        with self.assertRaises(DeadlineError):
            self.client.generate_once(PROMPT, max_tokens=90, ignore_eos=True, timeout=1e-6)

    def test_a_server_that_is_not_there_is_unavailable(self):
        with Client("127.0.0.1:1") as client:
            with self.assertRaises(UnavailableError):
                client.tokenize("x")
            self.assertFalse(client.is_serving())
            with self.assertRaises(DeadlineError):
                client.wait_until_serving(0.05)

    def test_one_stop_string_outside_a_list_is_a_mistake(self):
        with self.assertRaises(TypeError):
            self.client.generate(PROMPT, stop_strings="text")

    def test_a_full_server_says_when_to_come_again(self):
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(2300)
        details = error_details_pb2.ErrorStatus(code=8, message="full")
        details.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=retry.SerializeToString())

        full = from_grpc(Refusal([("grpc-status-details-bin", details.SerializeToString())]))
        unexplained = from_grpc(Refusal([("other", "x")]))
        garbled = from_grpc(Refusal([("grpc-status-details-bin", b"\xff\xff")]))

        self.assertIsInstance(full, OverloadedError)
        self.assertEqual(full.retry_after_seconds, 2.3)
        self.assertIsNone(unexplained.retry_after_seconds)
        self.assertIsNone(garbled.retry_after_seconds)

    def test_an_error_that_a_retry_does_not_help_says_no_time(self):
        with self.assertRaises(InvalidRequestError) as raised:
            self.client.generate_once(PROMPT, temperature=-1)

        self.assertIsNone(raised.exception.retry_after_seconds)

    def test_every_error_is_a_switchyard_error(self):
        for error in (
            AccessDeniedError, DeadlineError, InvalidRequestError, ModelNotFoundError, OverloadedError, UnavailableError
        ):
            self.assertTrue(issubclass(error, SwitchyardError))


if __name__ == "__main__":
    unittest.main()
