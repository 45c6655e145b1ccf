# SPDX-License-Identifier: Apache-2.0
"""Layers of a parsed network show as the classes of their types, with the nodes' settings."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402


def parsed(nodes, inputs, initializers=(), outputs=("y",)):
    """Network (with what keeps it) and parser of a model of these nodes."""
    graph = helper.make_graph(
        nodes, "made",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in initializers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network()
    parser = trt.OnnxParser(network, trt.Logger(trt.Logger.ERROR))
    assert parser.parse(model.SerializeToString()), parser.get_error(0)
    return network, builder


KERNEL = np.arange(3 * 2 * 3 * 3, dtype=np.float32).reshape(3, 2, 3, 3)


@pytest.fixture
def conv():
    return parsed([helper.make_node("Conv", ["x", "w"], ["h"], name="first", strides=[2, 1],
                                    pads=[1, 0, 1, 0]),
                   helper.make_node("LeakyRelu", ["h"], ["t"], name="second", alpha=0.25),
                   helper.make_node("Transpose", ["t"], ["u"], name="third", perm=[0, 2, 3, 1]),
                   helper.make_node("ReduceMean", ["u", "axes"], ["y"], name="fourth", keepdims=0)],
                  [("x", (1, 2, 9, 9))], [("w", KERNEL), ("axes", np.array([1, -2]))])


def test_layers_are_of_their_classes(conv):
    network, _ = conv
    first, second, third, fourth = (network[i] for i in range(4))
    assert type(first) is trt.IConvolutionLayer and first.num_output_maps == 3
    assert tuple(first.kernel_size_nd) == (3, 3) and tuple(first.stride_nd) == (2, 1)
    assert tuple(first.pre_padding) == (1, 0) and first.num_groups == 1
    assert np.array_equal(np.asarray(first.kernel).reshape(KERNEL.shape), KERNEL)
    # Its own `type` is not the layer's: it shows as ILayer until it is cast.
    assert type(second) is trt.ILayer and second.type == trt.LayerType.ACTIVATION
    second.__class__ = trt.IActivationLayer
    assert second.type == trt.ActivationType.LEAKY_RELU and second.alpha == 0.25
    assert type(third) is trt.IShuffleLayer and list(third.first_transpose)[:4] == [0, 2, 3, 1]
    assert type(fourth) is trt.IReduceLayer
    assert fourth.op == trt.ReduceOperation.AVG and fourth.axes == 0b110 and not fourth.keep_dims


def test_class_can_be_assigned_as_in_other_programs(conv):
    network, _ = conv
    for layer in (network.get_layer(i) for i in range(network.num_layers)):
        name = "".join(word.capitalize() for word in layer.type.name.split("_"))
        wanted = getattr(trt, f"I{name}Layer")
        layer.__class__ = wanted
        assert isinstance(layer, wanted)


def test_a_setter_takes_effect(conv):
    network, builder = conv
    activation = network[1]
    activation.__class__ = trt.IActivationLayer
    activation.alpha = 1.0
    network[0].stride_nd = (1, 1)
    assert tuple(network[0].get_output(0).shape) == (1, 3, 9, 7)
    engine_bytes = builder.build_serialized_network(network, builder.create_builder_config())
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 9), dtype=np.float32)
    y = trt.compile(engine_bytes)(x)
    y = next(iter(y.values())) if isinstance(y, dict) else y
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, KERNEL).mean(axis=(2, 3))
    assert np.allclose(np.asarray(y), wanted, rtol=1e-4, atol=1e-3)


def test_constants_and_nodes_without_a_class():
    network, _ = parsed([helper.make_node("Mul", ["x", "w"], ["a"]),
                         helper.make_node("HardSwish", ["a"], ["y"])],
                        [("x", (2, 3))], [("w", np.ones(3, np.float32))])
    constant, product, plain = (network[i] for i in range(3))
    assert type(constant) is trt.IConstantLayer and constant.name == "w" and len(network) == 3
    assert np.array_equal(np.asarray(constant.weights), np.ones(3))
    assert type(product) is trt.IElementWiseLayer and product.num_inputs == 2
    assert product.op == trt.ElementWiseOperation.PROD
    assert type(plain) is trt.ILayer and plain.type == trt.LayerType.PLUGIN
