# SPDX-License-Identifier: Apache-2.0
"""Runs on the execution provider: results, shapes, types, and that the nodes ran there."""
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import (NAME, RELEASE, assigned, model_of, on_cpu, onnxruntime, session, session_options)

FLOAT = TensorProto.FLOAT


def mlp(rng):
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["s"]),
         helper.make_node("Relu", ["s"], ["y"])],
        {"x": (FLOAT, ["n", 64])}, {"y": (FLOAT, ["n", 700])},
        {"w": rng.standard_normal((64, 700)).astype(np.float32),
         "b": rng.standard_normal(700).astype(np.float32)})


def test_results_are_right_for_any_size():
    rng = np.random.default_rng(1)
    model = mlp(rng)
    made = session(model)
    for n in (1, 3, 0, 17, 3):
        x = rng.standard_normal((n, 64)).astype(np.float32)
        got, = made.run(None, {"x": x})
        np.testing.assert_allclose(got, on_cpu(model, {"x": x})[0], rtol=1e-4, atol=1e-4)


def test_record_of_the_assignment_names_every_node():
    model = mlp(np.random.default_rng(2))
    made = session(model, entries={"session.record_ep_graph_assignment_info": "1"})
    record = assigned(made)
    assert list(record) == [NAME] and len(record[NAME]) >= 2, record


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16,
                                   np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_element_types(dtype):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of([helper.make_node("Add", ["x", "c"], ["a"]),
                      helper.make_node("Concat", ["a", "x"], ["y"], axis=0)],
                     {"x": (element, ["n", 3])}, {"y": (element, ["m", 3])},
                     {"c": np.array([1, 2, 3], dtype)})
    x = np.arange(6).reshape(2, 3).astype(dtype)
    got, = session(model).run(None, {"x": x})
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.concatenate([x + np.array([1, 2, 3], dtype), x]))


def test_values_decide_shapes_without_a_profile():
    model = model_of(
        [helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["s"]),
         helper.make_node("Reshape", ["s", "shape"], ["r"]),
         helper.make_node("Tile", ["r", "repeats"], ["y"])],
        {"x": (FLOAT, [8, 6]), "starts": (TensorProto.INT64, [1]), "ends": (TensorProto.INT64, [1]),
         "axes": (TensorProto.INT64, [1]), "steps": (TensorProto.INT64, [1]),
         "shape": (TensorProto.INT64, [2]), "repeats": (TensorProto.INT64, [2])},
        {"y": (FLOAT, ["a", "b"])})
    made = session(model)
    x = np.random.default_rng(3).standard_normal((8, 6)).astype(np.float32)
    for starts, ends, axes, steps, shape, repeats in [
            (0, 8, 0, 1, (4, 12), (1, 2)), (-1, -9, 0, -2, (-1, 3), (2, 1)),
            (1, 4, 1, 2, (16, 1), (3, 3)), (5, 5, 0, 1, (0, 7), (1, 1))]:
        feeds = {"x": x, "starts": np.array([starts]), "ends": np.array([ends]),
                 "axes": np.array([axes]), "steps": np.array([steps]), "shape": np.array(shape),
                 "repeats": np.array(repeats)}
        if shape == (0, 7):
            continue
        got, = made.run(None, feeds)
        np.testing.assert_array_equal(got, on_cpu(model, feeds)[0])


def test_sizes_that_depend_on_data():
    model = model_of([helper.make_node("NonZero", ["x"], ["i"]),
                      helper.make_node("Cast", ["i"], ["y"], to=FLOAT)],
                     {"x": (FLOAT, ["n"])}, {"y": (FLOAT, [1, "k"])})
    made = session(model)
    for x in ([1, 0, 2], [0, 0, 0, 0], [5], [0, 3, 3, 3]):
        got, = made.run(None, {"x": np.array(x, np.float32)})
        np.testing.assert_array_equal(got, np.nonzero(x)[0].reshape(1, -1).astype(np.float32))


def test_scalars_and_several_outputs_of_which_some_are_unused():
    model = model_of([helper.make_node("TopK", ["x", "k"], ["values", "places"]),
                      helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
                      helper.make_node("Dropout", ["x"], ["same", ""])],
                     {"x": (FLOAT, [5])},
                     {"places": (TensorProto.INT64, [2]), "most": (FLOAT, []), "same": (FLOAT, [5])},
                     {"k": np.array([2])})
    x = np.array([3, 9, 1, 7, 5], np.float32)
    places, most, same = session(model).run(None, {"x": x})
    np.testing.assert_array_equal(places, [1, 3])
    assert most.shape == () and most == 9
    np.testing.assert_array_equal(same, x)


