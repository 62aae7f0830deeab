"""The probes of the manifests against the real server while its load takes ten minutes of a clock that is only a number."""

import os
import re
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

import kustomize
import switchyard_process
import validators
from kubelet import Kubelet
from live_prometheus import DEPLOY, free_port
from test_helm import CLAIM, EVERYTHING, render

LISTENS_AT = 30  # an image that is new on the node, a slow start
LOADED_AT = LISTENS_AT + 600
OVER_AT = LOADED_AT + 300
TIMEOUT_S = 60


class HeldServer:
    """`serve` from its first line on, with a model that is loaded when release() says so."""

    def __init__(self):
        self.process = subprocess.Popen(
            [os.environ["SWITCHYARD_HELD_SERVER"]], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.log = ""
        self._read_to("event=loading")
        self.grpc_port = self._port("event=listening")
        self.http_port = self._port("event=http_listening")

    def _read_to(self, event):
        for line in self.process.stderr:
            self.log += line
            if event in line:
                return
        raise RuntimeError(f"the server ended before {event}:\n{self.log}")

    def _port(self, event):
        return int(re.search(rf"{event} .*port=(\d+)", self.log).group(1))

    def release(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self._read_to("event=ready")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode


def get(port, path):
    """The HTTP status, or None when nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except (urllib.error.URLError, ConnectionError):
        return None


def containers():
    """(where from, the server's container) of everything in deploy/ that has probes."""
    overlays = sorted(path.parent for path in DEPLOY.glob("kubernetes/overlays/*/kustomization.yaml"))
    manifests = {overlay.name: kustomize.build(overlay) for overlay in overlays}
    if validators.HERE:
        manifests |= {"helm": render(CLAIM), "helm with everything": render(EVERYTHING)}
    for name, resources in manifests.items():
        (deployment,) = [resource for resource in resources if resource["kind"] == "Deployment"]
        (server,) = [one for one in deployment["spec"]["template"]["spec"]["containers"] if one["name"] == "switchyard"]
        yield name, server


class TestProbesOfALongLoad(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()  # where nobody listens, as long as the server does not
        cls.kubelets = {name: Kubelet(server, cls.ask) for name, server in containers()}
        cls.advance(LISTENS_AT)
        cls.server = HeldServer()
        cls.addClassCleanup(cls.end)
        cls.port = cls.server.http_port
        cls.while_loading = cls.look()
        cls.advance(LOADED_AT)
        cls.restarts_while_loading = {name: list(kubelet.restarts) for name, kubelet in cls.kubelets.items()}
        cls.ready_while_loading = [name for name, kubelet in cls.kubelets.items() if kubelet.ready_since is not None]
        cls.server.release()
        cls.after_loading = cls.look()
        cls.advance(OVER_AT)

    @classmethod
    def end(cls):
        cls.status = cls.server.stop()
        assert cls.status == 0, cls.status

    @classmethod
    def ask(cls, probe):
        return get(cls.port, probe["httpGet"]["path"]) == 200

    @classmethod
    def advance(cls, until):
        for kubelet in cls.kubelets.values():
            kubelet.advance(until)

    @classmethod
    def look(cls):
        health = switchyard_process.run("health", "--server", f"127.0.0.1:{cls.server.grpc_port}")
        return {path: get(cls.port, path) for path in ("/healthz", "/readyz", "/metrics")} | {"health": health.returncode}

    def test_plays_every_manifest(self):
        expected = {"cpu", "cpu-model-image", "gpu"} | ({"helm", "helm with everything"} if validators.HERE else set())
        self.assertEqual(set(self.kubelets), expected)

    def test_the_server_says_while_it_loads_that_it_lives_and_is_not_ready(self):
        self.assertEqual(self.while_loading, {"/healthz": 200, "/readyz": 503, "/metrics": 200, "health": 1})
        self.assertEqual(self.after_loading, {"/healthz": 200, "/readyz": 200, "/metrics": 200, "health": 0})

    def test_nothing_restarts_it_while_it_loads(self):
        self.assertEqual(self.restarts_while_loading, {name: [] for name in self.kubelets})

    def test_nobody_takes_it_for_ready_while_it_loads(self):
        self.assertEqual(self.ready_while_loading, [])

    def test_the_startup_probe_fails_for_ten_minutes_and_then_passes(self):
        for name, kubelet in self.kubelets.items():
            asked = [(second, passed) for second, kind, passed in kubelet.asked if kind == "startupProbe"]
            with self.subTest(manifest=name):
                self.assertEqual(asked[:-1], [(second, False) for second in range(0, LOADED_AT, 5)])
                self.assertEqual(asked[-1], (LOADED_AT, True))

    def test_it_is_ready_soon_after_the_load_and_stays_so_without_a_restart(self):
        for name, kubelet in self.kubelets.items():
            with self.subTest(manifest=name):
                self.assertEqual(kubelet.ready_since, LOADED_AT)
                self.assertEqual(kubelet.restarts, [])
                lively = [passed for _, kind, passed in kubelet.asked if kind == "livenessProbe"]
                self.assertEqual(lively, [True] * 30)


class TestKubelet(unittest.TestCase):
    """That it would have restarted a server which these probes do not suit."""

    def setUp(self):
        self.container = dict(containers())["cpu"]
        self.passing = set()
        self.kubelet = Kubelet(self.container, lambda probe: probe["httpGet"]["path"] in self.passing)

    def test_restarts_a_server_that_never_is_ready_when_the_startup_probe_is_used_up(self):
        self.kubelet.advance(2000)
        self.assertEqual(self.kubelet.restarts, [(895, "startupProbe"), (1790, "startupProbe")])

    def test_restarts_a_server_that_hangs_after_three_failures(self):
        self.passing = {"/readyz", "/healthz"}
        self.kubelet.advance(100)
        self.passing = {"/readyz"}
        self.kubelet.advance(200)
        self.assertEqual(self.kubelet.restarts[0], (120, "livenessProbe"))

    def test_takes_a_server_out_that_is_not_ready_and_does_not_restart_it(self):
        self.passing = {"/readyz", "/healthz"}
        self.kubelet.advance(100)
        self.assertEqual(self.kubelet.ready_since, 0)
        self.passing = {"/healthz"}
        self.kubelet.advance(105)
        self.assertEqual(self.kubelet.ready_since, 0)
        self.kubelet.advance(110)
        self.assertIsNone(self.kubelet.ready_since)
        self.assertEqual(self.kubelet.restarts, [])


if __name__ == "__main__":
    unittest.main()
