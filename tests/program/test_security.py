"""TLS and API keys as people use them: the server's flags, and those of the commands that talk to it."""

import json
import ssl
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import tiny_model
from certificates import Authority
from switchyard_process import ServerProcess, run


class Secured(unittest.TestCase):
    """A server with mutual TLS and API keys, and a client that has all it needs."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.authority = Authority(cls.folder, "authority")
        certificate, key = cls.authority.issue("server")
        cls.client = cls.authority.issue("client")
        made = run("api-key", "--name", "ann")
        cls.key_file = cls.folder / "ann.key"
        cls.key_file.write_text(made.stdout)
        entry = json.loads(made.stderr.splitlines()[1])
        (cls.folder / "keys.json").write_text(json.dumps({"keys": [entry]}))
        cls.server = ServerProcess(
            tiny_model.write_moa(cls.folder / "model"), "--tls-certificate", certificate, "--tls-key", key,
            "--tls-client-ca", cls.authority.certificate, "--api-keys", cls.folder / "keys.json", "--http", "127.0.0.1:0",
            "--http-tls", "server", "--log-format", "text")
        cls.addClassCleanup(cls.server.stop)
        cls.tls = ["--server", cls.server.address, "--tls-ca", cls.authority.certificate, "--tls-certificate", cls.client[0],
                   "--tls-key", cls.client[1]]
        cls.all = [*cls.tls, "--api-key-file", cls.key_file]
        waited = run("health", *cls.tls, "--wait", 60)
        assert waited.returncode == 0, waited.stderr

    def test_each_command_gets_through_with_what_it_needs(self):
        for command in (["load"], ["experts"], ["generate", "--prompt-tokens", "1,80,81", "--max-tokens", 3, "--format", "ids"],
                        ["bench", "--requests", 3, "--prompt-tokens", "fixed:4", "--output-tokens", "fixed:4"]):
            result = run(*command, *self.all)
            self.assertEqual(result.returncode, 0, (command, result.stderr))

    def test_no_command_gets_through_without(self):
        for flags, complaint in (
            (["--server", self.server.address], self.server.address),
            (["--server", self.server.address, "--tls-ca", self.authority.certificate], self.server.address),
            (self.tls, "authorization: Bearer KEY"),
        ):
            result = run("load", *flags)
            self.assertEqual(result.returncode, 1)
            self.assertIn(complaint, result.stderr)

    def test_a_key_file_must_hold_a_key(self):
        bad = self.folder / "bad.key"
        bad.write_text("hunter2\n")
        result = run("load", *self.tls, "--api-key-file", bad)
        self.assertEqual(result.returncode, 1)
        self.assertIn("bad.key: has no API key", result.stderr)
        self.assertNotIn("hunter2", result.stderr)

    def test_https_wants_the_key_too(self):
        context = ssl.create_default_context(cafile=self.authority.certificate)
        url = f"https://127.0.0.1:{self.server.http_port()}"

        with urllib.request.urlopen(f"{url}/readyz", context=context) as page:
            self.assertEqual(page.status, 200)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/v1/load", context=context)
        refused.exception.close()
        self.assertEqual(refused.exception.code, 401)
        request = urllib.request.Request(
            f"{url}/v1/load", headers={"Authorization": "Bearer " + self.key_file.read_text().strip()})
        with urllib.request.urlopen(request, context=context) as page:
            self.assertIn("running_requests", json.load(page))

    def test_the_key_is_in_no_line_of_the_log(self):
        run("load", *self.all)
        key = self.key_file.read_text().strip()
        self.assertTrue(self.server.log)
        self.assertFalse([line for line in self.server.log if key in line])


class Refused(unittest.TestCase):
    """What keeps a server from starting."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def expect_no_server(self, *flags):
        result = run("serve", "--model", self.folder, "--listen", "127.0.0.1:0", *flags)
        self.assertEqual(result.returncode, 1, result.stderr)
        return result.stderr

    def test_a_key_of_another_certificate(self):
        authority = Authority(self.folder, "authority")
        certificate, _ = authority.issue("server")
        _, other = authority.issue("other")

        log = self.expect_no_server("--tls-certificate", certificate, "--tls-key", other)

        self.assertIn("event=listen_failed", log)
        self.assertIn("other.key: is not the key of the first certificate in", log)

    def test_a_file_of_keys_that_is_not_there(self):
        log = self.expect_no_server("--api-keys", self.folder / "keys.json")

        self.assertIn("keys.json: cannot be read: No such file or directory", log)


if __name__ == "__main__":
    unittest.main()
