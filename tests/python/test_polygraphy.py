# SPDX-License-Identifier: Apache-2.0
"""Polygraphy, NVIDIA's tool around TensorRT's Python module, works with ours: loaders, calibrator, runner, comparator
and the command, on the CPU with a runtime of CUDA on host memory. With INGOT_TEST_GPU=1 on a GPU, with CUDA's own
runtime. There a wheel is enough: INGOT_PYTHON_PATH=SITE, where Polygraphy may be too."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import ingot_command as ingot
from shim import package

pytest.importorskip("polygraphy", reason="Polygraphy is not installed (requirements.txt names it): NOTHING OF IT IS TESTED")
package.find()
DIGITS = ingot.DIGITS / "digits.onnx"


GPU = os.environ.get("INGOT_TEST_GPU") == "1"


@pytest.fixture(name="environment", scope="module")
def fixture_environment(tmp_path_factory):
    if GPU:
        return {**os.environ, "INGOT_DEVICE": "cuda", "PYTHONPATH": os.pathsep.join([str(package.folder()), *sys.path])}
    folder = tmp_path_factory.mktemp("cudart")
    source = ingot.REPOSITORY / "tests" / "python" / "shim" / "cudart.c"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", folder / "libcudart.so"], check=True)
    paths = [str(package.folder()), *sys.path]
    return {**os.environ, "INGOT_DEVICE": "cpu", "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": os.pathsep.join(paths)}


def python(environment, code, *arguments, ok=True):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=environment, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert (done.returncode == 0) == ok, done.stdout
    return done.stdout


def polygraphy(environment, *arguments, ok=True):
    return python(environment, "import sys; from polygraphy.tools import main; sys.exit(main())", *arguments, ok=ok)


LOADERS = """
import sys, numpy as np
from polygraphy.backend.trt import (Calibrator, CreateConfig, EngineBytesFromNetwork, EngineFromBytes, EngineFromNetwork,
                                    NetworkFromOnnxPath, Profile, TrtRunner)
model, folder = sys.argv[1:]
x = np.random.default_rng(0).standard_normal((3, 1, 8, 8)).astype(np.float32)
profile = Profile().add("image", (1, 1, 8, 8), (3, 1, 8, 8), (4, 1, 8, 8))
def run(engine):
    with TrtRunner(engine) as runner:
        return [runner.infer({"image": part})["scores"].copy() for part in (x, x[:1])]
plain = run(EngineFromNetwork(NetworkFromOnnxPath(model), CreateConfig(profiles=[profile])))
again = run(EngineFromBytes(EngineBytesFromNetwork(NetworkFromOnnxPath(model), CreateConfig(profiles=[profile]))))
assert plain[0].shape == (3, 10) and all(np.array_equal(a, b) for a, b in zip(plain, again))
fed = []
def data():
    for i in range(4):
        fed.append(i)
        yield {"image": x}
calibrator = Calibrator(data(), cache=folder + "/cache")
config = CreateConfig(profiles=[profile], int8=True, calibrator=calibrator)
narrow = run(EngineFromNetwork(NetworkFromOnnxPath(model), config))
assert len(fed) == 4 and not np.array_equal(narrow[0], plain[0])
assert np.abs(narrow[0] - plain[0]).max() < 0.1 * np.ptp(plain[0])
fed.clear()
cached = CreateConfig(profiles=[profile], int8=True, calibrator=Calibrator(data(), cache=folder + "/cache"))
assert np.array_equal(run(EngineFromNetwork(NetworkFromOnnxPath(model), cached))[0], narrow[0]) and fed == []
np.save(folder + "/x.npy", x); np.save(folder + "/y.npy", plain[0])
"""


def test_loaders_calibrator_and_runner(environment, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    python(environment, LOADERS, DIGITS, tmp_path)
    session = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    expected = session.run(["scores"], {"image": np.load(tmp_path / "x.npy")})[0]
    assert np.abs(np.load(tmp_path / "y.npy") - expected).max() <= 1e-5 * np.abs(expected).max()


def test_it_compares_with_onnxruntime(environment):
    text = polygraphy(environment, "run", DIGITS, "--trt", "--onnxrt", "--atol=1e-4")
    assert "PASSED | All outputs matched" in re.sub(r"PASSED \| \w+ \| ", "PASSED | ", text) and "Pass Rate: 100.00%" in text
    text = polygraphy(environment, "run", DIGITS, "--trt", "--onnxrt", "--int8", "--atol=1e-9", "--rtol=0", ok=False)
    assert "Pass Rate: 0.00%" in text
    polygraphy(environment, "run", DIGITS, "--trt", "--onnxrt", "--int8", "--atol=3")
    polygraphy(environment, "run", DIGITS, "--trt", "--onnxrt", "--fp16", "--atol=0.1")


def test_it_converts_and_inspects(environment, tmp_path):
    plan = tmp_path / "digits.plan"
    polygraphy(environment, "convert", DIGITS, "-o", plan)
    assert plan.read_bytes()[:5] == b"INGOT"
    text = polygraphy(environment, "inspect", "model", plan, "--show", "layers")
    assert re.search(r"Layer \d+ +\| linear \[Op: " + ("" if GPU else r"dot\]"), text) and "image [dtype=float32, shape=(1, 1, 8, 8)]" in text
    polygraphy(environment, "run", plan, "--model-type=engine", "--trt", f"--save-outputs={tmp_path / 'o.json'}")
    assert (tmp_path / "o.json").exists()
    assert "fully supported" in polygraphy(environment, "inspect", "capability", DIGITS)


def test_it_debugs(environment, tmp_path):
    plan = tmp_path / "polygraphy_debug.engine"
    text = polygraphy(environment, "debug", "build", DIGITS, "--until=2", f"--artifacts-dir={tmp_path}", f"--iter-artifact={plan}",
                      "--check", "true")
    assert re.search(r"PASSED \| Iteration", text), text


def test_every_tensor_can_be_an_output(environment):
    text = polygraphy(environment, "run", DIGITS, "--trt", "--onnxrt", "--trt-outputs", "mark", "all", "--onnx-outputs", "mark",
                      "all", "--atol=1e-4", "--fail-fast")
    assert "Pass Rate: 100.00%" in text
