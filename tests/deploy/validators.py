"""Schemas of Kubernetes and the library of Helm, which install_validators.sh fetches from PyPI. Without them the tests
that need them are skipped."""

import importlib.util
import os
import sys

FOLDER = os.environ.get("SWITCHYARD_VALIDATORS", "")
MISSING = "deploy_install_validators could not install the schemas of Kubernetes and the library of Helm"
sys.path.append(FOLDER)
HERE = all(importlib.util.find_spec(name) for name in ("kubernetes_validate", "helm_python"))

# What no Kubernetes knows before the Prometheus operator tells it; manifest_checks.py looks at these.
OPERATOR_KINDS = {"ServiceMonitor", "PrometheusRule"}
# The oldest that the chart takes, and the newest that there are schemas for.
VERSIONS = ("1.25", "1.37")


def check_schemas(test, resources):
    """Strictly: a field that the schema does not know is an error, too."""
    import kubernetes_validate  # only here where HERE says so

    for resource in resources:
        if resource["kind"] not in OPERATOR_KINDS:
            for version in VERSIONS:
                with test.subTest(kind=resource["kind"], version=version):
                    kubernetes_validate.validate(resource, version, strict=True)
