"""Streams whose server goes away in the middle, played by hand."""

import json
import unittest

import grpc
from switchyard import Client, Delta, ServerError, UnavailableError
from switchyard.retry import Replay, service_config
from switchyard.stream import GenerationStream
from switchyard.v1 import inference_pb2


class Broken(grpc.RpcError):
    """What grpcio raises when a stream breaks."""

    def __init__(self, code=grpc.StatusCode.UNAVAILABLE, details="Socket closed"):
        super().__init__()
        self._code, self._details = code, details

    def code(self):
        return self._code

    def details(self):
        return self._details

    def trailing_metadata(self):
        return ()


class PlayedCall:
    """Gives the events; an exception among them is raised."""

    def __init__(self, events):
        self._events = iter(events)

    def __iter__(self):
        return self

    def __next__(self):
        event = next(self._events)
        if isinstance(event, Exception):
            raise event
        return event

    def cancel(self):
        pass


def delta(text, *ids, completion=0):
    return inference_pb2.GenerateResponse(
        delta=inference_pb2.Delta(text=text, token_ids=ids, completion=completion)
    )


FINISHED = inference_pb2.GenerateResponse(
    finished=inference_pb2.Finished(reason=inference_pb2.FINISH_REASON_LENGTH, completions=[{}])
)


def play(*calls, resumptions=4):
    """A stream that gets one list of events after the other."""
    waiting = list(calls)
    stream = GenerationStream(lambda: PlayedCall(waiting.pop(0)), resumptions)
    stream._pause_seconds = 0
    return stream


class Resuming(unittest.TestCase):
    def test_goes_on_where_the_broken_stream_was(self):
        stream = play(
            [delta("In ", 1), delta("the ", 2), Broken()],
            [delta("In the", 1, 2), delta(" be", 3), delta("ginning", 4), FINISHED],
        )

        deltas = list(stream)

        self.assertEqual([(part.text, list(part.token_ids)) for part in deltas[:2]], [("In ", [1]), ("the ", [2])])
        self.assertEqual("".join(part.text for part in deltas), "In the beginning")
        self.assertEqual([token for part in deltas for token in part.token_ids], [1, 2, 3, 4])
        self.assertEqual(stream.resumptions, 1)
        self.assertEqual((stream.finished.text, list(stream.finished.token_ids)), ("In the beginning", [1, 2, 3, 4]))

    def test_survives_as_many_breaks_as_it_was_told_to(self):
        breaks = [[delta("a", 1), Broken()], [delta("a", 1), delta("b", 2), Broken()]]

        self.assertEqual(play(*breaks, [delta("abc", 1, 2, 3), FINISHED], resumptions=2).result().text, "abc")
        with self.assertRaises(UnavailableError):
            play(*breaks, resumptions=1).result()

    def test_a_proxy_may_say_it_in_its_own_way(self):
        for broken in (
            Broken(grpc.StatusCode.UNKNOWN, "Stream removed"),
            Broken(grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"),
            Broken(grpc.StatusCode.CANCELLED, "Received RST_STREAM with error code 8"),
        ):
            with self.subTest(code=broken.code()):
                self.assertEqual(play([delta("a", 1), broken], [delta("ab", 1, 2), FINISHED]).result().text, "ab")

    def test_a_fault_of_the_server_itself_is_not_repeated(self):
        stream = play([delta("a", 1), Broken(grpc.StatusCode.INTERNAL, "the device failed")])

        with self.assertRaisesRegex(ServerError, "the device failed"):
            stream.result()

    def test_another_continuation_is_an_error_and_not_a_mixture(self):
        stream = play([delta("a", 1), delta("b", 2), Broken()], [delta("a", 1), delta("c", 3), FINISHED])

        with self.assertRaisesRegex(ServerError, "continues otherwise") as raised:
            stream.result()
        self.assertEqual(raised.exception.code, grpc.StatusCode.DATA_LOSS)

    def test_completions_are_told_apart(self):
        replay = Replay([Delta("x", (1,)), Delta("y", (2,), (), 1), Delta("z", (3,), (), 1)])

        self.assertIsNone(replay.rest_of(Delta("y", (2,), (), 1)))
        self.assertEqual(replay.rest_of(Delta("xw", (1, 4))), Delta("w", (4,)))
        self.assertEqual(replay.rest_of(Delta("zv", (3, 5), (), 1)), Delta("v", (5,), (), 1))
        self.assertEqual(replay.rest_of(Delta("u", (6,), (), 2)), Delta("u", (6,), (), 2))

    def test_a_text_that_came_without_its_token_is_not_lost(self):
        replay = Replay([Delta("", (1,))])

        self.assertIsNone(replay.rest_of(Delta("", (1,))))
        self.assertEqual(replay.rest_of(Delta("é", (2,))), Delta("é", (2,)))
        self.assertEqual(replay.rest_of(Delta("!", ())), Delta("!", ()))


class Policy(unittest.TestCase):
    def test_counts_the_first_attempt_as_grpc_does(self):
        (method,) = json.loads(service_config(3))["methodConfig"]

        self.assertEqual(method["retryPolicy"]["maxAttempts"], 4)
        self.assertEqual(method["retryPolicy"]["retryableStatusCodes"], ["UNAVAILABLE", "UNKNOWN"])

    def test_more_than_grpc_allows_is_a_mistake(self):
        with self.assertRaisesRegex(ValueError, "0 to 4"):
            Client("localhost:1", retries=5)


if __name__ == "__main__":
    unittest.main()
