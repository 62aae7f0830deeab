"""The Helm chart, rendered by Helm's own library."""

import unittest

import yaml

import validators
from live_prometheus import DEPLOY
from manifest_checks import ManifestChecks

CHART = DEPLOY / "helm" / "switchyard"
CLAIM = {"model": {"existingClaim": "weights"}}
EVERYTHING = {
    "model": {"image": "weights:3"},
    "gpus": 2,
    "server": {"threads": 3, "drainSeconds": 120, "preStopSeconds": 20, "startupSeconds": 1801, "extraArgs": ["--max-queued=32", "--max-streams-per-host=64"]},
    "imagePullSecrets": [{"name": "secret"}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
}
LITTLE = {
    **CLAIM,
    "autoscaling": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
}


def render(values):
    """The resources that the chart makes of these values."""
    import helm_python  # only here where validators.HERE says so

    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="demo", namespace="prod")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [part for text in texts for part in yaml.safe_load_all(text) if part is not None]


@unittest.skipUnless(validators.HERE, validators.MISSING)
class TestHelm(ManifestChecks, unittest.TestCase):
    def test_lint_finds_nothing_to_mend(self):
        import helm_python

        found = helm_python.lint(str(CHART))
        self.assertEqual(found["errors"], [])
        self.assertEqual([message["error"] for message in found["messages"]], ["icon is recommended"])

    def test_makes_deployments_whose_parts_fit(self):
        for values in (CLAIM, EVERYTHING, LITTLE):
            with self.subTest(values=values):
                resources = render(values)
                self.check_manifests(resources)
                validators.check_schemas(self, resources)

    def test_makes_what_the_values_ask_for(self):
        everything = {resource["kind"]: resource for resource in render(EVERYTHING)}
        self.assertLessEqual({"HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor", "PrometheusRule"}, set(everything))
        pod = everything["Deployment"]["spec"]["template"]["spec"]
        server = pod["containers"][0]
        self.assertEqual(pod["terminationGracePeriodSeconds"], 20 + 120 + 15)
        self.assertEqual(server["startupProbe"]["failureThreshold"] * 5, 1805)
        self.assertEqual(server["args"][-2:], ["--max-queued=32", "--max-streams-per-host=64"])
        self.assertEqual(server["resources"]["limits"]["nvidia.com/gpu"], "2")
        self.assertEqual(server["image"], "switchyard:0.1.0-cuda")
        self.assertEqual(pod["initContainers"][0]["image"], "weights:3")
        self.assertEqual([one["key"] for one in pod["tolerations"]], ["dedicated", "nvidia.com/gpu"])
        self.assertEqual((pod["nodeSelector"], pod["imagePullSecrets"]), ({"disk": "fast"}, [{"name": "secret"}]))

        little = [resource["kind"] for resource in render(LITTLE)]
        self.assertEqual(sorted(little), ["Deployment", "Service", "Service", "ServiceAccount"])

    def test_two_releases_do_not_share_pods(self):
        (deployment,) = [resource for resource in render(CLAIM) if resource["kind"] == "Deployment"]
        self.assertEqual(deployment["metadata"]["name"], "demo-switchyard")
        self.assertEqual(deployment["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"], "demo")

    def test_refuses_values_that_it_does_not_understand(self):
        import helm_python

        for values, said in (
            ({}, "model.existingClaim"),
            ({"model": {"existingClaim": "a", "image": "b"}}, "are both set"),
            ({**CLAIM, "replica": 3}, "'replica' not allowed"),
            ({**CLAIM, "server": {"threads": "4"}}, "/server/threads"),
        ):
            with self.subTest(values=values), self.assertRaisesRegex(helm_python.HelmError, said):
                render(values)


class TestChartFiles(unittest.TestCase):
    def test_the_chart_has_the_alerts_and_the_version_of_the_project(self):
        self.assertEqual((CHART / "files" / "alerts.yaml").read_bytes(), (DEPLOY / "alerts.yaml").read_bytes())
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
        cmake = (DEPLOY.parent / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertIn(f"project(switchyard VERSION {chart['appVersion']} ", cmake)


if __name__ == "__main__":
    unittest.main()
