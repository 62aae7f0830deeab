"""The kustomizations in deploy/kubernetes, without a cluster."""

import shutil
import subprocess
import unittest

import yaml

import kustomize
import validators
from live_prometheus import DEPLOY
from manifest_checks import ManifestChecks

FOLDER = DEPLOY / "kubernetes"
OVERLAYS = sorted(path.parent for path in FOLDER.glob("overlays/*/kustomization.yaml"))


def components_known():
    """Whether there is a kubectl here whose kustomize is of this decade."""
    if shutil.which("kubectl") is None:
        return False
    said = subprocess.run(["kubectl", "version", "--client"], capture_output=True, text=True, timeout=60).stdout
    return "Kustomize Version: v5" in said


class TestKubernetes(ManifestChecks, unittest.TestCase):
    def test_every_overlay_is_a_deployment_whose_parts_fit(self):
        self.assertEqual([path.name for path in OVERLAYS], ["cpu", "cpu-model-image", "gpu"])
        for overlay in OVERLAYS:
            with self.subTest(overlay=overlay.name):
                self.check_manifests(kustomize.build(overlay))

    def test_everything_is_in_the_namespace_of_the_overlay(self):
        for overlay in OVERLAYS:
            for resource in kustomize.build(overlay):
                expected = None if resource["kind"] == "Namespace" else "switchyard"
                self.assertEqual(resource["metadata"].get("namespace"), expected)

    def test_the_overlays_differ_in_where_the_model_comes_from_and_what_computes(self):
        pods = {}
        for overlay in OVERLAYS:
            (deployment,) = [one for one in kustomize.build(overlay) if one["kind"] == "Deployment"]
            pods[overlay.name] = deployment["spec"]["template"]["spec"]
        self.assertEqual([list(pods[name]["volumes"][0]) for name in ("cpu", "gpu")], [["name", "persistentVolumeClaim"]] * 2)
        self.assertEqual(set(pods["cpu-model-image"]["volumes"][0]), {"name", "emptyDir"})
        self.assertEqual(pods["gpu"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "1")

    def test_every_file_belongs_to_a_kustomization(self):
        used = set()
        for settings_path in FOLDER.rglob("kustomization.yaml"):
            settings = yaml.safe_load(settings_path.read_text(encoding="utf-8"))
            names = settings.get("resources", []) + [patch["path"] for patch in settings.get("patches", [])]
            used |= {settings_path} | {(settings_path.parent / name).resolve() for name in names}
        self.assertLessEqual({path.resolve() for path in FOLDER.rglob("*.yaml")}, {path.resolve() for path in used})

    @unittest.skipUnless(components_known(), "no kubectl with kustomize 5 here; Debian 12 has none")
    def test_kustomize_makes_the_same_of_them(self):
        for overlay in OVERLAYS:
            built = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True, timeout=60)
            self.assertEqual((built.returncode, built.stderr), (0, ""))
            real = {kustomize.identity(one): one for one in yaml.safe_load_all(built.stdout)}
            self.assertEqual({kustomize.identity(one): one for one in kustomize.build(overlay)}, real)

    @unittest.skipUnless(validators.HERE, validators.MISSING)
    def test_kubernetes_knows_every_field(self):
        for overlay in OVERLAYS:
            validators.check_schemas(self, kustomize.build(overlay))


if __name__ == "__main__":
    unittest.main()
