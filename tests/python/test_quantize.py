# SPDX-License-Identifier: Apache-2.0
"""ingot quantize: models with narrow weights, against the original models."""
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot
import models

# Largest difference as a part of the output's range, for one hidden layer between two products.
BOUNDS = {"--int8": 0.02, "--fp8": 0.08, "--int4": 0.2}


def model_file(path, opset=17):
    """Matrix products of several forms and a convolution; weights as of a trained net."""
    rng = np.random.default_rng(0)

    def weight(name, *shape):
        return numpy_helper.from_array(
            (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32), name)
    nodes = [helper.make_node("Conv", ["x", "k"], ["a"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("ReduceMean", ["b"], ["c"], axes=[2, 3], keepdims=0),
             helper.make_node("Gemm", ["c", "g", "bias"], ["d"], transB=1),
             helper.make_node("Relu", ["d"], ["e"]),
             helper.make_node("MatMul", ["e", "m"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 40])],
        [weight("k", 64, 16, 3, 3), weight("g", 128, 64), weight("bias", 128), weight("m", 128, 40)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8),
              str(path))
    return path


def onnxruntime_run(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Without its fusions, which round what the weights are multiplied with.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("form", BOUNDS)
def test_results_agree(form, tmp_path):
    model = model_file(tmp_path / "m.onnx")
    narrow = tmp_path / "q.onnx"
    text = ingot.call("quantize", model, form, "-o", narrow)
    assert "3 weights quantised, 0 stay" in text
    onnx.checker.check_model(str(narrow), full_check=True)
    assert narrow.stat().st_size < model.stat().st_size * 0.35
    x = np.random.default_rng(5).standard_normal((7, 16, 6, 6)).astype(np.float32)
    original = ingot.run(model, {"x": x}, tmp_path / "f")["y"]
    ours = ingot.run(narrow, {"x": x}, tmp_path / "q")["y"]
    error = np.abs(ours - original).max() / np.ptp(original)
    assert 0 < error <= BOUNDS[form]
    # The same weights everywhere: only the order of sums differs.
    assert np.abs(ours - onnxruntime_run(narrow, {"x": x})).max() <= 1e-5 * np.ptp(original)


@pytest.mark.parametrize("form,types", [("--int8", {"i8": 3}), ("--fp8", {"f8e4m3": 3}),
                                        ("--int4", {"i8": 1, "i4": 2})])
def test_weights_have_the_type_asked_for(form, types, tmp_path):
    narrow = tmp_path / "q.onnx"
    ingot.call("quantize", model_file(tmp_path / "m.onnx"), form, "-o", narrow)
    names = {TensorProto.INT8: "i8", TensorProto.FLOAT8E4M3FN: "f8e4m3", TensorProto.INT4: "i4"}
    found = {}
    for t in onnx.load(str(narrow)).graph.initializer:
        kind = names.get(t.data_type)
        if kind:
            found[kind] = found.get(kind, 0) + 1
    assert found == types


def test_small_weights_stay(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "v"], ["y"])],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
        [numpy_helper.from_array(np.random.default_rng(0).standard_normal(s).astype(np.float32), n)
         for n, s in (("w", (64, 32)), ("v", (32, 8)))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
              str(tmp_path / "m.onnx"))
    text = ingot.call("quantize", tmp_path / "m.onnx", "--int8", "-o", tmp_path / "q.onnx")
    assert "stays: 'v', fewer than 1024 elements" in text
    assert "1 weights quantised, 1 stay" in text


@pytest.mark.parametrize("name,form,least", [("resnet50", "--int8", 0.999),
                                             ("resnet50", "--fp8", 0.99),
                                             ("bert_base", "--int8", 0.999),
                                             ("bert_base", "--int4", 0.97)])
def test_shared_models_keep_their_results(name, form, least, tmp_path):
    if models.shared_models() is None:
        pytest.skip("no shared/models: set INGOT_SHARED to the shared folder")
    model = models.MODELS[name]
    dims = model.checks[0]
    feeds = model.make_inputs({**dims, "seq": 16} if "seq" in dims else dims)
    ingot.call("quantize", models.model_file(name), form, "-o", tmp_path / "q.onnx")
    cosines = []
    before = ingot.run(models.model_file(name), feeds, tmp_path / "f")
    after = ingot.run(tmp_path / "q.onnx", feeds, tmp_path / "q")
    for output, a in before.items():
        a, b = a.ravel().astype(np.float64), after[output].ravel().astype(np.float64)
        cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert min(cosines) >= least, cosines


def test_errors_say_what_to_do(tmp_path):
    model = model_file(tmp_path / "m.onnx")
    old = model_file(tmp_path / "old.onnx", opset=12)
    empty = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    onnx.save(helper.make_model(empty), str(tmp_path / "empty.onnx"))
    out = ["-o", tmp_path / "q.onnx"]
    cases = [([model, *out], "say which: --int8, --fp8 or --int4"),
             ([model, "--int8", "--fp8", *out], "give one of --int8, --fp8 or --int4"),
             ([model, "--int8"], "say where to write the model with -o"),
             ([tmp_path / "none.onnx", "--int8", *out], "none.onnx"),
             ([tmp_path / "empty.onnx", "--int8", *out], "there is no weight to quantise"),
             ([old, "--fp8", *out], "the model has opset 12, this needs opset 19: raise it with "
                                    "onnx.version_converter")]
    for arguments, expected in cases:
        done = subprocess.run([str(ingot.binary()), "quantize", *map(str, arguments)], text=True,
                              timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 1 and expected in done.stdout, done.stdout
    ingot.call("quantize", old, "--int8", *out)  # with com.microsoft's operators
    assert {o.domain for o in onnx.load(str(tmp_path / "q.onnx")).opset_import} == {"", "com.microsoft"}
