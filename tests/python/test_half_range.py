# SPDX-License-Identifier: Apache-2.0
"""Values that f16 cannot hold: found by sample inputs or a calibration cache, kept in f32, named."""
import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

HEAT = 2e4
# The CPU keeps f16 in f32 between its own loops, where a GPU stores it.
STORED = "--disablePass=widen_halves"


def saved(path, nodes, inputs, outputs, weights):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(w, np.float32), n) for n, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.fixture
def hot(tmp_path):
    """A product near 10^5 in front of another one; the result is near 10^3."""
    rng = np.random.default_rng(1)
    weights = {"up_w": rng.uniform(1, 2, (8, 8)) * HEAT, "down_w": rng.uniform(1, 2, (8, 4)) * 1e-3}
    nodes = [helper.make_node("Sigmoid", ["x"], ["soft"], "soft"),
             helper.make_node("MatMul", ["soft", "up_w"], ["hot"], "up"),
             helper.make_node("MatMul", ["hot", "down_w"], ["y"], "down")]
    return saved(tmp_path / "hot.onnx", nodes, {"x": ["n", 8]}, {"y": ["n", 4]}, weights)


@pytest.fixture
def sample(tmp_path):
    x = np.random.default_rng(2).uniform(0.2, 1, (3, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    return x


def built(model, tmp_path, *options):
    """The engine, and what the build wrote."""
    engine = tmp_path / "m.engine"
    return engine, ingot.call("build", model, "-o", engine, *options)


def result(model, x, tmp_path, *options):
    return ingot.run(model, {"x": x}, tmp_path / "run", extra=options)["y"]


def test_without_samples_a_build_warns_once_and_overflows(hot, sample, tmp_path):
    engine, text = built(hot, tmp_path, "--fp16")
    assert text.count("--fp16: numbers above 65504 become infinite") == 1
    assert "give --input NAME=FILE or --calib FILE" in text
    assert not np.isfinite(result(engine, sample, tmp_path, STORED)).all(), "else this model shows nothing"
    assert "become infinite" not in built(hot, tmp_path)[1], "f32 has no such limit"
    assert "become infinite" not in built(hot, tmp_path, "--bf16")[1]


def test_samples_keep_layers_in_f32_and_name_them(hot, sample, tmp_path):
    engine, text = built(hot, tmp_path, "--fp16", "--input", f"x={tmp_path / 'x.npy'}")
    assert "fp16: layers keep f32 where values pass 65504, the largest number of f16: 'up' reaches" in text
    assert "become infinite" not in text
    exact = result(hot, sample, tmp_path)
    assert np.allclose(result(engine, sample, tmp_path, STORED), exact, rtol=1e-2)
    text = ingot.call("inspect", engine, "--dump-after", "sum_products")
    assert "f16" in text, "layers that do not overflow are narrow"


def test_a_run_of_a_model_looks_at_its_inputs(hot, sample, tmp_path):
    exact = result(hot, sample, tmp_path)
    assert np.allclose(result(hot, sample, tmp_path, "--fp16", STORED), exact, rtol=1e-2)


def test_a_calibration_cache_tells_the_ranges(hot, sample, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    np.save(data / "0.npy", sample)
    cache = tmp_path / "ranges.cache"
    ingot.call("calibrate", hot, "-o", cache, "--data", data, "--algorithm", "minmax")
    engine, text = built(hot, tmp_path, "--fp16", "--calib", cache)
    assert "'up' reaches" in text and "become infinite" not in text
    assert np.allclose(result(engine, sample, tmp_path, STORED), result(hot, sample, tmp_path), rtol=1e-2)


def test_values_within_the_range_change_nothing(hot, tmp_path):
    small = np.full((3, 8), -9, np.float32)
    np.save(tmp_path / "x.npy", small)
    plain = built(hot, tmp_path, "--fp16")[0].read_bytes()
    engine, text = built(hot, tmp_path, "--fp16", "--input", f"x={tmp_path / 'x.npy'}")
    assert "keep f32" not in text
    assert engine.read_bytes() == plain


def test_compare_names_the_first_layer(hot, sample, tmp_path):
    options = ["compare", hot, "--fp16", STORED, "--rtol=0.01", "--shapes=x:3x8"]
    done = subprocess.run([ingot.binary(), *options], text=True, capture_output=True, timeout=300)
    assert done.returncode == 1 and "DIFFERS" in done.stdout
    assert "fp16: 'up' reaches" in done.stdout
    assert "a build with --input keeps them in f32" in done.stdout
    given = ["--input", f"x={tmp_path / 'x.npy'}"]
    text = ingot.call(*options[:5], *given)
    assert "they keep f32" in text and text.rstrip().endswith("agrees")
    found = json.loads(ingot.call(*options[:5], *given, "--json"))["fp16Overflows"]
    assert found[0]["layer"] == "'up'" and found[0]["magnitude"] > 65504


def test_inputs_and_constants_overflow_too(tmp_path):
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"], "scale"),
             helper.make_node("MatMul", ["m", "v"], ["y"], "product")]
    model = saved(tmp_path / "m.onnx", nodes, {"x": [2, 4]}, {"y": [2, 4]},
                  {"w": [1e6, 2e6, 3e6, 4e6], "v": np.eye(4)})
    x = np.full((2, 4), 1e-6, np.float32)
    np.save(tmp_path / "x.npy", x)
    engine, text = built(model, tmp_path, "--fp16", "--input", f"x={tmp_path / 'x.npy'}")
    assert "a constant of 'scale' reaches 4e+06" in text
    assert np.allclose(result(engine, x, tmp_path), [[1, 2, 3, 4]] * 2, rtol=1e-2)
    model = saved(tmp_path / "p.onnx", [helper.make_node("MatMul", ["x", "v"], ["y"], "product")],
                  {"x": [2, 4]}, {"y": [2, 4]}, {"v": np.eye(4)})
    np.save(tmp_path / "x.npy", np.full((2, 4), 1e5, np.float32))
    text = built(model, tmp_path, "--fp16", "--input", f"x={tmp_path / 'x.npy'}")[1]
    assert "input 'x' reaches 1e+05" in text


def test_masks_of_a_softmax_stay_narrow(tmp_path):
    """-3.4e38 behind (1 - mask) becomes -65504 or -infinity; its exponential is 0 either way."""
    lowest = float(np.finfo(np.float32).min)
    nodes = [helper.make_node("Sub", ["one", "x"], ["off"], "off"),
             helper.make_node("Mul", ["off", "low"], ["mask"], "mask"),
             helper.make_node("Add", ["scores", "mask"], ["masked"], "masked"),
             helper.make_node("Softmax", ["masked"], ["y"], "softmax", axis=-1)]
    model = saved(tmp_path / "m.onnx", nodes, {"x": [2, 4], "scores": [2, 4]}, {"y": [2, 4]},
                  {"one": 1.0, "low": lowest})
    x = np.array([[1, 1, 0, 0], [1, 1, 1, 0]], np.float32)
    scores = np.random.default_rng(3).uniform(-1, 1, (2, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "s.npy", scores)
    engine, text = built(model, tmp_path, "--fp16", "--input", f"x={tmp_path / 'x.npy'}",
                         "--input", f"scores={tmp_path / 's.npy'}")
    assert "keep f32" not in text
    got = ingot.run(engine, {"x": x, "scores": scores}, tmp_path / "run")["y"]
    exponentials = np.exp(scores) * x
    assert np.allclose(got, exponentials / exponentials.sum(1, keepdims=True), atol=2e-3)


def test_a_refit_holds_the_same_layers(hot, sample, tmp_path):
    given = ["--fp16", "--input", f"x={tmp_path / 'x.npy'}"]
    whole = result(built(hot, tmp_path, *given)[0], sample, tmp_path)
    engine, _ = built(hot, tmp_path, *given, "--refit", "--stripWeights")
    raw = tmp_path / "y.json"
    binary = ingot.binary().parent / "trtexec"
    sample.tofile(tmp_path / "x.bin")
    subprocess.run([binary, f"--loadEngine={engine}", f"--refitFromOnnx={hot}", "--shapes=x:3x8",
                    f"--loadInputs=x:{tmp_path / 'x.bin'}", f"--exportOutput={raw}", "--iterations=1",
                    "--duration=0", "--warmUp=0", "--device=cpu"], check=True, capture_output=True, timeout=300)
    got = json.loads(raw.read_text())
    values = np.array(next(o["values"] for o in got if o["name"] == "y"), np.float32).reshape(whole.shape)
    assert np.allclose(values, whole, rtol=1e-5)
