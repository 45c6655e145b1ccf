# SPDX-License-Identifier: Apache-2.0
"""Results beside expected ones: NaN in trtexec and compare, ties, ONNX Runtime that is off; values and
files of inputs."""
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot
from ingot_command import fails
from small_models import model_file, value
from trtexec_command import QUICK, has_lines, lines_of, run


@pytest.mark.parametrize("algorithm", ["l0", "l1", "l2", "lInf", "cos"])
@pytest.mark.parametrize("ours, theirs", [(np.nan, np.nan), (np.nan, 2), (2, np.nan), (np.inf, -np.inf), (2, np.inf)])
def test_nan_never_equals(tmp_path, algorithm, ours, theirs):
    """NaN in the middle, so that later values cannot hide it."""
    model_file(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3])])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name, odd in (("x", ours), ("y", theirs)):
        x[0, 2] = odd
        np.save(tmp_path / f"{name}.npy", x)
    text = run("--onnx=m.onnx", *QUICK, "--accuracyThreshold=0.1", f"--accuracyAlgorithm={algorithm}",
               "--loadInputs=x:x.npy", "--loadRefOutputs=y:y.npy", folder=tmp_path, code=1)
    loss = "0.166667" if algorithm == "l0" else "inf"
    where = f"element [0,2] is {ours}, expected {theirs}"
    has_lines(text, [re.escape(f"Accuracy loss for tensor y of pair 0 ({algorithm}): {loss}; {where}")])
    assert lines_of(text, "E") == ["outputs differ from the expected ones by more than --accuracyThreshold=0.1: "
                                   f"y of pair 0 by {loss}; {where}"]


@pytest.mark.parametrize("algorithm", ["l0", "l1", "l2", "lInf"])
def test_equal_infinities_are_equal(tmp_path, algorithm):
    model_file(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], [value("x", [3])], [value("y", [3])])
    np.save(tmp_path / "x.npy", np.array([1, np.inf, -np.inf], np.float32))
    text = run("--onnx=m.onnx", *QUICK, "--accuracyThreshold=0.1", f"--accuracyAlgorithm={algorithm}",
               "--loadInputs=x:x.npy", "--loadRefOutputs=y:x.npy", folder=tmp_path)
    has_lines(text, [re.escape(f"Accuracy loss for tensor y of pair 0 ({algorithm}): 0")])


@pytest.mark.parametrize("extra", [["--refit"], ["--stripWeights"], ["--fp16"]])
def test_values_of_shape_inputs_go_with_other_options(tmp_path, extra):
    """--optShapes that state the values of an input, whatever else the build is told."""
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    model_file(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Reshape", ["p", "sizes"], ["y"])],
               [value("x", ["n", 4]), value("sizes", [2], TensorProto.INT64)], [value("y", ["a", "b"])], initializers=[weight])
    shapes = [f"--{k}Shapes=x:{n}x4,sizes:{s}" for k, n, s in (("min", 1, "1x4"), ("opt", 6, "3x8"), ("max", 8, "8x8"))]
    text = run("--onnx=m.onnx", *shapes, "--exportOutput=y.json", *extra, *QUICK, folder=tmp_path)
    assert json.loads((tmp_path / "y.json").read_text())[0]["dimensions"] == "3x8", text


# --- compare

# Replaces ONNX Runtime, so that it can be wrong: a package of this name before the real one.
FAKE = """
import numpy as np
__version__ = "9.9"
class SessionOptions:
    def add_session_config_entry(self, *_): pass
class _Named:
    def __init__(self, name): self.name = name
class InferenceSession:
    def __init__(self, *_, **__): pass
    def get_inputs(self): return [_Named(name) for name in INPUTS]
    def get_outputs(self): return [_Named(name) for name in OUTPUTS]
    def run(self, names, feeds): return [np.array(OUTPUTS[n][0], OUTPUTS[n][1]) for n in names]
"""


def with_runtime(folder, inputs, outputs):
    """The environment in which ONNX Runtime gives these outputs, {name: (values, type)}."""
    package = folder / "runtime" / "onnxruntime"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(f"INPUTS, OUTPUTS = {inputs!r}, {outputs!r}\n{FAKE}")
    return {"PYTHONPATH": str(package.parent), "INGOT_PYTHON": sys.executable}


