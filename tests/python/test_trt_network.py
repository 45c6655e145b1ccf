# SPDX-License-Identifier: Apache-2.0
"""The Python package: every method that adds a layer, every property of every layer, and networks
of them that run on the CPU as numpy computes them."""
import gc

import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402

LOGGER = trt.Logger(trt.Logger.ERROR)


class Net:
    """A network with inputs of suitable shapes for layers."""

    def __init__(self):
        self.builder = trt.Builder(LOGGER)
        self.network = self.builder.create_network()
        self.count = 0

    def input(self, *shape, dtype=trt.float32):
        self.count += 1
        tensor = self.network.add_input(f"x{self.count}", dtype, shape)
        assert tensor is not None
        return tensor

    def constant(self, array):
        array = np.asarray(array)
        return self.network.add_constant(array.shape, array).get_output(0)


F32, I32, I64 = np.float32, np.int32, np.int64
NONE, SOFTMAX = trt.AttentionNormalizationOp.NONE, trt.AttentionNormalizationOp.SOFTMAX


def conv(n):
    return n.network.add_convolution_nd(n.input(1, 3, 8, 8), 4, (3, 3), np.ones((4, 3, 3, 3), F32),
                                        np.zeros(4, F32))


def deconv(n):
    return n.network.add_deconvolution_nd(n.input(1, 3, 8, 8), 4, (2, 2),
                                          np.ones((3, 4, 2, 2), F32))


def norm(method):
    return lambda n: getattr(n.network, method)(n.input(2, 4, 8, 8), n.input(1, 4, 1, 1),
                                                n.input(1, 4, 1, 1), 1 << 2 | 1 << 3)


LAYERS = {
    "IActivationLayer": lambda n: n.network.add_activation(n.input(2, 3), trt.ActivationType.ELU),
    "IParametricReLULayer": lambda n: n.network.add_parametric_relu(n.input(2, 3), n.input(1, 3)),
    "IElementWiseLayer": lambda n: n.network.add_elementwise(
        n.input(2, 3), n.input(2, 1), trt.ElementWiseOperation.SUB),
    "IUnaryLayer": lambda n: n.network.add_unary(n.input(2), trt.UnaryOperation.EXP),
    "ISoftMaxLayer": lambda n: n.network.add_softmax(n.input(2, 3)),
    "IRaggedSoftMaxLayer": lambda n: n.network.add_ragged_softmax(
        n.input(2, 3), n.input(2, 1, dtype=trt.int32)),
    "IReduceLayer": lambda n: n.network.add_reduce(n.input(2, 3), trt.ReduceOperation.SUM, 2, True),
    "ITopKLayer": lambda n: n.network.add_topk(n.input(2, 9), trt.TopKOperation.MAX, 3, 2),
    "ICumulativeLayer": lambda n: n.network.add_cumulative(
        n.input(2, 3), n.constant(I32(1)), trt.CumulativeOperation.SUM, False, True),
    "IMatrixMultiplyLayer": lambda n: n.network.add_matrix_multiply(
        n.input(2, 3), trt.MatrixOperation.NONE, n.input(4, 3), trt.MatrixOperation.TRANSPOSE),
    "IEinsumLayer": lambda n: n.network.add_einsum([n.input(2, 3), n.input(3, 4)], "ij,jk->ik"),
    "IQuantizeLayer": lambda n: n.network.add_quantize(n.input(2, 3), n.constant(F32(0.5))),
    "IDequantizeLayer": lambda n: n.network.add_dequantize(
        n.input(2, 3, dtype=trt.int8), n.constant(F32(0.5))),
    "IConvolutionLayer": conv,
    "IDeconvolutionLayer": deconv,
    "IPoolingLayer": lambda n: n.network.add_pooling_nd(n.input(1, 3, 8, 8), trt.PoolingType.MAX,
                                                        (2, 2)),
    "ILRNLayer": lambda n: n.network.add_lrn(n.input(1, 3, 8, 8), 3, 1e-4, 0.75, 1.0),
    "IScaleLayer": lambda n: n.network.add_scale(n.input(1, 3, 8, 8), trt.ScaleMode.CHANNEL,
                                                 np.ones(3, F32), np.ones(3, F32)),
    "IPaddingLayer": lambda n: n.network.add_padding_nd(n.input(1, 3, 8, 8), (1, 2), (3, 4)),
    "IResizeLayer": lambda n: n.network.add_resize(n.input(1, 3, 8, 8)),
    "IGridSampleLayer": lambda n: n.network.add_grid_sample(n.input(1, 3, 8, 8),
                                                            n.input(1, 4, 4, 2)),
    "INormalizationLayer": norm("add_normalization_v2"),
    "IConcatenationLayer": lambda n: n.network.add_concatenation([n.input(2, 3), n.input(2, 3)]),
    "IShuffleLayer": lambda n: n.network.add_shuffle(n.input(2, 3)),
    "ISliceLayer": lambda n: n.network.add_slice(n.input(4, 4), (0, 1), (2, 2), (1, 1)),
    "IShapeLayer": lambda n: n.network.add_shape(n.input(2, 3)),
    "IGatherLayer": lambda n: n.network.add_gather(n.input(4, 3), n.input(2, dtype=trt.int32), 0),
    "IScatterLayer": lambda n: n.network.add_scatter(
        n.input(4, 3), n.input(4, 1, dtype=trt.int32), n.input(4, 1), trt.ScatterMode.ELEMENT),
    "IOneHotLayer": lambda n: n.network.add_one_hot(
        n.input(4, dtype=trt.int32), n.constant(np.array([0, 1], F32)), n.constant(I32(5)), -1),
    "INonZeroLayer": lambda n: n.network.add_non_zero(n.input(2, 3)),
    "ISelectLayer": lambda n: n.network.add_select(n.input(2, 3, dtype=trt.bool), n.input(2, 3),
                                                   n.input(2, 3)),
    "IConstantLayer": lambda n: n.network.add_constant((2, 3), np.ones((2, 3), F32)),
    "IIdentityLayer": lambda n: n.network.add_identity(n.input(2, 3)),
    "ICastLayer": lambda n: n.network.add_cast(n.input(2, 3), trt.int32),
    "IFillLayer": lambda n: n.network.add_fill((4,), trt.FillOperation.LINSPACE),
    "ISqueezeLayer": lambda n: n.network.add_squeeze(n.input(2, 1), n.constant(I64([1]))),
    "IUnsqueezeLayer": lambda n: n.network.add_unsqueeze(n.input(2), n.constant(I64([0]))),
    "INMSLayer": lambda n: n.network.add_nms(n.input(1, 8, 4), n.input(1, 8, 2),
                                             n.constant(I32(3))),
    "IReverseSequenceLayer": lambda n: n.network.add_reverse_sequence(
        n.input(4, 2, 3), n.input(2, dtype=trt.int32)),
    "IAssertionLayer": lambda n: n.network.add_assertion(n.constant(np.array([True])), "always"),
    "IAttention": lambda n: n.network.add_attention_v2(
        n.input(1, 2, 4, 8), n.input(1, 2, 4, 8), n.input(1, 2, 4, 8), SOFTMAX,
        trt.CausalMaskKind.NONE),
    "IRotaryEmbeddingLayer": lambda n: n.network.add_rotary_embedding(
        n.input(1, 2, 4, 8), n.input(1, 4, 4), n.input(1, 4, 4), False, 0),
    "IKVCacheUpdateLayer": lambda n: n.network.add_kv_cache_update(
        n.input(1, 2, 16, 8), n.input(1, 2, 4, 8), n.input(1, dtype=trt.int32),
        trt.KVCacheMode.LINEAR),
    "ILoop": lambda n: n.network.add_loop(),
    "IIfConditional": lambda n: n.network.add_if_conditional(),
}
# Values that mean "not set" when read, and are invalid when set.
NOT_SETTABLE_BACK = {("IShuffleLayer", "reshape_dims"), ("IResizeLayer", "shape"),
                     ("IResizeLayer", "scales"), ("ISliceLayer", "axes"),
                     ("IQuantizeLayer", "block_shape"), ("IDequantizeLayer", "block_shape"),
                     ("IPoolingLayer", "padding_nd"), ("IConvolutionLayer", "bias"),
                     ("IDeconvolutionLayer", "bias")}


