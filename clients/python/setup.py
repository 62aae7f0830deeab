"""Generates the message classes before anything else looks for them; the rest is in pyproject.toml."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent

subprocess.run(
    ["sh", str(HERE / "generate_stubs.sh"), str(HERE / "src")],
    check=True,
    env={**os.environ, "PYTHON": sys.executable},
)
setup()
