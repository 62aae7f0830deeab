"""Three replicas behind the real HAProxy while one is killed and another drains: clients that retry notice nothing."""

import json
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

import yaml

import switchyard_process
from live_prometheus import DEPLOY, ROOT, free_port
from switchyard import Client, ServerError, SwitchyardError, UnavailableError
from switchyard.retry import MAX_RETRIES, service_config

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")
STREAMS = 12
TOKENS = 500
MOST_HEADER_BYTES = 64 << 20
TIMEOUT_S = 120


class Replicas:
    """Three servers, and addresses at which a client finds all of them."""

    def __init__(self):
        self.servers = []
        for _ in range(3):
            self.servers.append(
                switchyard_process.ServerProcess(
                    ROOT / "models" / "bible-moa", "--http", "127.0.0.1:0", "--drain-timeout", str(TIMEOUT_S)
                )
            )
        for server in self.servers:
            switchyard_process.run("health", "--server", server.address, "--wait", TIMEOUT_S)

    def close(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.stop()

    def addresses(self):
        """For a gRPC client that balances by itself."""
        return "ipv4:" + ",".join(server.address for server in self.servers)

    def open_streams(self, index):
        with Client(self.servers[index].address, timeout=TIMEOUT_S) as client:
            return client.load().open_streams


class Proxy:
    """HAProxy with deploy/proxy/haproxy.cfg in front of them."""

    def __init__(self, replicas):
        self.folder = tempfile.TemporaryDirectory()
        self.address = f"127.0.0.1:{free_port()}"
        config = (DEPLOY / "proxy" / "haproxy.cfg").read_text(encoding="utf-8")
        config = config.replace("bind :50050 ", f"bind {self.address} ")
        for number, server in enumerate(replicas.servers, start=1):
            config = config.replace(f"127.0.0.1:5005{number} port 808{number}", f"{server.address} port {server.http_port()}")
        assert ":5005" not in config.replace(self.address, ""), config
        path = pathlib.Path(self.folder.name, "haproxy.cfg")
        path.write_text(config, encoding="utf-8")
        self.log = open(pathlib.Path(self.folder.name, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([HAPROXY, "-db", "-f", str(path)], stdout=self.log, stderr=subprocess.STDOUT)
        with Client(self.address) as client:
            client.wait_until_serving(TIMEOUT_S)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(TIMEOUT_S)
        self.log.close()
        self.folder.cleanup()


def frame(kind, flags, stream, payload):
    """Of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Streams:
    """Completions that run at the same time through one client."""

    def __init__(self, client, seeds):
        self.tokens, self.errors, self.resumptions = {}, {}, 0
        self._client = client
        self._begun = threading.Barrier(len(seeds) + 1, timeout=TIMEOUT_S)
        self._threads = [threading.Thread(target=self._run, args=(seed,)) for seed in seeds]
        for thread in self._threads:
            thread.start()

    def wait_until_all_have_begun(self):
        try:
            self._begun.wait()
        except threading.BrokenBarrierError:
            raise RuntimeError(f"not all streams have begun: {self.errors}") from None

    def join(self):
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def _run(self, seed):
        parameters = {"max_tokens": TOKENS, "ignore_eos": True, "seed": seed}
        stream = self._client.generate("And the king said", **parameters)
        try:
            next(stream)
            self._begun.wait()
            self.tokens[seed] = list(stream.result().token_ids)
        except SwitchyardError as error:
            self.errors[seed] = error
            self._begun.abort()
        self.resumptions += stream.resumptions


class ReplicasTest(unittest.TestCase):
    def setUp(self):
        self.replicas = Replicas()
        self.addCleanup(self.replicas.close)

    def check_tokens(self, streams, seeds):
        """They are those of a server that nothing happened to."""
        self.assertEqual(streams.errors, {})
        with Client(self.replicas.servers[2].address, timeout=TIMEOUT_S) as client:
            for seed in seeds:
                alone = client.generate_once("And the king said", max_tokens=TOKENS, ignore_eos=True, seed=seed)
                self.assertEqual(streams.tokens[seed], list(alone.token_ids))


@unittest.skipIf(HAPROXY is None, "no haproxy here; tools/install_dependencies.sh test installs it")
class BehindTheProxy(ReplicasTest):
    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.replicas)
        self.addCleanup(self.proxy.close)

    def connect(self, **options):
        client = Client(self.proxy.address, timeout=TIMEOUT_S, **options)
        self.addCleanup(client.close)
        return client

    def test_one_connection_is_spread_over_all_replicas(self):
        streams = Streams(self.connect(), range(STREAMS))
        streams.wait_until_all_have_begun()

        open_streams = [self.replicas.open_streams(index) for index in range(3)]
        streams.join()

        self.assertEqual(open_streams, [STREAMS // 3] * 3)
        self.assertEqual(streams.errors, {})

    def test_clients_that_retry_see_neither_a_kill_nor_a_drain(self):
        killed, draining, _ = self.replicas.servers
        client = self.connect(retries=4)
        streams = Streams(client, range(STREAMS))
        streams.wait_until_all_have_begun()
        self.assertGreater(self.replicas.open_streams(0), 0)
        self.assertGreater(self.replicas.open_streams(1), 0)

        killed.process.kill()
        draining.process.terminate()
        later = Streams(client, range(100, 100 + STREAMS))
        later.wait_until_all_have_begun()
        streams.join()
        later.join()

        self.assertGreater(streams.resumptions, 0)
        self.check_tokens(streams, range(STREAMS))
        self.assertEqual(later.errors, {})
        # The one that drained has finished what it had begun.
        self.assertEqual(draining.process.wait(TIMEOUT_S), 0)
        self.assertTrue(any("event=drained streams_left=0" in line for line in draining.log), draining.log)

    def test_headers_without_an_end_are_cut_off_before_a_replica_sees_them(self):
        host, port = self.proxy.address.split(":")
        greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kind=4, flags=0, stream=0, payload=b"")
        announced = b"\x00\x01x\x7f\x81\xff\xff\x7f"  # a header "x" of 2^28 bytes
        taken = 0
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as endless:
            endless.sendall(greeting + frame(kind=1, flags=0, stream=1, payload=announced))
            try:
                while taken < MOST_HEADER_BYTES:
                    endless.sendall(frame(kind=9, flags=0, stream=1, payload=b"x" * 4096))
                    taken += 4096
                while endless.recv(4096):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                pass

        # It ended: neither the limit of bytes nor of time was what stopped the client.
        self.assertLess(taken, MOST_HEADER_BYTES)
        self.assertEqual(len(self.connect().generate_once("And the king said", max_tokens=1).token_ids), 1)

    def test_a_client_that_does_not_retry_is_told_that_its_stream_broke(self):
        streams = Streams(self.connect(), range(STREAMS))
        streams.wait_until_all_have_begun()

        self.replicas.servers[0].process.kill()
        streams.join()

        self.assertEqual(len(streams.errors), STREAMS // 3)
        for error in streams.errors.values():
            self.assertIsInstance(error, (UnavailableError, ServerError))
            self.assertIn(error.code.name, ("UNAVAILABLE", "UNKNOWN"))


class WithoutAProxy(ReplicasTest):
    def test_a_client_balances_and_goes_on_by_itself(self):
        client = Client(self.replicas.addresses(), timeout=TIMEOUT_S, retries=4)
        self.addCleanup(client.close)
        client.wait_until_serving(TIMEOUT_S)
        streams = Streams(client, range(STREAMS))
        streams.wait_until_all_have_begun()
        self.assertGreater(self.replicas.open_streams(0), 0)

        self.replicas.servers[0].process.kill()
        streams.join()

        self.assertGreater(streams.resumptions, 0)
        self.check_tokens(streams, range(STREAMS))


class Configurations(unittest.TestCase):
    def test_the_documented_policy_is_that_of_the_python_client(self):
        documented = json.loads((DEPLOY / "proxy" / "service_config.json").read_text(encoding="utf-8"))
        self.assertEqual(documented, json.loads(service_config(MAX_RETRIES)))

    def test_envoy_and_haproxy_listen_on_the_same_port_and_name_their_clusters(self):
        envoy = yaml.safe_load((DEPLOY / "proxy" / "envoy.yaml").read_text(encoding="utf-8"))["static_resources"]
        (listener,), (cluster,) = envoy["listeners"], envoy["clusters"]
        port = listener["address"]["socket_address"]["port_value"]
        haproxy = (DEPLOY / "proxy" / "haproxy.cfg").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\s+bind :(\d+) proto h2$", haproxy, re.MULTILINE), [str(port)])
        (route,) = listener["filter_chains"][0]["filters"][0]["typed_config"]["route_config"]["virtual_hosts"][0]["routes"]
        self.assertEqual(route["route"]["cluster"], cluster["name"])
        self.assertEqual(cluster["load_assignment"]["cluster_name"], cluster["name"])


if __name__ == "__main__":
    unittest.main()
