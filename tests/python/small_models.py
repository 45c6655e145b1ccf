# SPDX-License-Identifier: Apache-2.0
"""Models of a few nodes, for tests of any command."""
import onnx
from onnx import TensorProto, helper


def value(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def model_file(path, nodes, inputs, outputs, initializers=(), opset=17):
    """Writes the model of one graph; its path."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), str(path))
    return path


def with_shapes_found_at_run_time():
    """`places` has as many columns as x has numbers other than 0."""
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Neg", ["x"], ["less"])],
        "places", [value("x", [6])], [value("places", [1, None], TensorProto.INT64), value("less", [6])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
