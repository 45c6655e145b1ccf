# SPDX-License-Identifier: Apache-2.0
"""pixi.toml and Dockerfile, as far as can be checked without pixi, Docker and a network: they
parse, the files that they name exist, and their commands run."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest

import ingot_command as command
from shim import package

ROOT = package.REPOSITORY
package.find()

PIXI = tomllib.loads((ROOT / "pixi.toml").read_text(encoding="utf-8"))
TASKS = {name: task if isinstance(task, dict) else {"cmd": task}
         for name, task in PIXI["tasks"].items()}


def test_the_workspace():
    assert PIXI["workspace"]["name"] == "ingot" and PIXI["workspace"]["platforms"] == ["linux-64"]
    assert set(PIXI["dependencies"]) >= {"python", "numpy"}
    for task in TASKS.values():
        assert set(task) <= {"cmd", "depends-on"}
        assert set(task.get("depends-on", [])) <= TASKS.keys()


def in_order(name):
    """A task and its dependencies."""
    return [step for before in TASKS[name].get("depends-on", []) for step in in_order(before)] + [name]


def test_every_task_runs(tmp_path):
    """In a clone with a finished build, which the tasks do not touch."""
    for name in ("examples", "dev"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").mkdir()
    for name in ("ingot", "trtexec", "libingot_cpu.so"):
        if (command.binary().parent / name).exists():
            (tmp_path / "build" / name).symlink_to(command.binary().parent / name)
    (tmp_path / "build" / "python").symlink_to(package.folder())
    programs = {"python": sys.executable}
    environment = {key: value.replace("$PIXI_PROJECT_ROOT", str(tmp_path)).replace("$PATH", os.environ["PATH"])
                   for key, value in PIXI["activation"]["env"].items()}
    environment = os.environ | {"INGOT_DURATION": "0"} | environment
    done = set()
    for name in TASKS:
        for step in in_order(name):
            text = TASKS[step]["cmd"]
            if step in done or text.startswith("./dev "):  # ./dev's commands: test_readme.py
                continue
            words = shlex.split(text)
            line = " ".join(shlex.quote(programs.get(word, word)) if word != "&&" else word for word in words)
            run = subprocess.run(["bash", "-euc", line], cwd=tmp_path, env=environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
            assert run.returncode == 0, f"{step}: {text}\n{run.stdout}"
            done.add(step)
    assert done >= {"export-onnx", "export-trt", "trt-build", "trt-build-dynamic", "trt-benchmark", "classify"}
    assert (tmp_path / "build/models/model.engine").read_bytes()[:5] == b"INGOT"


INSTRUCTIONS = ("FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT")


def dockerfile():
    """(instruction, the rest) of each line, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    assert all(len(line) == 2 and line[0] in INSTRUCTIONS for line in lines), lines
    return lines


def stages():
    """The instructions of each stage, by its name; the last is None."""
    found = {}
    for instruction, rest in dockerfile():
        if instruction == "FROM":
            image, _, name = rest.partition(" AS ")
            assert re.fullmatch(r"[a-z]+:[\w.-]+", image), "images are pinned by tag"
            stage = found[name or None] = []
        else:
            stage.append((instruction, rest))
    return found


def test_the_image_is_built_from_what_is_there():
    found = stages()
    assert list(found) == ["build", None]
    for stage in found.values():
        for instruction, rest in stage:
            if instruction == "COPY":
                options = [word for word in rest.split() if word.startswith("--")]
                *sources, _ = [word for word in rest.split() if not word.startswith("--")]
                if options:
                    assert options == ["--from=build"] and sources == ["/ingot/dist/"]
                else:
                    assert all((ROOT / source).exists() for source in sources)
    runs = [rest for instruction, rest in found["build"] if instruction == "RUN"]
    assert runs[-1] == "./dev wheel .venv/bin/python"  # which leaves /ingot/dist
    assert ("WORKDIR", "/ingot") in found["build"]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {"build", ".venv", ".deps"} <= set(ignored) and "examples" not in ignored


def test_the_packages_of_the_image_are_installed_by_names_that_pip_reads():
    line, = [rest for instruction, rest in stages()[None] if instruction == "RUN"]
    words = shlex.split(line)
    assert words[:3] == ["pip", "install", "--no-cache-dir"]
    nvrtc = re.search(r'nvrtc_version="(.*?)"', (ROOT / "dev").read_text(encoding="utf-8")).group(1)
    assert nvrtc in words  # the one that the tests use
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", word) for word in words[3:] if not word.startswith("/"))
    assert [word for word in words if word.startswith("/")] == ["/wheels/*.whl"]


def test_what_the_image_runs_runs(tmp_path):
    """The files of its last stage, laid out by COPY."""
    entry = None
    for instruction, rest in stages()[None]:
        if instruction == "COPY" and not rest.startswith("--"):
            source, target = rest.split()
            shutil.copytree(ROOT / source, tmp_path / target)
        if instruction == "ENTRYPOINT":
            entry = json.loads(rest)
    assert entry[0] == "python"
    done = subprocess.run([sys.executable, *entry[1:]], cwd=tmp_path, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": package.python_path()}, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ of 360 digits recognised", done.stdout)


def test_the_example_configuration_is_valid():
    pytest.importorskip("pydantic")
    pytest.importorskip("yaml")
    from ingot.config import BuildConfig, InferenceConfig
    path = ROOT / "examples/python/tensorrt.yaml"
    build, inference = BuildConfig.from_yaml(path), InferenceConfig.from_yaml(path, "inference")
    assert (ROOT / build.onnx_path).exists() and build.max_shape == (32, 1, 8, 8)
    assert build.engine_path == inference.engine_path and inference.device_id == 0
