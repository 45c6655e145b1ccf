# SPDX-License-Identifier: Apache-2.0
"""The manifests of deploy/kubernetes as kubectl renders them."""
import functools
import re
import shutil
import subprocess

import pytest
import yaml

import ingot_command

ROOT = ingot_command.REPOSITORY / "deploy" / "kubernetes"
RENDERED = ["base", "overlays/cpu", "overlays/gpu", "overlays/gpu-image", "overlays/canary", "kserve"]


@functools.cache
def _text(name):
    return subprocess.run(["kubectl", "kustomize", ROOT / name], text=True, capture_output=True, check=True).stdout


def render(name):
    """The objects of a folder; skips, loudly, where nothing renders."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl: the manifests of deploy/kubernetes were NOT rendered")
    version = subprocess.run(["kubectl", "version", "--client"], text=True, capture_output=True, check=False).stdout
    found = re.search(r"Kustomize Version: v(\d+)", version)
    if found is None or int(found.group(1)) < 5:
        pytest.skip("kubectl has no Kustomize 5: the manifests of deploy/kubernetes were NOT rendered")
    return list(yaml.safe_load_all(_text(name)))


def headers_of(route):
    """The headers that a gateway sets in requests by each rule of an HTTPRoute."""
    found = [{one["name"]: one["value"] for part in rule.get("filters", []) if part["type"] == "RequestHeaderModifier"
              for one in part["requestHeaderModifier"]["set"]} for rule in route["spec"]["rules"]]
    assert all(one == found[0] for one in found)
    return found[0]
