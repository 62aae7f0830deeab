"""What has to hold between the resources of one deployment, whether kustomize or Helm made them."""

import re

import yaml

import switchyard_process
from live_prometheus import DEPLOY, ROOT

LOAD_SECONDS = 600  # that a start may take
SERVER = "switchyard"
NON_ROOT = 65532  # USER of the Dockerfile


def served_pages():
    """The paths that the server's HTTP port answers."""
    return set(re.findall(r'AddPage\(server, "([^"]+)"', (ROOT / "server/http/http_pages.cc").read_text(encoding="utf-8")))


def served_gauges():
    """The gauges of /metrics."""
    text = (ROOT / "server/metrics/metrics_page.cc").read_text(encoding="utf-8")
    return {f"switchyard_{name}" for name in re.findall(r'families\.Gauge\(\s*"(\w+)"', text)}


def step_timeout_seconds():
    """The default of --step-timeout: no probe may give a step less time."""
    return int(re.search(r"--step-timeout SECONDS \[(\d+)\]", switchyard_process.run("serve", "--help").stdout).group(1))


def megabytes(quantity):
    return int(quantity[:-2]) * {"Mi": 1, "Gi": 1024}[quantity[-2:]]


class ManifestChecks:
    """For a unittest.TestCase."""

    def check_manifests(self, resources):
        """`resources`: all of one deployment, in any order."""
        self.by_kind = {}
        names = [(resource["kind"], resource["metadata"]["name"]) for resource in resources]
        self.assertEqual(len(set(names)), len(names))
        for resource in resources:
            self.by_kind.setdefault(resource["kind"], []).append(resource)
        (self.deployment,) = self.by_kind["Deployment"]
        self.template = self.deployment["spec"]["template"]
        self.pod = self.template["spec"]
        (self.server,) = [container for container in self.pod["containers"] if container["name"] == SERVER]
        self.flags = self.read_flags()
        for check in (
            self.check_flags, self.check_selectors, self.check_ports, self.check_probes, self.check_drain, self.check_rights,
            self.check_volumes, self.check_resources, self.check_autoscaler, self.check_network, self.check_monitoring,
        ):  # fmt: skip
            with self.subTest(check=check.__name__):
                check()

    def read_flags(self):
        command, *flags = self.server["args"]
        self.assertEqual(command, "serve")
        pairs = [re.fullmatch(r"(--[a-z-]+)=(.+)", flag).groups() for flag in flags]
        self.assertEqual(len(dict(pairs)), len(pairs))
        return dict(pairs)

    def check_flags(self):
        """The program takes them all: it fails for the missing model, which is status 1; a wrong flag is 2."""
        given = {**self.flags, "--model": "/nowhere", "--listen": "127.0.0.1:0", "--http": "127.0.0.1:0"}
        tried = switchyard_process.run("serve", *(f"{flag}={value}" for flag, value in given.items()))
        self.assertEqual(tried.returncode, 1, tried.stderr)
        self.assertIn("event=load_failed", tried.stderr)

    def check_selectors(self):
        labels = self.template["metadata"]["labels"]
        for kind, place in (("Deployment", "selector"), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
            for resource in self.by_kind.get(kind, []):
                self.assertLessEqual(resource["spec"][place]["matchLabels"].items(), labels.items(), kind)
        for service in self.by_kind["Service"]:
            self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
        for spread in self.pod["topologySpreadConstraints"]:
            self.assertLessEqual(spread["labelSelector"]["matchLabels"].items(), labels.items())

    def check_ports(self):
        ports = {port["name"]: port["containerPort"] for port in self.server["ports"]}
        listening = {"grpc": self.flags["--listen"], "http": self.flags["--http"]}
        self.assertEqual({name: f"0.0.0.0:{port}" for name, port in ports.items()}, listening)
        dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
        self.assertEqual(set(re.search(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE).group(1).split()), set(map(str, ports.values())))
        for service in self.by_kind["Service"]:
            for port in service["spec"]["ports"]:
                self.assertEqual((port["name"], port["port"]), (port["targetPort"], ports[port["targetPort"]]))
        headless = [service for service in self.by_kind["Service"] if service["spec"].get("clusterIP") == "None"]
        self.assertEqual(len(headless), 1)
        self.assertFalse(headless[0]["spec"].get("publishNotReadyAddresses", False))

    def check_probes(self):
        def seconds(probe):
            """How long it may fail before something happens."""
            return probe["periodSeconds"] * probe["failureThreshold"]

        startup, ready, alive = (self.server[f"{kind}Probe"] for kind in ("startup", "readiness", "liveness"))
        for probe in (startup, ready, alive):
            self.assertIn(probe["httpGet"]["path"], served_pages())
            self.assertEqual(probe["httpGet"]["port"], "http")
            self.assertLessEqual(probe["timeoutSeconds"], probe["periodSeconds"])
        self.assertEqual((startup["httpGet"]["path"], ready["httpGet"]["path"]), ("/readyz", "/readyz"))
        self.assertGreaterEqual(seconds(startup), LOAD_SECONDS)
        self.assertGreater(self.deployment["spec"]["progressDeadlineSeconds"], seconds(startup))
        # A server that is merely full, or drains, must not be killed; /healthz says so only when a step hangs.
        self.assertEqual(alive["httpGet"]["path"], "/healthz")
        self.assertLessEqual(seconds(ready), 15)
        self.assertGreaterEqual(step_timeout_seconds(), seconds(alive))

    def check_drain(self):
        command, pause = self.server["lifecycle"]["preStop"]["exec"]["command"]
        self.assertEqual(command, "sleep")
        # Longer than the readiness probe needs to notice, shorter than what is left for the drain.
        self.assertGreaterEqual(int(pause), 5)
        needed = int(pause) + int(self.flags["--drain-timeout"])
        self.assertGreaterEqual(self.pod["terminationGracePeriodSeconds"], needed + 5)

    def check_rights(self):
        self.assertEqual(
            self.pod["securityContext"],
            {"runAsNonRoot": True, "runAsUser": NON_ROOT, "runAsGroup": NON_ROOT, "seccompProfile": {"type": "RuntimeDefault"}},
        )
        self.assertIn(f"\nUSER {NON_ROOT}:{NON_ROOT}\n", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
        for container in self.pod["containers"] + self.pod.get("initContainers", []):
            self.assertEqual(
                container["securityContext"],
                {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
            )
            self.assertRegex(container["image"], r"^[a-z-]+:[\w.-]+$")
        (account,) = self.by_kind["ServiceAccount"]
        self.assertEqual(self.pod["serviceAccountName"], account["metadata"]["name"])
        self.assertIs(self.pod["automountServiceAccountToken"], False)
        for host in ("hostNetwork", "hostPID", "hostIPC"):
            self.assertNotIn(host, self.pod)

    def check_volumes(self):
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        (mount,) = self.server["volumeMounts"]
        self.assertEqual((mount["mountPath"], mount["readOnly"]), (self.flags["--model"], True))
        volume = volumes[mount["name"]]
        writers = [
            container["name"]
            for container in self.pod.get("initContainers", [])
            for mounted in container["volumeMounts"]
            if mounted["name"] == mount["name"] and not mounted.get("readOnly", False)
        ]
        if "emptyDir" in volume:
            self.assertEqual(writers, ["model"])
        else:
            self.assertEqual(writers, [])
            self.assertIs(volume["persistentVolumeClaim"]["readOnly"], True)
            claims = {claim["metadata"]["name"] for claim in self.by_kind.get("PersistentVolumeClaim", [])}
            if claims:
                self.assertIn(volume["persistentVolumeClaim"]["claimName"], claims)

    def check_resources(self):
        requests, limits = self.server["resources"]["requests"], self.server["resources"]["limits"]
        self.assertEqual(requests["memory"], limits["memory"])
        self.assertEqual(requests["cpu"], self.flags["--threads"])
        # Throttled processor time would look like steps that hang.
        self.assertNotIn("cpu", limits)
        self.assertEqual(requests.get("nvidia.com/gpu"), limits.get("nvidia.com/gpu"))
        self.assertEqual("nvidia.com/gpu" in limits, self.flags.get("--device") == "cuda")
        self.assertEqual("-cuda" in self.server["image"], self.flags.get("--device") == "cuda")
        kv_cache = re.fullmatch(r"(\d+)G", self.flags["--kv-cache-memory"])
        if kv_cache is not None:
            self.assertLessEqual(1024 * int(kv_cache.group(1)) + 1024, megabytes(limits["memory"]))

    def check_autoscaler(self):
        scalers = self.by_kind.get("HorizontalPodAutoscaler", [])
        self.assertEqual("replicas" in self.deployment["spec"], not scalers)
        for scaler in scalers:
            spec = scaler["spec"]
            self.assertEqual(
                spec["scaleTargetRef"],
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.deployment["metadata"]["name"]},
            )
            self.assertLess(spec["minReplicas"], spec["maxReplicas"])
            metrics = {metric["pods"]["metric"]["name"] for metric in spec["metrics"]}
            self.assertEqual(metrics, {"switchyard_requests_waiting", "switchyard_kv_cache_usage_ratio"})
            self.assertLessEqual(metrics, served_gauges())
            for budget in self.by_kind.get("PodDisruptionBudget", []):
                # With one server, a budget of one would either block every drain or protect nothing.
                self.assertGreater(spec["minReplicas"], budget["spec"]["maxUnavailable"])

    def check_network(self):
        ports = {port["name"] for port in self.server["ports"]}
        for policy in self.by_kind.get("NetworkPolicy", []):
            self.assertEqual(set(policy["spec"]["policyTypes"]), {"Ingress", "Egress"})
            self.assertEqual(policy["spec"]["egress"], [])
            allowed = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
            self.assertEqual(sorted(allowed), sorted(ports))
            self.assertTrue(all(rule["from"] for rule in policy["spec"]["ingress"]))

    def check_monitoring(self):
        for monitor in self.by_kind.get("ServiceMonitor", []):
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            (service,) = [one for one in self.by_kind["Service"] if wanted <= one["metadata"]["labels"].items()]
            (endpoint,) = monitor["spec"]["endpoints"]
            self.assertIn(endpoint["port"], {port["name"] for port in service["spec"]["ports"]})
            self.assertIn(endpoint["path"], served_pages())
            # up{job="switchyard"} in the alerts.
            self.assertEqual(service["metadata"]["labels"][monitor["spec"]["jobLabel"]], "switchyard")
        for rule in self.by_kind.get("PrometheusRule", []):
            self.assertEqual(rule["spec"], yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8")))