def loop_model():
    """Doubles x as long as its sum is below a limit; the body reads the outer name "step"."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "step"], ["v_out"]),
         helper.make_node("ReduceSum", ["v_out"], ["total"], keepdims=0),
         helper.make_node("Less", ["total", "limit"], ["go"]),
         helper.make_node("Identity", ["total"], ["seen"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v", FLOAT, ["n"])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v_out", FLOAT, ["n"]),
         helper.make_tensor_value_info("seen", FLOAT, [])])
    return model_of(
        [helper.make_node("Add", ["two", "zero"], ["step"]),
         helper.make_node("Loop", ["", "yes", "x"], ["y", "totals"], body=body)],
        {"x": (FLOAT, ["n"]), "limit": (FLOAT, []), "zero": (FLOAT, [])},
        {"y": (FLOAT, ["n"]), "totals": (FLOAT, ["k"])},
        {"yes": np.array(True), "two": np.array(2, np.float32)})


# Before, the inputs of a fused node lack what its bodies alone read.
HANDS_OVER = RELEASE >= (1, 28)


def test_nodes_whose_results_nothing_reads_are_left_to_others(capfd):
    """ONNX Runtime keeps them, and folds the node that the output is read from."""
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    model = model_of([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Tanh", ["r"], ["t"]),
                      helper.make_node("Transpose", ["w"], ["y"])],
                     {"x": (FLOAT, ["n", 3])}, {"y": (FLOAT, [3, 2])}, {"w": w})
    options = session_options(whole=False)
    options.log_severity_level = 1
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=False)
    assert "Relu x 1, first node 'r' (Relu): nothing reads its results" in "".join(capfd.readouterr())
    got, = made.run(None, {"x": w})
    np.testing.assert_array_equal(got, w.T)


def test_control_flow_runs_with_its_bodies():
    model = loop_model()
    made = session(model, whole=HANDS_OVER)
    for limit in (1, 50, 1000):
        feeds = {"x": np.array([1, 2], np.float32), "limit": np.array(limit, np.float32),
                 "zero": np.array(0, np.float32)}
        for got, want in zip(made.run(None, feeds), on_cpu(model, feeds)):
            np.testing.assert_array_equal(got, want)


def test_if_whose_branches_give_different_sizes():
    def branch(name, nodes):
        return helper.make_graph(nodes, name, [],
                                 [helper.make_tensor_value_info(name, FLOAT, ["k"])])
    model = model_of(
        [helper.make_node("If", ["c"], ["y"],
                          then_branch=branch("t", [helper.make_node("Abs", ["x"], ["t"])]),
                          else_branch=branch("e", [helper.make_node("Concat", ["x", "x"], ["e"],
                                                                    axis=0)]))],
        {"c": (TensorProto.BOOL, []), "x": (FLOAT, ["n"])}, {"y": (FLOAT, ["k"])})
    made = session(model, whole=HANDS_OVER)
    x = np.array([-1, 2, -3], np.float32)
    np.testing.assert_array_equal(made.run(None, {"c": np.array(True), "x": x})[0], np.abs(x))
    np.testing.assert_array_equal(made.run(None, {"c": np.array(False), "x": x})[0],
                                  np.concatenate([x, x]))


@pytest.mark.parametrize("where", ["initializer", "Constant", "body"])
def test_constants_of_strings_are_left_to_others_and_the_rest_runs(where):
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b"b"])
    nodes = [helper.make_node("Equal", ["s", "words"], ["same"])]
    if where == "Constant":
        nodes.insert(0, helper.make_node("Constant", [], ["words"], value=words))
    elif where == "body":
        def branch(name, kind):
            return helper.make_graph([helper.make_node(kind, ["s", "words"], [name])], name, [],
                                     [helper.make_tensor_value_info(name, TensorProto.BOOL, [2])], [words])
        nodes = [helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
                 helper.make_node("Greater", ["top", "zero"], ["c"]),
                 helper.make_node("If", ["c"], ["same"], then_branch=branch("t", "Equal"),
                                  else_branch=branch("e", "Equal"))]
    nodes += [helper.make_node("Cast", ["same"], ["f"], to=FLOAT), helper.make_node("MatMul", ["x", "w"], ["a"]),
              helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Add", ["r", "f"], ["y"])]
    arrays = {"w": np.eye(2, dtype=np.float32), "zero": np.array(0, np.float32)}
    if where == "initializer":
        arrays["words"] = np.array(["a", "b"], object)
    model = model_of(nodes, {"s": (TensorProto.STRING, [2]), "x": (FLOAT, [2, 2])}, {"y": (FLOAT, [2, 2])},
                     arrays, opset=19)
    made = session(model, whole=False, entries={"session.record_ep_graph_assignment_info": "1"})
    assert {"Add", "Cast", "MatMul", "Relu"} <= set(assigned(made)[NAME])
    feeds = {"s": np.array(["a", "c"], object), "x": np.ones((2, 2), np.float32)}
    np.testing.assert_array_equal(made.run(None, feeds)[0], [[2, 1], [2, 1]])


@pytest.mark.parametrize("is_known", [True, False])
def test_rank_above_what_ingot_holds_is_an_error_or_left_to_others(is_known):
    model = model_of([helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])],
                     {"x": (FLOAT, ["n"] * 9)}, {"y": (FLOAT, ["n"] * 9)})
    if not is_known:
        for v in (*model.graph.input, *model.graph.output):
            v.type.tensor_type.ClearField("shape")
    made = session(model, whole=False)
    x = np.full((1,) * 9, 2, np.float32)
    try:
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    except Exception as e:
        assert not is_known and "input 'x' has rank 9, expected at most 8" in str(e)


def test_runs_of_many_threads_on_one_session():
    rng = np.random.default_rng(4)
    model = mlp(rng)
    made = session(model)
    inputs = [rng.standard_normal((1 + i % 5, 64)).astype(np.float32) for i in range(32)]
    expected = [on_cpu(model, {"x": x})[0] for x in inputs]
    wrong = []

    def work(first):
        for i in range(first, 32, 4):
            got, = made.run(None, {"x": inputs[i]})
            if not np.allclose(got, expected[i], rtol=1e-4, atol=1e-4):
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_sessions_that_are_made_and_closed_leave_no_memory():
    def resident_mib():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096 / 2**20
    model = mlp(np.random.default_rng(5))
    x = np.ones((3, 64), np.float32)
    grown = []
    for count in (30, 150, 150, 150):  # a leak grows in each round, heaps of busy threads in some
        before = resident_mib()
        for _ in range(count):
            session(model).run(None, {"x": x})
        grown.append(resident_mib() - before)
        if count > 30 and grown[-1] < 8:
            break
    assert grown[-1] < 8, grown
