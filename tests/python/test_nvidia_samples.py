# SPDX-License-Identifier: Apache-2.0
"""Programs that make the calls of NVIDIA's samples, under their names, compiled against the public
headers. They run on the CPU with a runtime of CUDA on host memory; with INGOT_TEST_GPU=1 on a GPU, with
CUDA's own runtime (CUDA_HOME, else /usr/local/cuda)."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

ROOT = ingot.REPOSITORY
SAMPLES = ROOT / "tests" / "api" / "programs" / "samples"
DIGITS = ROOT / "examples" / "digits"
GPU = os.environ.get("INGOT_TEST_GPU") == "1"
NAMES = {"helloWorld", "apiUsage", "sampleOnnxMNIST", "sampleDynamicReshape", "sampleProgressMonitor",
         "sampleIOFormats", "sampleNamedDimensions", "sampleEditableTimingCache"}
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


@pytest.fixture(name="cudart", scope="module")
def fixture_cudart(tmp_path_factory):
    """The folder with libcudart.so."""
    if GPU:
        return pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"
    folder = tmp_path_factory.mktemp("cudart")
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", ROOT / "tests/python/shim/cudart.c",
                    "-o", folder / "libcudart.so"], check=True)
    return folder


@pytest.fixture(name="sample")
def fixture_sample(cudart, tmp_path):
    """Compiles a sample and runs it: sample(name, arguments, code=0) gives its lines."""
    def run(name, *arguments, code=0):
        program = tmp_path / name
        library = ingot.binary().parent
        subprocess.run(["g++", "-std=c++17", *WARNINGS, "-DINGOT_NO_DEPRECATION_WARNINGS", f"-I{ROOT / 'include'}",
                        SAMPLES / f"{name}.cpp", "-o", program, f"-L{library}", "-lingot", f"-Wl,-rpath,{library}",
                        f"-L{cudart}", "-lcudart", f"-Wl,-rpath,{cudart}"], check=True)
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False,
                              env=os.environ | {"INGOT_RUNTIME_CACHE": str(tmp_path / "kernels")}
                              | ({} if GPU else {"CUDA_VISIBLE_DEVICES": ""}))
        assert done.returncode == code, done
        # Nothing but notes on settings that have no effect, on this device or on any.
        assert all(": accepted, no effect, because " in line for line in done.stderr.splitlines()), done.stderr
        return done.stdout.splitlines()
    return run


@pytest.fixture(name="digits")
def fixture_digits(tmp_path):
    """The model for one picture, and held-out pictures with their labels."""
    model = onnx.load(DIGITS / "digits.onnx")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, tmp_path / "digits.onnx")
    images = np.load(DIGITS / "held_out_images.npy").astype(np.float32)
    labels = np.load(DIGITS / "held_out_labels.npy")

    def picture(index, repeat=1):
        path = tmp_path / f"{index}.bin"
        np.repeat(np.repeat(images[index, 0], repeat, 0), repeat, 1).tofile(path)
        return path, f"class {labels[index]}"
    return tmp_path / "digits.onnx", picture


def test_the_list_is_whole():
    assert {path.stem for path in SAMPLES.glob("*.cpp")} == NAMES
    assert all(f"def test_{name}(" in pathlib.Path(__file__).read_text() for name in NAMES)


def test_helloWorld(sample, tmp_path):
    expected = [f"Output: {30 * i} {30 * i}" for i in range(5)]
    assert sample("helloWorld") == expected
    weights = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in (("a", (3, 10)), ("b", (10, 2)))]
    nodes = [helper.make_node("MatMul", ["input", "a"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "b"], ["output"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3])],
                              [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 2])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    assert sample("helloWorld", f"--onnx={tmp_path / 'm.onnx'}") == expected


def test_apiUsage(sample):
    lines = sample("apiUsage")
    assert lines[:3] == ["Minimum: 1 3", "Optimum: 4 3", "Maximum: 32 3"]
    for line, batch in zip(lines[3:], (1, 2, 4, 18, 32), strict=True):
        assert line.split()[1:] == [str(10 * 6 * batch)] * 2 * batch


@pytest.mark.parametrize("mode", [[], ["--fp16"], ["--int8"]])
def test_sampleOnnxMNIST(sample, digits, mode):
    model, picture = digits
    for index in (0, 7):
        image, label = picture(index)
        probability, found = sample("sampleOnnxMNIST", model, image, *mode)
        assert found == label
        assert float(probability.split()[1]) > 0.9


@pytest.mark.parametrize("repeat", [1, 2, 7])
def test_sampleDynamicReshape(sample, digits, repeat):
    model, picture = digits
    image, label = picture(3, repeat)
    assert sample("sampleDynamicReshape", model, image, str(8 * repeat)) == [
        "profile 1x1", "profile 8x8", "profile 56x56", "sum 1.000", label]


def test_sampleNamedDimensions(sample, tmp_path):
    node = helper.make_node("Concat", ["input0", "input1"], ["output"], axis=0)
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, 3])
              for name, size in (("input0", "n0"), ("input1", "n0"), ("output", None))}
    graph = helper.make_graph([node], "concat", [values["input0"], values["input1"]], [values["output"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "concat.onnx")
    for size in (1, 2, 5):
        assert sample("sampleNamedDimensions", tmp_path / "concat.onnx", str(size)) == [
            "Output: " + " ".join(map(str, range(6 * size)))]


def test_sampleProgressMonitor(sample, digits, tmp_path):
    model, picture = digits
    image, label = picture(5)
    for _ in range(2):  # the second build reads the first one's timing cache
        written, probability, found = sample("sampleProgressMonitor", model, image, tmp_path / "timing.cache")
        assert written == "timing cache written" and (tmp_path / "timing.cache").stat().st_size > 0
        assert float(probability.split()[1]) > 0.9 and found == label


def test_sampleIOFormats(sample, digits):
    model, picture = digits
    image, label = picture(2)
    wanted = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 3), (2, 5)]  # kFLOAT, kHALF, kINT8
    assert sample("sampleIOFormats", model, image) == [f"type {t} format {f} {label}" for t, f in wanted]


def test_sampleEditableTimingCache(sample):
    lines = sample("sampleEditableTimingCache", code=0 if GPU else 3)
    assert lines[0].startswith("kernel: ") and len(lines) == 2
    if GPU:
        assert lines[1].startswith("now: ") and lines[1][5:] != lines[0][8:]
    else:
        assert lines[1] == "one tactic"
