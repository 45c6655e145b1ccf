# SPDX-License-Identifier: Apache-2.0
"""Small models that tests of the servers serve, and what the official client of a server gets."""
import numpy as np
import onnx
import onnx.helper as oh

import ingot_command
import triton_server

DIGITS = ingot_command.DIGITS
FLOAT = onnx.TensorProto.FLOAT


def save(path, nodes, inputs, outputs, initializers=()):
    graph = oh.make_graph(nodes, "g", inputs, outputs, initializers)
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def scaled(path, factor, size=4):
    """y[n, size] = factor * x[n, size]"""
    shape = ["n", size]
    factors = onnx.numpy_helper.from_array(np.full(size, factor, np.float32), "f")
    return save(path, [oh.make_node("Mul", ["x", "f"], ["y"])],
                [oh.make_tensor_value_info("x", FLOAT, shape)],
                [oh.make_tensor_value_info("y", FLOAT, shape)], [factors])


def with_defaults(path):
    """y = x * scale + shift, where scale is 3 and shift 10 and 20 in requests that lack them; returns the path."""
    defaults = {"scale": np.array([3], np.float32), "shift": np.array([10, 20], np.float32)}
    inputs = [oh.make_tensor_value_info(name, FLOAT, [size]) for name, size in (("x", 2), ("scale", 1), ("shift", 2))]
    return save(path, [oh.make_node("Mul", ["x", "scale"], ["t"]), oh.make_node("Add", ["t", "shift"], ["y"])], inputs,
                [oh.make_tensor_value_info("y", FLOAT, [2])],
                [onnx.numpy_helper.from_array(value, name) for name, value in defaults.items()])


def widened(path, size, open_sizes=("n",)):
    """y[n, size] = x[n, 1] in each column."""
    ones = onnx.numpy_helper.from_array(np.ones(size, np.float32), "f")
    return save(path, [oh.make_node("Mul", ["x", "f"], ["y"])], [oh.make_tensor_value_info("x", FLOAT, [*open_sizes, 1])],
                [oh.make_tensor_value_info("y", FLOAT, [*open_sizes, size])], [ones])


def looping(path, shape=(2,), rounds=None):
    """y = x after rounds of adding 1, of which the input `count` says how many unless `rounds` does."""
    body = oh.make_graph(
        [oh.make_node("Identity", ["go"], ["go_on"]), oh.make_node("Add", ["v", "one"], ["v_out"])],
        "body",
        [oh.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
         oh.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
         oh.make_tensor_value_info("v", FLOAT, shape)],
        [oh.make_tensor_value_info("go_on", onnx.TensorProto.BOOL, []),
         oh.make_tensor_value_info("v_out", FLOAT, shape)],
        [onnx.numpy_helper.from_array(np.ones(1, np.float32), "one")])
    count = [oh.make_tensor_value_info("count", onnx.TensorProto.INT64, [])] if rounds is None else []
    given = [] if rounds is None else [onnx.numpy_helper.from_array(np.array(rounds, np.int64), "count")]
    return save(path, [oh.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
                [*count, oh.make_tensor_value_info("x", FLOAT, shape)],
                [oh.make_tensor_value_info("y", FLOAT, shape)], given)


def picking(path):
    """y[n] = table[i[n]] for a table of 3."""
    table = onnx.numpy_helper.from_array(np.array([10, 20, 30], np.float32), "table")
    return save(path, [oh.make_node("Gather", ["table", "i"], ["y"])],
                [oh.make_tensor_value_info("i", onnx.TensorProto.INT64, ["n"])],
                [oh.make_tensor_value_info("y", FLOAT, ["n"])], [table])


def added(path):
    """c = half(a) + half(b), a of FP16: two inputs of sizes that are no batch's."""
    half = onnx.TensorProto.FLOAT16
    return save(path, [oh.make_node("Cast", ["b"], ["h"], to=half), oh.make_node("Add", ["a", "h"], ["c"])],
                [oh.make_tensor_value_info("a", half, [2, 3]), oh.make_tensor_value_info("b", FLOAT, [3])],
                [oh.make_tensor_value_info("c", half, [2, 3])])


def rows(count):
    return np.random.default_rng(count).normal(size=(count, 4)).astype(np.float32)


def check_digits(server, engine, protocol, folder):
    """The official client of a server gets what the engine computes alone, over connections that share
    batches; nine of ten digits are recognised."""
    images = np.load(DIGITS / "held_out_images.npy")[:61]
    expected = ingot_command.run(engine, {"image": images}, folder / "alone")["scores"]
    got = triton_server.client(server, protocol, "digits", {"image": images}, folder, calls=40,
                               threads=8)["scores"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    labels = np.load(DIGITS / "held_out_labels.npy")[:61]
    assert np.mean(np.argmax(got, axis=1) == labels) > 0.9
