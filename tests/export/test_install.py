"""pip makes a command of the package."""

import shutil
import subprocess
import sys

from export_case import DATA, TOOLS, ExportCase

PIP = [sys.executable, "-m", "pip"]


class Install(ExportCase):
    def test_pip_installs_a_command_that_exports(self):
        if subprocess.run([*PIP, "--version"], capture_output=True).returncode:
            self.skipTest("this Python has no pip")
        # From a copy, for pip builds beside the sources.
        source = shutil.copytree(TOOLS / "export", self.folder / "source")
        installed = self.folder / "installed"
        flags = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]

        subprocess.run([*PIP, "install", *flags, "--target", installed, source], check=True, capture_output=True)
        done = subprocess.run(
            [installed / "bin/switchyard-export", DATA / "moeut_att1/model.pt", "--output", self.output, "--quiet"],
            env={"PYTHONPATH": str(installed)},
        )

        self.assertEqual(done.returncode, 0)
        self.assertTrue((self.output / "model.safetensors").exists())
