# SPDX-License-Identifier: Apache-2.0
"""The Python package: formats of inputs and outputs (allowed_formats), against arrays that numpy lays out."""
import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402

LOGGER = trt.Logger(trt.Logger.ERROR)

# Format: its channel axis from the end, its vector length, whether channels are innermost, its
# types.
FORMATS = {
    "CHW2": (3, 2, False, ["float16"]),
    "CHW4": (3, 4, False, ["float16", "int8"]),
    "CHW16": (3, 16, False, ["float16"]),
    "CHW32": (3, 32, False, ["float32", "float16", "int8"]),
    "HWC": (3, 1, True, ["float32", "uint8"]),
    "HWC8": (3, 8, True, ["float16"]),
    "HWC16": (3, 16, True, ["float16", "int8"]),
    "DHWC": (4, 1, True, ["float32"]),
    "DHWC8": (4, 8, True, ["float16"]),
    "CDHW32": (4, 32, False, ["float16", "int8"]),
}
CASES = [(name, dtype) for name, (*_, dtypes) in FORMATS.items() for dtype in dtypes]


def bits(*names):
    return sum(1 << int(getattr(trt.TensorFormat, name)) for name in names)


def laid_out(x, name, rest=0):
    """The array of a tensor in memory; padding is `rest`."""
    place, vector, innermost, _ = FORMATS[name]
    axis = x.ndim - place
    padding = [(0, 0)] * x.ndim
    padding[axis] = (0, -x.shape[axis] % vector)
    x = np.pad(x, padding, constant_values=rest)
    if not innermost:
        x = x.reshape(x.shape[:axis] + (-1, vector) + x.shape[axis + 1:])
        axis += 1
    return np.ascontiguousarray(np.moveaxis(x, axis, -1))


def doubling(shape, dtype, formats, profile=None):
    """The engine of y = 2x, or None."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    config = builder.create_builder_config()
    x = network.add_input("x", getattr(trt, dtype), shape)
    wide = network.add_cast(x, trt.float32).get_output(0)
    twice = network.add_elementwise(wide, wide, trt.ElementWiseOperation.SUM).get_output(0)
    y = network.add_cast(twice, getattr(trt, dtype)).get_output(0)
    y.name = "y"
    network.mark_output(y)
    x.allowed_formats = y.allowed_formats = formats
    assert x.allowed_formats == formats
    if profile:
        p = builder.create_optimization_profile()
        p.set_shape("x", *profile)
        config.add_optimization_profile(p)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        return None
    runtime = trt.Runtime(LOGGER)
    assert runtime.set_device(package.CPU)
    return runtime.deserialize_cuda_engine(plan)


def check(engine, context, name, dtype, shape):
    place, vector, _, _ = FORMATS[name]
    x = (np.arange(np.prod(shape)).reshape(shape) % 23).astype(dtype)
    array = laid_out(x, name, 99)
    result = np.full_like(array, 77)
    assert context.set_input_shape("x", shape)
    assert tuple(context.get_tensor_shape("y")) == shape
    assert context.get_max_output_size("y") == result.nbytes
    assert context.set_tensor_address("x", array.ctypes.data)
    assert context.set_tensor_address("y", result.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(result, laid_out(2 * x, name))
    # As programs find an element: strides are those of whole vectors.
    strides, axis = context.get_tensor_strides("x"), len(shape) - place
    for index in np.ndindex(*shape):
        at = sum(s * (i // vector if d == axis else i) for d, (s, i) in enumerate(zip(strides, index)))
        assert array.reshape(-1)[at * vector + index[axis] % vector] == x[index]


@pytest.mark.parametrize("name, dtype", CASES)
def test_each_format_with_each_type(name, dtype):
    place, vector, _, _ = FORMATS[name]
    tail = (2, 2, 3) if place == 4 else (2, 3)
    for channels in (1, 5, 33):
        shape = (2, channels, *tail)
        engine = doubling(shape, dtype, bits(name))
        for tensor in ("x", "y"):
            assert engine.get_tensor_format(tensor) == getattr(trt.TensorFormat, name)
            assert f"(k{name})" in engine.get_tensor_format_desc(tensor)
            assert tuple(engine.get_tensor_shape(tensor)) == shape
            vectors = vector > 1
            assert engine.get_tensor_vectorized_dim(tensor) == (1 if vectors else -1)
            assert engine.get_tensor_components_per_element(tensor) == (vector if vectors else -1)
            assert engine.get_tensor_bytes_per_component(tensor) == (np.dtype(dtype).itemsize if vectors else -1)
        check(engine, engine.create_execution_context(), name, dtype, shape)


@pytest.mark.parametrize("name, dtype", CASES)
def test_sizes_of_each_run(name, dtype):
    tail = (2, 3) if FORMATS[name][0] == 4 else (3,)
    least, most = (1, 1, 1, *tail), (4, 40, 4, *tail)
    engine = doubling((-1, -1, -1, *tail), dtype, bits(name), (least, most, most))
    assert [tuple(s) for s in engine.get_tensor_profile_shape("x", 0)] == [least, most, most]
    context = engine.create_execution_context()
    for channels in (3, 34, 1):
        check(engine, context, name, dtype, (2, channels, 3, *tail))
    assert not context.set_input_shape("x", (2, 41, 3, *tail))


def test_which_is_taken():
    assert doubling((1, 3, 2, 2), "float16", bits("LINEAR", "HWC8")).get_tensor_format("x") == trt.TensorFormat.LINEAR
    assert doubling((1, 3, 2, 2), "float16", bits("CHW32", "HWC8")).get_tensor_format("x") == trt.TensorFormat.HWC8
    assert doubling((1, 3, 2, 2), "float32", bits("CHW32", "HWC8")).get_tensor_format("x") == trt.TensorFormat.CHW32


def test_builds_that_fail():
    for shape, dtype, formats in [((1, 3, 2, 2), "float32", bits("CHW2")), ((3, 2), "float32", bits("HWC")),
                                  ((1, 3, 2, 2), "float16", bits("DLA_LINEAR")), ((1, 3, 2, 2), "float16", 0)]:
        assert doubling(shape, dtype, formats) is None
