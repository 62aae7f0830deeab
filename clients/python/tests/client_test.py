"""A server with a tiny model, and a client of it, that the tests of a class share."""

import tempfile
import unittest
from pathlib import Path

import tiny_model
from switchyard import Client
from switchyard_process import ServerProcess

PROMPT = [1, 80, 81, 82]


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        model = tiny_model.write_moa(Path(temporary.name, "tiny-moa"))
        cls.server = ServerProcess(model, "--admin-listen", "127.0.0.1:0")
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(cls.server.address, timeout=60)
        cls.addClassCleanup(cls.client.close)
        cls.client.wait_until_serving(60)
