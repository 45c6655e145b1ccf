# SPDX-License-Identifier: Apache-2.0
"""Models made by onnxruntime.quantization: every operator that it emits is known, and an LSTM
and an embedding that it quantised give its runtime's numbers."""
import ast
import pathlib
import re

import numpy as np
import onnx
import onnxruntime
import onnxruntime.quantization
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

QUANTIZATION = pathlib.Path(onnxruntime.quantization.__file__).parent
# Names that stand in make_node() calls and are no operators that a quantised model keeps.
NO_OPERATORS = {"X", "Y"}


def constants(node):
    return {c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)}


def emitted():
    """Operators of make_node(...) calls in the package; where the name is put together, of the registry it is for."""
    names, prefixes = set(), set()
    for path in QUANTIZATION.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) != "make_node":
                continue
            first = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "op_type")
            if isinstance(first, ast.Constant):
                names.add(first.value)
            elif isinstance(first, (ast.BinOp, ast.JoinedStr)):
                prefixes |= constants(first)
    assert prefixes == {"QLinear"}
    registry = onnxruntime.quantization.registry.QLinearOpsRegistry
    linear = {op for op, quantizer in registry.items()
              if "QLinear" in quantizer.__name__ and op not in ("Relu", "Clip", "Gemm")}  # removed, and QGemm
    return (names | {"QLinear" + op for op in linear}) - NO_OPERATORS


def test_every_operator_is_listed():
    listed = set(re.findall(r"^\| (\w+) \|", (ingot.REPOSITORY / "docs/operators.md").read_text(), re.MULTILINE))
    names = emitted()
    assert {"DynamicQuantizeLSTM", "QEmbedLayerNormalization", "GatherBlockQuantized", "MatMulBnb4", "QAttention",
            "QLinearSoftmax"} <= names
    assert names - listed == set()


def lstm_model(path, direction, hidden=12, inputs=7):
    rng = np.random.default_rng(3)
    d = 2 if direction == "bidirectional" else 1

    def weight(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) / 3).astype(np.float32), name)
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=hidden, direction=direction),
             helper.make_node("Reshape", ["y", "shape"], ["flat"]), helper.make_node("MatMul", ["flat", "m"], ["z"])]
    constants_ = [weight("w", d, 4 * hidden, inputs), weight("r", d, 4 * hidden, hidden), weight("b", d, 8 * hidden),
                  weight("m", d * hidden, 5), numpy_helper.from_array(np.array([-1, d * hidden]), "shape")]
    graph = helper.make_graph(nodes, "lstm", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["s", 1, inputs])],
                              [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 5])], constants_)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_dynamically_quantised_lstm(direction, per_channel, tmp_path):
    lstm_model(tmp_path / "m.onnx", direction)
    onnxruntime.quantization.quantize_dynamic(str(tmp_path / "m.onnx"), str(tmp_path / "q.onnx"), per_channel=per_channel,
                                              reduce_range=True)
    ops = {n.op_type for n in onnx.load(str(tmp_path / "q.onnx")).graph.node}
    assert "DynamicQuantizeLSTM" in ops and "LSTM" not in ops
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(tmp_path / "q.onnx"), options, providers=["CPUExecutionProvider"])
    for steps in (1, 9):
        x = np.random.default_rng(steps).standard_normal((steps, 1, 7)).astype(np.float32)
        want = session.run(["z"], {"x": x})[0]
        got = ingot.run(tmp_path / "q.onnx", {"x": x}, tmp_path / f"run{steps}")["z"]
        # A product's inputs are rounded once more: a tie may fall the other way.
        assert np.abs(got - want).max() <= 1e-2 * np.abs(want).max()
        assert np.median(np.abs(got - want)) <= 1e-5 * np.abs(want).max()
