"""What `kustomize build` makes of the folders in deploy/kubernetes, for the fields that they use; anything else is an error.

Debian 12 has no kustomize that reads components. Where a kubectl with one is installed, test_kubernetes.py compares the two.
"""

import copy

import yaml

HEADS = {"apiVersion", "kind"}
FIELDS = HEADS | {"namespace", "resources", "components", "images", "patches"}
CLUSTER_WIDE = {"Namespace"}
# How strategic merge patches match the elements of these lists; all other lists are replaced.
MERGE_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "volumeMounts": "mountPath", "env": "name"}


def load_all(path):
    return [part for part in yaml.safe_load_all(path.read_text(encoding="utf-8")) if part is not None]


def merge(target, patch, field=""):
    """`target` with a strategic merge patch; null deletes."""
    if isinstance(target, dict) and isinstance(patch, dict):
        merged = dict(target)
        for key, value in patch.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = merge(merged.get(key), value, key)
        return merged
    if isinstance(target, list) and field in MERGE_KEYS:
        key = MERGE_KEYS[field]
        patches = {element[key]: element for element in patch}
        merged = [merge(element, patches.pop(element[key], {})) for element in target]
        return [element for element in patch if element[key] in patches] + merged
    return without_nulls(patch)


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return copy.deepcopy(value)


def identity(resource):
    return resource["kind"], resource["metadata"]["name"]


def apply_patch(resources, patch):
    (index,) = [i for i, resource in enumerate(resources) if identity(resource) == identity(patch)]
    if patch.get("$patch") == "delete":
        return resources[:index] + resources[index + 1 :]
    return resources[:index] + [merge(resources[index], patch)] + resources[index + 1 :]


def set_image(resource, image):
    pod = resource.get("spec", {}).get("template", {}).get("spec", {})
    for container in pod.get("initContainers", []) + pod.get("containers", []):
        if container["image"].split(":")[0] == image["name"]:
            container["image"] = f"{image['name']}:{image['newTag']}"


def build(folder, resources=()):
    """The resources of a kustomization; a component changes those that it is given."""
    (settings,) = load_all(folder / "kustomization.yaml")
    unknown = set(settings) - FIELDS
    if unknown:
        raise ValueError(f"{folder}: kustomize.py does not know {sorted(unknown)}")
    resources = list(resources)
    for name in settings.get("resources", []):
        path = folder / name
        resources += build(path) if path.is_dir() else load_all(path)
    for name in settings.get("components", []):
        resources = build(folder / name, resources)
    for patch in settings.get("patches", []):
        for part in load_all(folder / patch["path"]):
            resources = apply_patch(resources, part)
    resources = copy.deepcopy(resources)
    for resource in resources:
        if "namespace" in settings and resource["kind"] not in CLUSTER_WIDE:
            resource["metadata"]["namespace"] = settings["namespace"]
        for image in settings.get("images", []):
            set_image(resource, image)
    return resources
