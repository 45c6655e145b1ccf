# SPDX-License-Identifier: Apache-2.0
"""docs/kubernetes.md and the image: listings run as far as they can without a cluster, tables name what is
there, and the Dockerfile puts files where the manifests look."""
import os
import re
import shutil
import subprocess

import pytest
import yaml

import ingot_command
import manifests

ROOT = ingot_command.REPOSITORY
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "deploy" / "docker" / "Dockerfile").read_text(encoding="utf-8")


def listings(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


# Stand-ins that do what can be done here: files that are named exist, folders render.
DOCKER = """#!/bin/bash -e
[[ $1 == build && ${!#} == . ]]
while [[ $# -gt 1 ]]; do
    [[ $1 == -f && $2 != - ]] && grep -q '^FROM' "$2"
    [[ $1 == -f && $2 == - ]] && read -r line && [[ $line == FROM* ]] && read -r line && [[ $line == "COPY models /models" ]]
    [[ $1 == -t ]] && echo "image $2" >> said
    shift
done
"""
KUBECTL = """#!/bin/bash -e
while [[ $# -gt 0 ]]; do
    [[ $1 == -k ]] && "$KUBECTL" kustomize "$2" > rendered.yaml
    shift
done
"""


def test_the_first_listing_builds_and_renders(tmp_path):
    manifests.render("base")
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "digits.onnx").symlink_to(ROOT / "examples" / "digits" / "digits.onnx")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ingot").symlink_to(ingot_command.binary())
    for name, text in (("docker", DOCKER), ("kubectl", KUBECTL)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    text, = listings("sh")
    done = subprocess.run(["bash", "-e", "-c", text], cwd=tmp_path, text=True, capture_output=True, timeout=120,
                          env=os.environ | {"SERVER": "server:24.12", "KUBECTL": shutil.which("kubectl"),
                                            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    images = [line.split()[1] for line in (tmp_path / "said").read_text().splitlines()]
    rendered = (tmp_path / "rendered.yaml").read_text()
    assert images == ["ingot-triton:0.1.0", "ingot-models:1"] and all(image in rendered for image in images)
    assert (tmp_path / "models/digits/1/model.engine").read_bytes()[:5] == b"INGOT"
    assert "/v2/models/digits/ready" in rendered


def test_an_overlay_of_ones_own_serves_another_model(tmp_path):
    manifests.render("base")
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "kustomization.yaml").write_text(listings("yaml")[0])
    done = subprocess.run(["kubectl", "kustomize", tmp_path], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    container, = [one["spec"]["template"]["spec"]["containers"][0] for one in objects if one["kind"] == "Deployment"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] == "/v2/models/bert/ready"
    assert container["image"] == "images.example/ingot-triton:0.1.0"
    assert all(one["metadata"].get("namespace", "inference") == "inference" for one in objects)


def test_the_affinity_is_that_of_the_inference_service():
    service, = [one for one in manifests.render("kserve") if one["kind"] == "InferenceService"]
    assert yaml.safe_load(listings("yaml")[1])["affinity"] == service["spec"]["predictor"]["affinity"]


@pytest.mark.parametrize("table, folder", [("component", "components"), ("overlay", "overlays")])
def test_tables_have_every_folder(table, folder):
    rows = PAGE.partition(f"| {table} |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)`", rows, re.MULTILINE)) == sorted(
        path.name for path in (manifests.ROOT / folder).iterdir())


def test_the_image_has_the_files_where_the_manifests_look():
    container = next(one for one in manifests.render("base") if one["kind"] == "Deployment")[
        "spec"]["template"]["spec"]["containers"][0]
    folder = next(word.partition("=")[2] for word in container["args"] if word.startswith("--backend-directory="))
    copied = re.search(r"^COPY --from=build (\S+)/ (\S+)/$", DOCKERFILE, re.MULTILINE)
    made = re.search(r"mkdir -p (\S+) (\S+)", DOCKERFILE)
    assert made.group(1).replace(copied.group(1), copied.group(2)) == f"{folder}/ingot"
    line = re.search(r"cp (.*?) /image/backends/ingot/", DOCKERFILE).group(1).split()
    for name in line[:3]:
        assert (ingot_command.binary().parent / name.removeprefix("build/")).exists(), name
    assert line[3:] == [".deps/nvrtc/lib/*.so.*"] and 'install_nvrtc' in (ROOT / "dev").read_text(encoding="utf-8")
    target = re.search(r"RUN \./dev build (.*)", DOCKERFILE).group(1).split()
    assert target == ["ingot", "triton_ingot"]
    assert re.search(r"^ARG SERVER=\w+:[\w.-]+$", DOCKERFILE, re.MULTILINE)  # pinned
    assert DOCKERFILE.splitlines()[-2:] == ["USER 1000:1000", 'ENTRYPOINT ["tritonserver"]']
