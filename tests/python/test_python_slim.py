# SPDX-License-Identifier: Apache-2.0
"""ingot.slim(): the command `ingot slim` from Python."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as command
from shim import package
from small_models import value

package.find()

import ingot  # noqa: E402

MODEL = package.DIGITS / "digits.onnx"


def model(extra=()):
    """y = x + (a + b), where a and b are constants, an Identity, and an unused node."""
    constants = [numpy_helper.from_array(np.full(3, v, np.float32), n) for n, v in (("a", 1), ("b", 2))]
    nodes = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Identity", ["x"], ["i"]),
             helper.make_node("Exp", ["x"], ["dead"]), helper.make_node("Add", ["i", "c"], ["y"]), *extra]
    graph = helper.make_graph(nodes, "g", [value("x", ["n", 3])], [value("y", ["n", 3])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def operators(proto):
    return [n.op_type for n in proto.graph.node]


def test_gives_what_it_is_given(tmp_path):
    proto, path = model(), tmp_path / "m.onnx"
    onnx.save(proto, path)
    slimmed = ingot.slim(proto)
    assert isinstance(slimmed, onnx.ModelProto) and operators(slimmed) == ["Add"]
    for source in (path, str(path), path.read_bytes(), memoryview(path.read_bytes())):
        data = ingot.slim(source)
        assert isinstance(data, bytes) and onnx.load_from_string(data) == slimmed
    assert operators(proto)[0] == "Add" and len(operators(proto)) == 4


def test_is_what_the_command_writes(tmp_path):
    command.call("slim", MODEL, "-o", tmp_path / "theirs.onnx")
    assert ingot.slim(MODEL, tmp_path / "ours.onnx") is None
    assert (tmp_path / "ours.onnx").read_bytes() == (tmp_path / "theirs.onnx").read_bytes()
    onnx.checker.check_model(str(tmp_path / "ours.onnx"))


def test_options(tmp_path):
    report = {"old": 1}
    fixed = ingot.slim(model(), input_shapes={"x": (2, 3)}, report=report)
    assert [d.dim_value for d in fixed.graph.input[0].type.tensor_type.shape.dim] == [2, 3]
    assert report["before"]["operators"] == {"Add": 2, "Identity": 1, "Exp": 1}
    assert report["after"]["operators"] == {"Add": 1}
    assert sum(report["rules"].values()) >= 3 and report["rounds"] >= 1 and "old" not in report
    kept = ingot.slim(model(), skip_optimizations=["constant_folding"])
    assert operators(kept).count("Add") == 2
    ingot.slim(MODEL, tmp_path / "out.onnx", save_as_external_data=True, model_check=True, seed=3,
               shapes={"image": (2, 1, 8, 8)})
    assert (tmp_path / "out.onnx.data").exists() or list(tmp_path.glob("*.data"))
    images = np.load(package.DIGITS / "held_out_images.npy")[:4].astype(np.float32)
    a, b = (ingot.compile(m, device="cpu")(images) for m in (MODEL, tmp_path / "out.onnx"))
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_checks_that_fail_write_nothing(tmp_path):
    """NaN equals nothing, so that a model with NaN results never passes."""
    proto = model([helper.make_node("Sqrt", ["x"], ["root"])])
    proto.graph.output.append(value("root", ["n", 3]))
    np.save(tmp_path / "x.npy", np.full((1, 3), -1, np.float32))
    with pytest.raises(ValueError, match="the slimmed model gives other results, and is not written: output 'root'.*"
                                         r"element \[0,0\] is nan, expected nan"):
        ingot.slim(proto, tmp_path / "out.onnx", model_check=True, inputs={"x": tmp_path / "x.npy"})
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("call, error, told", [
    (lambda t: ingot.slim(t / "no.onnx"), FileNotFoundError, "no.onnx"),
    (lambda t: ingot.slim(3), TypeError, "model: got int, expected a path, bytes or an onnx.ModelProto"),
    (lambda t: ingot.slim(b"nonsense"), ValueError, "the model cannot be slimmed: ingot::slimModel: the model: "),
    (lambda t: ingot.slim(model(), input_shapes={"z": (1,)}), ValueError, "'z'"),
    (lambda t: ingot.slim(model(), skip_optimizations=["foldd"]), ValueError,
     "there is no optimisation 'foldd'"),
    (lambda t: ingot.slim(model(), size_threshold=-1), ValueError, "size threshold -1: expected a number of bytes"),
    (lambda t: ingot.slim(model(), save_as_external_data=True), ValueError, "external data needs a path"),
    (lambda t: ingot.slim(model(), t / "none" / "m.onnx"), ValueError, "none/m.onnx"),
])
def test_errors(tmp_path, call, error, told):
    with pytest.raises(error) as raised:
        call(tmp_path)
    assert told in str(raised.value)


def test_shapes_of_any_rank_in_errors_of_compile():
    """Where the library has no shape, its reason is raised."""
    dims = [1] * 9
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", dims)], [value("y", dims)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises((ValueError, RuntimeError)) as raised:
        ingot.compile(proto, device="cpu", shapes={"x": dims})
    assert "there is no shape: the call that gave it" not in str(raised.value)
    assert "9" in str(raised.value) and "no message" not in str(raised.value)


def test_sizes_that_disagree_are_explained():
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "g", [value("a", ["n", 2]), value("b", ["n", 2])],
                              [value("y", ["n", 2])])
    compiled = ingot.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), device="cpu")
    with pytest.raises(ValueError) as raised:
        compiled(np.zeros((2, 2), np.float32), np.zeros((3, 2), np.float32))
    assert "there is no shape: the call that gave it" not in str(raised.value)
    assert "3" in str(raised.value) and "2" in str(raised.value) and "no message" not in str(raised.value)


def test_labels_of_strings_are_cut():
    encoder = helper.make_node("LabelEncoder", ["i"], ["label"], "encode", domain="ai.onnx.ml", keys_int64s=[0],
                               values_strings=["cat"])
    graph = helper.make_graph([helper.make_node("ArgMax", ["x"], ["i"], keepdims=0), encoder], "g",
                              [value("x", ["n", 3])], [value("label", [3], TensorProto.STRING)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    whole = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    cut = ingot.slim(whole, cut_strings=True, model_check=True)
    assert [o.name for o in cut.graph.output] == ["i"] and operators(cut) == ["ArgMax"]