def same(a, b):
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, trt.Permutation):
        return list(a) == list(b)
    if isinstance(a, trt.Dims) and len_or_none(a) is None:
        return len_or_none(b) is None
    return a == b or a is b or (isinstance(a, float) and a != a)


def len_or_none(dims):
    try:
        return len(dims)
    except ValueError:
        return None


@pytest.mark.parametrize("name", LAYERS)
def test_layer_and_its_properties(name):
    net = Net()
    layer = LAYERS[name](net)
    assert type(layer) is getattr(trt, name)
    names = [key for key in dir(type(layer)) if isinstance(getattr(type(layer), key), property)]
    assert "name" in names
    layer.name = "of mine"
    assert layer.name == "of mine"
    for key in names:
        value = getattr(layer, key)
        if getattr(type(layer), key).fset is None or (name, key) in NOT_SETTABLE_BACK:
            continue
        if value is None or key == "precision":
            continue
        setattr(layer, key, value)
        assert same(getattr(layer, key), value), key


@pytest.mark.parametrize("name", [name for name in LAYERS if name.endswith("Layer")])
def test_layer_in_the_network(name):
    net = Net()
    layer = LAYERS[name](net)
    index = net.network.num_layers - 1
    assert net.network.get_layer(index) is layer and net.network[-1] is layer
    identity = id(layer)
    metadata = layer.metadata
    del layer
    gc.collect()
    again = net.network[index]
    shadowed = name in ("IActivationLayer", "IPoolingLayer")  # their type is not the layer's
    assert type(again) is (trt.ILayer if shadowed else getattr(trt, name))
    assert again.metadata == metadata
    assert again.type is not None and again.num_outputs >= 0 and identity
    for i in range(again.num_outputs):
        assert again.get_output(i).name
    assert again.get_output(99) is None and again.get_input(99) is None


