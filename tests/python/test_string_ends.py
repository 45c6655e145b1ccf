# SPDX-License-Identifier: Apache-2.0
"""Models that end in labels of strings: refused with the command that cuts them off."""
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

LABELS = ["cat", "dog", "cow"]
WEIGHT = numpy_helper.from_array(np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32), "w")
SCORES = [helper.make_node("MatMul", ["x", "w"], ["scores"], "product"),
          helper.make_node("ArgMax", ["scores"], ["index"], "best", axis=1, keepdims=0)]
ENCODER = {"domain": "ai.onnx.ml", "keys_int64s": [0, 1, 2], "values_strings": LABELS}


def saved(path, nodes, outputs, initializers=(), inputs=(("x", TensorProto.FLOAT, ["n", 4]),)):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs],
                              [WEIGHT, *initializers])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def gathered(path):
    """Labels by Gather from a constant, and the scores."""
    strings = helper.make_tensor("labels", TensorProto.STRING, [3], [t.encode() for t in LABELS])
    nodes = [*SCORES, helper.make_node("Gather", ["labels", "index"], ["label"], "pick")]
    outputs = [("label", TensorProto.STRING, ["n"]), ("scores", TensorProto.FLOAT, ["n", 3])]
    return saved(path, nodes, outputs, [strings])


def encoded(path):
    """Labels by LabelEncoder, their identity and a reshape."""
    nodes = [*SCORES, helper.make_node("LabelEncoder", ["index"], ["text"], "encode", **ENCODER),
             helper.make_node("Identity", ["text"], ["same"], "copy"),
             helper.make_node("Unsqueeze", ["same", "axes"], ["label"], "raise")]
    axes = numpy_helper.from_array(np.array([1], np.int64), "axes")
    return saved(path, nodes, [("label", TensorProto.STRING, ["n", 1])], [axes])


def zipped(path):
    """Maps from labels to scores, as exporters of scikit-learn write them."""
    nodes = [*SCORES, helper.make_node("LabelEncoder", ["index"], ["label"], "encode", **ENCODER),
             helper.make_node("ZipMap", ["scores"], ["maps"], "zip", domain="ai.onnx.ml", classlabels_strings=LABELS)]
    saved(path, nodes, [("label", TensorProto.STRING, ["n"])])
    model = onnx.load(path)
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    model.graph.output.append(helper.make_value_info("maps", helper.make_sequence_type_proto(kind)))
    onnx.save(model, path)
    return path


def fails(*arguments):
    done = subprocess.run([ingot.binary(), *map(str, arguments)], text=True, timeout=300, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 1, done.stdout
    return done.stdout


@pytest.mark.parametrize("make, told, outputs", [
    (gathered, "1 string operator at the ends ('pick'): output 'label' becomes 'index'", ["scores", "index"]),
    (encoded, "3 string operators at the ends ('encode', 'copy', 'raise'): output 'label' becomes 'index'", ["index"]),
    (zipped, "2 string operators at the ends ('encode', 'zip'): outputs 'label', 'maps' become 'index', 'scores'",
     ["index", "scores"]),
])
def test_labels_are_refused_and_cut(tmp_path, make, told, outputs):
    model = make(tmp_path / "m.onnx")
    advice = f"ingot slim --cut-strings MODEL -o OUT.onnx cuts {told}"
    for command in (["run"], ["build", "-o", tmp_path / "e"], ["check"]):
        assert advice in fails(command[0], model, *command[1:])
    text = ingot.call("slim", model, "--cut-strings", "-o", tmp_path / "cut.onnx", "--model-check")
    assert f"cut: {told}" in text and text.rstrip().endswith("agrees")
    cut = onnx.load(tmp_path / "cut.onnx")
    onnx.checker.check_model(cut, full_check=True)
    assert [o.name for o in cut.graph.output] == outputs
    x = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
    got = ingot.run(tmp_path / "cut.onnx", {"x": x}, tmp_path / "run")
    whole = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(["label"], {"x": x})[0]
    assert [LABELS[i] for i in got["index"]] == whole.flatten().tolist()


def test_without_the_option_slim_says_what_it_would_cut(tmp_path):
    model = encoded(tmp_path / "m.onnx")
    text = ingot.call("slim", model, "-o", tmp_path / "slim.onnx")
    assert "--cut-strings would cut: 3 string operators at the ends" in text
    assert [o.name for o in onnx.load(tmp_path / "slim.onnx").graph.output] == ["label"]


@pytest.mark.parametrize("nodes, inputs, outputs, told", [
    ([*SCORES, helper.make_node("LabelEncoder", ["index"], ["text"], "encode", **ENCODER),
      helper.make_node("Shape", ["text"], ["count"], "shape"), helper.make_node("Add", ["count", "count"], ["y"], "sum")],
     [("x", TensorProto.FLOAT, ["n", 4])], [("y", TensorProto.INT64, [1])],
     "strings cannot be cut off: node 'sum' computes with 'count', which is made of strings"),
    ([helper.make_node("Identity", ["x"], ["y"], "copy")], [("x", TensorProto.STRING, ["n"])],
     [("y", TensorProto.STRING, ["n"])], "strings cannot be cut off: input 'x' is strings"),
])
def test_strings_that_are_needed_are_not_cut(tmp_path, nodes, inputs, outputs, told):
    model = saved(tmp_path / "m.onnx", nodes, outputs, inputs=inputs)
    assert told in fails("run", model)
    assert told in fails("slim", model, "--cut-strings", "-o", tmp_path / "cut.onnx")
    assert not (tmp_path / "cut.onnx").exists()


def test_strings_in_a_body_are_not_cut(tmp_path):
    then = helper.make_graph([helper.make_node("LabelEncoder", ["index"], ["a"], "inner", **ENCODER)], "then", [],
                             [helper.make_tensor_value_info("a", TensorProto.STRING, ["n"])])
    other = helper.make_graph([helper.make_node("LabelEncoder", ["index"], ["b"], "inner", **ENCODER)], "else", [],
                              [helper.make_tensor_value_info("b", TensorProto.STRING, ["n"])])
    nodes = [*SCORES, helper.make_node("If", ["c"], ["y"], "choice", then_branch=then, else_branch=other)]
    model = saved(tmp_path / "m.onnx", nodes, [("y", TensorProto.STRING, ["n"])],
                  inputs=[("x", TensorProto.FLOAT, ["n", 4]), ("c", TensorProto.BOOL, [])])
    assert "strings cannot be cut off: a body of 'choice' has strings" in fails("run", model)
