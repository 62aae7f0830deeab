"""What compose.yaml, Prometheus's configuration and Grafana's provisioning say of each other and of the server."""

import re
import tempfile
import unittest
from pathlib import Path

import yaml

import switchyard_process
from live_prometheus import DEPLOY, ROOT

COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
GRAFANA = DEPLOY / "grafana" / "provisioning"


def mounts(service):
    """Mounted path: what is mounted there, with variables at their defaults."""
    pairs = {}
    for volume in SERVICES[service].get("volumes", []):
        source, target = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).removesuffix(":ro").split(":")
        pairs[target] = source
    return pairs


def published(service):
    """Port inside: (address, port outside)."""
    ports = (port.split(":") for port in SERVICES[service]["ports"])
    return {int(inside): (address, int(outside)) for address, outside, inside in ports}


def flag(name):
    found = [word.split("=", 1)[1] for word in SERVICES["switchyard"]["command"] if word.startswith(f"--{name}=")]
    return found[0] if len(found) == 1 else None


class Compose(unittest.TestCase):
    def test_whatever_is_mounted_exists(self):
        for service in SERVICES:
            for target, source in mounts(service).items():
                with self.subTest(service=service, target=target):
                    if source.startswith("."):
                        self.assertTrue((DEPLOY / source).exists(), source)
                    else:
                        self.assertIn(source, COMPOSE["volumes"])

    def test_the_server_takes_its_command(self):
        # All but the addresses, which are of the container.
        command = [word for word in SERVICES["switchyard"]["command"] if not word.startswith(("--listen", "--http", "--model"))]
        with tempfile.TemporaryDirectory() as folder:
            result = switchyard_process.run(*command, "--model", folder, "--listen", "127.0.0.1:0")
        self.assertIn("config.json", result.stderr)  # every flag was understood: the empty folder is what it minds

    def test_the_server_cannot_write_and_is_nobody(self):
        server = SERVICES["switchyard"]
        dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
        self.assertEqual(server["user"], re.search(r"^USER (\S+)$", dockerfile, re.MULTILINE).group(1))
        self.assertTrue(server["read_only"])
        self.assertEqual(server["cap_drop"], ["ALL"])

    def test_a_drain_is_over_before_the_server_is_killed(self):
        self.assertGreaterEqual(int(SERVICES["switchyard"]["stop_grace_period"].removesuffix("s")), int(flag("drain-timeout")) + 15)

    def test_ports_are_those_of_the_flags_and_closed_to_others(self):
        listening = {int(flag(name).rsplit(":", 1)[1]) for name in ("listen", "http")}
        self.assertEqual(set(published("switchyard")), listening)
        for service in SERVICES:
            self.assertEqual({address for address, _ in published(service).values()}, {"127.0.0.1"}, service)

    def test_prometheus_scrapes_the_server_and_reads_the_alerts(self):
        config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
        (job,) = config["scrape_configs"]
        self.assertEqual(job["static_configs"][0]["targets"], [f"switchyard:{flag('http').rsplit(':', 1)[1]}"])
        place = Path("/etc/prometheus")
        for file in config["rule_files"]:
            self.assertIn(str(place / file), mounts("prometheus"))

    def test_grafana_finds_prometheus_and_its_dashboards(self):
        (source,) = yaml.safe_load((GRAFANA / "datasources" / "prometheus.yaml").read_text(encoding="utf-8"))["datasources"]
        self.assertEqual(source["url"], f"http://prometheus:{next(iter(published('prometheus')))}")
        (provider,) = yaml.safe_load((GRAFANA / "dashboards" / "switchyard.yaml").read_text(encoding="utf-8"))["providers"]
        shown = {target for target in mounts("grafana") if target.startswith(provider["options"]["path"])}
        self.assertEqual({Path(target).name for target in shown}, {path.name for path in (DEPLOY / "grafana").glob("*.json")})


if __name__ == "__main__":
    unittest.main()