def compare(monkeypatch, environment, *arguments):
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    done = subprocess.run([str(ingot.binary()), "compare", *map(str, arguments), "--device=cpu"], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def double(tmp_path):
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Add", ["x", "x"], ["y"])], [value("x", [3])], [value("y", [3])])
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    return model, "--input", f"x={tmp_path / 'x.npy'}"


def test_float64_decides_and_says_that_onnxruntime_is_off(tmp_path, monkeypatch):
    code, text = compare(monkeypatch, with_runtime(tmp_path, ["x"], {"y": ([2, 4, 7], "float32")}), *double(tmp_path))
    assert code == 0 and text.endswith("agrees\n"), text
    assert "  differs output y: max error 1 (0.143 of the range) over 3 elements\n" in text
    assert ("  'y': ONNX Runtime 9.9 is off: max error 1 (0.167 of the range) over 3 elements against float64; ours: "
            "max error 0 (0 of the range) over 3 elements\n") in text
    assert "  ok   output y: max error 0 " in text


def test_onnxruntime_decides_where_float64_did_not_run(tmp_path, monkeypatch):
    weight = numpy_helper.from_array(np.zeros((3000, 3000), np.float32), "w")
    model = model_file(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [3000, 3000])],
                       [value("y", [3000, 3000])], initializers=[weight])
    environment = with_runtime(tmp_path, ["x"], {"y": ([[1]], "float32")})
    code, text = compare(monkeypatch, environment, model)
    assert code == 1 and "float64 evaluator: not run: the model has 54 GFLOP" in text
    assert "  FAIL output y: shape [3000,3000], the reference has [1,1]" in text and "\nDIFFERS; " in text


def test_nothing_compared_is_not_agreement(tmp_path, monkeypatch):
    weight = numpy_helper.from_array(np.zeros((3000, 3000), np.float32), "w")
    model = model_file(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [3000, 3000])],
                       [value("y", [3000, 3000])], initializers=[weight])
    (tmp_path / "python3").write_text("not a program")
    code, text = compare(monkeypatch, {"INGOT_PYTHON": "", "PATH": str(tmp_path)}, model)
    assert code == 1 and text.endswith("NOT COMPARED: no reference ran, see above\n"), text


