"""TLS and API keys, against the real server."""

import tempfile
import unittest
from pathlib import Path

import tiny_model
from certificates import Authority
from client_test import PROMPT
from switchyard import AccessDeniedError, Client
from switchyard_process import ServerProcess, run


class Secured(unittest.TestCase):
    def test_a_client_with_certificate_and_key_gets_through(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        authority = Authority(folder, "authority")
        certificate, key = authority.issue("server")
        own_certificate, own_key = authority.issue("client")
        made = run("api-key", "--name", "ann")
        (folder / "keys.json").write_text('{"keys": [' + made.stderr.splitlines()[1] + "]}")
        tls = {
            "tls_ca": authority.certificate.read_bytes(),
            "tls_certificate": own_certificate.read_bytes(),
            "tls_key": own_key.read_bytes(),
        }
        server = ServerProcess(
            tiny_model.write_moa(folder / "model"), "--tls-certificate", certificate, "--tls-key", key,
            "--tls-client-ca", authority.certificate, "--api-keys", folder / "keys.json")
        self.addCleanup(server.stop)

        with Client(server.address, timeout=60, api_key=made.stdout.strip(), **tls) as client:
            client.wait_until_serving()
            self.assertEqual(len(client.generate_once(PROMPT, max_tokens=2, ignore_eos=True).token_ids), 2)
            self.assertEqual(len(client.generate(PROMPT, max_tokens=2, ignore_eos=True).result().token_ids), 2)
        with Client(server.address, timeout=60, **tls) as client:
            with self.assertRaises(AccessDeniedError) as refused:
                client.load()
            self.assertIn("Bearer KEY", str(refused.exception))
        with Client(server.address, timeout=5) as client:
            self.assertFalse(client.is_serving())


if __name__ == "__main__":
    unittest.main()