def run(net, feeds, *outputs):
    """Builds, loads and runs on the CPU; the values of the outputs."""
    for index, tensor in enumerate(outputs):
        tensor.name = f"y{index}"
        net.network.mark_output(tensor)
    config = net.builder.create_builder_config()
    engine_bytes = net.builder.build_serialized_network(net.network, config)
    assert engine_bytes is not None
    runtime = trt.Runtime(LOGGER)
    assert runtime.set_device(package.CPU)
    engine = runtime.deserialize_cuda_engine(engine_bytes)
    context = engine.create_execution_context()
    for name, array in feeds.items():
        assert context.set_tensor_address(name, array.ctypes.data)
    results = []
    for index in range(len(outputs)):
        name = f"y{index}"
        array = np.empty(context.get_tensor_shape(name), trt.nptype(engine.get_tensor_dtype(name)))
        assert context.set_tensor_address(name, array.ctypes.data)
        results.append(array)
    assert context.execute_async_v3(stream_handle=0)
    return results


RNG = np.random.default_rng(7)


def test_run_of_a_small_network():
    net = Net()
    x = net.input(2, 3)
    w = RNG.standard_normal((3, 4)).astype(F32)
    product = net.network.add_matrix_multiply(x, trt.MatrixOperation.NONE, net.constant(w),
                                              trt.MatrixOperation.NONE).get_output(0)
    y = net.network.add_activation(product, trt.ActivationType.RELU).get_output(0)
    values = RNG.standard_normal((2, 3)).astype(F32)
    result, = run(net, {"x1": values}, y)
    np.testing.assert_allclose(result, np.maximum(values @ w, 0), rtol=1e-5, atol=1e-6)


def test_run_of_a_convolution_whose_weights_nobody_else_keeps():
    net = Net()
    layer = net.network.add_convolution_nd(
        net.input(1, 2, 5, 5), 3, (1, 1), np.full((3, 2, 1, 1), 2, F32), np.full(3, 1, F32))
    layer.stride_nd = (2, 2)
    output = layer.get_output(0)
    del layer
    gc.collect()
    junk = [np.full(1000, np.nan, F32) for _ in range(100)]
    values = RNG.standard_normal((1, 2, 5, 5)).astype(F32)
    result, = run(net, {"x1": values}, output)
    expected = 2 * values[:, :, ::2, ::2].sum(1, keepdims=True).repeat(3, 1) + 1
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    assert len(junk) == 100


def test_weights_set_by_a_property_are_kept():
    net = Net()
    layer = net.network.add_scale(net.input(1, 2, 3, 3), trt.ScaleMode.UNIFORM)
    layer.scale = np.full(1, 3, F32)
    layer.shift = np.full(1, -1, F32)
    output = layer.get_output(0)
    del layer
    gc.collect()
    values = RNG.standard_normal((1, 2, 3, 3)).astype(F32)
    result, = run(net, {"x1": values}, output)
    np.testing.assert_allclose(result, values * 3 - 1, rtol=1e-5, atol=1e-6)


def test_run_of_several_outputs_of_topk():
    net = Net()
    layer = net.network.add_topk(net.input(2, 6), trt.TopKOperation.MAX, 2, 1 << 1)
    values = RNG.permutation(12).reshape(2, 6).astype(F32)
    top, indices = run(net, {"x1": values}, layer.get_output(0), layer.get_output(1))
    order = np.argsort(-values, axis=1)[:, :2]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(top, np.take_along_axis(values, order, 1))


def test_run_of_a_loop():
    net = Net()
    x = net.input(3)
    loop = net.network.add_loop()
    loop.add_trip_limit(net.constant(I32(4)), trt.TripLimit.COUNT)
    value = loop.add_recurrence(x)
    doubled = net.network.add_elementwise(value.get_output(0), value.get_output(0),
                                          trt.ElementWiseOperation.SUM)
    value.set_input(1, doubled.get_output(0))
    last = loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)
    assert value.loop is loop and type(last) is trt.ILoopOutputLayer
    assert last.kind == trt.LoopOutput.LAST_VALUE
    values = np.array([1, 2, 3], F32)
    result, = run(net, {"x1": values}, last.get_output(0))
    np.testing.assert_array_equal(result, values * 16)


def test_run_of_a_conditional():
    net = Net()
    condition, x = net.input(dtype=trt.bool), net.input(3)
    conditional = net.network.add_if_conditional()
    conditional.set_condition(condition)
    inner = conditional.add_input(x).get_output(0)
    negative = net.network.add_unary(inner, trt.UnaryOperation.NEG).get_output(0)
    absolute = net.network.add_unary(inner, trt.UnaryOperation.ABS).get_output(0)
    output = conditional.add_output(negative, absolute)
    assert output.conditional is conditional
    values = np.array([1, -2, 3], F32)
    result, = run(net, {"x1": np.array(True), "x2": values}, output.get_output(0))
    np.testing.assert_array_equal(result, -values)