def test_lines_are_written_before_a_process_dies(tmp_path, monkeypatch):
    """A reader of a pipe has the first lines while ONNX Runtime still runs."""
    model, *_ = double(tmp_path)
    (tmp_path / "endless").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "endless").chmod(0o700)
    monkeypatch.setenv("INGOT_PYTHON", str(tmp_path / "endless"))
    with subprocess.Popen([ingot.binary(), "compare", model, "--device=cpu"], text=True, stdout=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            assert process.stdout.readline().startswith(f"{model}: ")
            assert process.stdout.readline() == "Using random values for input x (seed 0)\n"
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_nan_on_both_sides_is_a_difference(tmp_path, monkeypatch):
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Log", ["x"], ["y"])], [value("x", [3])], [value("y", [3])])
    np.save(tmp_path / "x.npy", np.array([1, -2, 3], np.float32))
    code, text = compare(monkeypatch, {}, model, "--input", f"x={tmp_path / 'x.npy'}")
    assert code == 1 and text.count("1 differ in NaN or infinity: element [1] is nan, expected nan") >= 1, text


def test_ties_in_another_order_agree(tmp_path, monkeypatch):
    """ONNX Runtime takes the later one of two equal scores."""
    model = model_file(tmp_path / "m.onnx", [helper.make_node("TopK", ["x", "k"], ["scores", "labels"])], [value("x", [4])],
                       [value("scores", [2]), value("labels", [2], TensorProto.INT64)],
                       initializers=[numpy_helper.from_array(np.array([2], np.int64), "k")])
    np.save(tmp_path / "x.npy", np.array([3, 9, 9, 9], np.float32))
    outputs = {"scores": ([9, 9], "float32"), "labels": ([3, 2], "int64")}
    code, text = compare(monkeypatch, with_runtime(tmp_path, ["x"], outputs), model, "--input", f"x={tmp_path / 'x.npy'}")
    assert code == 0 and "1 tied: equal scores in another order" in text, text
    assert "is off" not in text
    outputs["labels"] = ([1, 0], "int64")
    code, text = compare(monkeypatch, with_runtime(tmp_path, ["x"], outputs), model, "--input", f"x={tmp_path / 'x.npy'}")
    assert code == 0 and "'labels': ONNX Runtime 9.9 is off" in text, text


def test_quantization_steps_that_tip_over_agree(tmp_path, monkeypatch):
    """A last bit moves a zero point or an element by a whole step, and the step moves all that follows."""
    random = np.random.default_rng(3)
    nodes, initializers, source = [], [], "x"
    for i in range(3):
        initializers += [numpy_helper.from_array(random.integers(0, 255, (64, 64)).astype(np.uint8), f"w{i}"),
                         numpy_helper.from_array(np.uint8(128), f"wz{i}"), numpy_helper.from_array(np.float32(0.01), f"s{i}")]
        nodes += [helper.make_node("DynamicQuantizeLinear", [source], [f"q{i}", f"scale{i}", f"z{i}"]),
                  helper.make_node("MatMulInteger", [f"q{i}", f"w{i}", f"z{i}", f"wz{i}"], [f"m{i}"]),
                  helper.make_node("Cast", [f"m{i}"], [f"f{i}"], to=TensorProto.FLOAT),
                  helper.make_node("Mul", [f"scale{i}", f"s{i}"], [f"both{i}"]),
                  helper.make_node("Mul", [f"f{i}", f"both{i}"], [f"y{i}"]), helper.make_node("Tanh", [f"y{i}"], [f"t{i}"])]
        source = f"t{i}"
    model = model_file(tmp_path / "m.onnx", nodes, [value("x", [8, 64])], [value(source, [8, 64])], initializers=initializers)
    explained = 0
    for seed in range(4):
        code, text = compare(monkeypatch, {"INGOT_PYTHON": "", "PATH": str(tmp_path)}, model, f"--seed={seed}", "--layers")
        assert code == 0 and "FAIL" not in text, text
        explained += text.count(", roundings that tip over alone move it by ")
    assert explained > 0


# --- files of inputs

@pytest.mark.parametrize("spec", ["image:0:{}", "'image:0':{}"])
def test_bench_splits_names_at_the_last_colon(tmp_path, spec):
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Relu", ["image:0"], ["y"])], [value("image:0", [2])],
                       [value("y", [2])])
    np.save(tmp_path / "x.npy", np.array([-1, 5], np.float32))
    text = ingot.call("bench", model, f"--loadInputs={spec.format(tmp_path / 'x.npy')}", "--dumpOutput", "--device=cpu", *QUICK)
    assert "Using random values" not in text and '"values":[0.0,5.0]' in text.replace(" ", "").replace("\n", ""), text
    assert "--loadInputs=image: 'image': expected name:file" in fails("bench", model, "--loadInputs=image")[1]


def test_arrays_in_fortran_order_are_read(tmp_path):
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], [value("x", [2, 3, 4])],
                       [value("y", [2, 3, 4])])
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    assert b"'fortran_order': True" in (tmp_path / "x.npy").read_bytes()
    ingot.call("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--save-outputs", tmp_path / "out", "--device=cpu")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), x)


# --- calibration caches

def test_a_missing_cache_says_how_one_is_made(tmp_path):
    model, *_ = double(tmp_path)
    told = ("no.cache: there is no such calibration cache; make one from sample inputs: ingot calibrate MODEL.onnx --data DIR "
            "-o no.cache, where DIR holds .npy, .png or .jpg files")
    assert lines_of(run("--onnx=m.onnx", "--int8", "--calib=no.cache", folder=tmp_path, code=1), "E") == [told]
    assert told in fails("build", model, "--int8", "--calib=no.cache", "-o", tmp_path / "e")[1]
