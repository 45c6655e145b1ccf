# SPDX-License-Identifier: Apache-2.0
"""ingot run --check-finite names the first layer that gives infinity or NaN, and the element."""
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import ingot_command as ingot


@pytest.fixture
def model(tmp_path):
    """y = (log(x) - log(x)) + sqrt(x): -inf for 0, NaN behind it and for numbers below 0."""
    nodes = [helper.make_node("Log", ["x"], ["l"], "logarithm"), helper.make_node("Neg", ["l"], ["m"], "negative"),
             helper.make_node("MatMul", ["l", "m"], ["p"], "product"),
             helper.make_node("Sqrt", ["x"], ["r"], "root"), helper.make_node("Add", ["p", "r"], ["y"], "sum")]
    infos = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, [3, 3])] for n in "xy"]
    graph = helper.make_graph(nodes, "g", *infos)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def checked(model, x, tmp_path, *options):
    np.save(tmp_path / "x.npy", np.asarray(x, np.float32))
    done = subprocess.run([ingot.binary(), "run", model, "--input", f"x={tmp_path / 'x.npy'}",
                           *map(str, options)], text=True, capture_output=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, [line for line in done.stdout.splitlines() if "finite" in line or "nan:" in line]


def test_finite_values_pass(model, tmp_path):
    assert checked(model, np.full((3, 3), 2), tmp_path, "--check-finite") == (0, ["all values are finite"])


def test_the_first_layer_and_the_first_nan_are_named(model, tmp_path):
    x = np.full((3, 3), 2.0)
    x[1, 2] = 0
    x[2, 2] = 0
    code, lines = checked(model, x, tmp_path, "--check-finite")
    assert code == 1 and len(lines) == 2
    assert lines[0] == ("not finite: 'logarithm' (map) gives -inf at [1,2] of f32[3,3]; 2 of its elements are not "
                        "finite, and all that it reads is finite")
    assert lines[1].startswith("first nan: 'product' (dot) gives nan at [1,2] of f32[3,3];"), lines
    assert "all that it reads" not in lines[1]


def test_engines_without_names_of_tensors_are_checked_too(model, tmp_path):
    ingot.build(model, tmp_path / "m.engine")
    x = np.full((3, 3), 2.0)
    x[0, 1] = -1
    code, lines = checked(tmp_path / "m.engine", x, tmp_path, "--check-finite")
    assert code == 1
    assert lines == ["not finite: 'logarithm' (map) gives nan at [0,1] of f32[3,3]; 1 of its elements is not finite, "
                     "and all that it reads is finite"]


def test_inputs_are_named(model, tmp_path):
    x = np.full((3, 3), 2.0)
    x[2, 0] = np.inf
    code, lines = checked(model, x, tmp_path, "--check-finite")
    assert code == 1
    assert lines[0] == "not finite: input 'x' has inf at [2,0] of f32[3,3]; 1 of its elements is not finite"
    assert lines[1].startswith("first nan: 'product'") or lines[1].startswith("first nan: 'sum'"), lines
