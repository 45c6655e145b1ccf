# SPDX-License-Identifier: Apache-2.0
"""Plugins written in Python, creators, fields, kernels of source text."""
import ctypes
import gc

import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402


class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.errors = []

    def log(self, severity, msg):
        if severity <= trt.ILogger.ERROR:
            self.errors.append(msg)

    def take(self):
        text, self.errors = "\n".join(self.errors), []
        return text


LOGGER = Log()
ALIVE = []


def floats(address, count):
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


class Pad(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    """x[n] -> y[n + k]: x, then k numbers that are a field."""

    def __init__(self, tail=None):
        trt.IPluginV3.__init__(self)
        trt.IPluginV3OneCore.__init__(self)
        trt.IPluginV3OneBuild.__init__(self)
        trt.IPluginV3OneRuntime.__init__(self)
        self.plugin_name = "PyPad"
        self.plugin_version = "1"
        self.plugin_namespace = ""
        self.num_outputs = 1
        self.tail = np.array([] if tail is None else tail, np.float32)
        self.configured = None
        ALIVE.append(1)

    def get_capability_interface(self, type):
        return self

    def get_output_data_types(self, input_types):
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, exprBuilder):
        out = trt.DimsExprs(inputs[0])
        assert len(out) == 1
        out[0] = exprBuilder.operation(trt.DimensionOperation.SUM, inputs[0][0],
                                       exprBuilder.constant(len(self.tail)))
        Pad.kept = (exprBuilder, out[0])
        return [out]

    def supports_format_combination(self, pos, in_out, num_inputs):
        assert num_inputs == 1 and len(in_out) == 2
        return in_out[pos].desc.format == trt.TensorFormat.LINEAR and \
            in_out[pos].desc.type == trt.DataType.FLOAT

    def configure_plugin(self, inp, out):
        self.configured = (tuple(inp[0].min), tuple(inp[0].max), tuple(out[0].max))
        Pad.seen = self.configured

    def get_workspace_size(self, inp, out):
        return 16

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection(
            [trt.PluginField("tail", self.tail, trt.PluginFieldType.FLOAT32)])

    def on_shape_change(self, inp, out):
        assert out[0].dims[0] == inp[0].dims[0] + len(self.tail)

    def set_tactic(self, tactic):
        assert tactic == 0

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        assert workspace != 0
        n = input_desc[0].dims[0]
        y = floats(outputs[0], n + len(self.tail))
        y[:n] = floats(inputs[0], n)
        y[n:] = self.tail

    def attach_to_context(self, context):
        return self.clone()

    def clone(self):
        copy = Pad()
        copy.__dict__.update(self.__dict__)
        return copy

    def destroy(self):
        ALIVE.pop()


class PadCreator(trt.IPluginCreatorV3One):
    def __init__(self):
        trt.IPluginCreatorV3One.__init__(self)
        self.name = "PyPad"
        self.plugin_namespace = ""
        self.plugin_version = "1"
        self.field_names = trt.PluginFieldCollection(
            [trt.PluginField("tail", np.array([], np.float32), trt.PluginFieldType.FLOAT32)])

    def create_plugin(self, name, fc, phase):
        assert phase in (trt.TensorRTPhase.BUILD, trt.TensorRTPhase.RUNTIME)
        assert [f.name for f in fc] == ["tail"] and fc[0].type == trt.PluginFieldType.FLOAT32
        return Pad(fc[0].data)


@pytest.fixture
def creator():
    registry = trt.get_plugin_registry()
    made = PadCreator()
    assert registry.register_creator(made, "")
    yield made
    assert registry.deregister_creator(made)
    assert not registry.deregister_creator(made)


def network_of(plugin):
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (-1,))
    layer = network.add_plugin_v3([x], [], plugin)
    if layer is None:
        return None
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1,), (4,), (8,))
    config.add_optimization_profile(profile)
    return builder, network, config, layer


def run(blob, values, size):
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    engine = runtime.deserialize_cuda_engine(blob)
    assert engine is not None, LOGGER.take()
    context = engine.create_execution_context()
    x = np.array(values, np.float32)
    y = np.zeros(size, np.float32)
    context.set_input_shape("x", x.shape)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    return y if context.execute_async_v3(0) else None


def test_a_plugin_is_built_serialised_and_run(creator):
    builder, network, config, layer = network_of(Pad([7, 8]))
    gc.collect()  # the network has a clone
    assert isinstance(layer, trt.IPluginV3Layer) and layer.type == trt.LayerType.PLUGIN_V3
    blob = builder.build_serialized_network(network, config)
    assert blob is not None, LOGGER.take()
    assert Pad.seen == ((1,), (8,), (10,))
    assert run(blob, [1, 2, 3], 5).tolist() == [1, 2, 3, 7, 8]
    with pytest.raises(ValueError, match="after its get_output_shapes"):
        Pad.kept[1].is_constant()
    with pytest.raises(ValueError, match="after its get_output_shapes"):
        Pad.kept[0].constant(1)
    del layer, network, builder, config, blob
    gc.collect()


def test_every_clone_is_let_go(creator):
    def whole():
        builder, network, config, layer = network_of(Pad([1]))
        run(builder.build_serialized_network(network, config), [1], 2)

    before = len(ALIVE)
    whole()
    gc.collect()
    # The application's own is not destroyed by the library.
    assert len(ALIVE) == before + 1


def test_a_missing_creator():
    builder, network, config, layer = network_of(Pad([1]))
    blob = builder.build_serialized_network(network, config)
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    assert runtime.deserialize_cuda_engine(blob) is None
    assert "plugin 'PyPad' version '1': the engine needs it" in LOGGER.take()


def test_what_plugins_raise_reaches_the_caller(creator):
    class Raises(Pad):
        where = None

        def clone(self):
            copy = Raises()
            copy.__dict__.update(self.__dict__)
            return copy

        def get_output_shapes(self, *args):
            if Raises.where == "shapes":
                raise KeyError("no shape")
            return super().get_output_shapes(*args)

        def configure_plugin(self, *args):
            if Raises.where == "configure":
                raise RuntimeError("not configured")
            return super().configure_plugin(*args)

        def get_output_data_types(self, types):
            return super().get_output_data_types(types) * (2 if Raises.where == "types" else 1)

    Raises.where = "shapes"
    with pytest.raises(KeyError, match="no shape"):
        network_of(Raises())
    Raises.where = "types"
    with pytest.raises(ValueError, match="returned 2 items, expected 1"):
        network_of(Raises())
    Raises.where = None
    builder, network, config, layer = network_of(Raises())
    Raises.where = "configure"
    with pytest.raises(RuntimeError, match="not configured"):
        builder.build_serialized_network(network, config)
    LOGGER.take()


def test_a_run_that_fails(creator):
    builder, network, config, layer = network_of(Pad([1]))
    blob = builder.build_serialized_network(network, config)
    enqueue = Pad.enqueue
    try:
        def fails(*args):
            raise ZeroDivisionError("no work")
        Pad.enqueue = fails
        with pytest.raises(ZeroDivisionError, match="no work"):
            run(blob, [1], 2)
        Pad.enqueue = lambda *args: 9
        assert run(blob, [1], 2) is None
        assert "IPluginV3OneRuntime::enqueue() returned 9" in LOGGER.take()
    finally:
        Pad.enqueue = enqueue
    assert run(blob, [1], 2).tolist() == [1, 1]


def test_things_that_are_no_plugins():
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2,))
    with pytest.raises(TypeError, match="expected an IPluginV3, got int"):
        network.add_plugin_v3([x], [], 3)
    with pytest.raises(TypeError, match="the array is of float64, the type says float32"):
        trt.PluginField("a", np.zeros(2), trt.PluginFieldType.FLOAT32)
    with pytest.raises(ValueError, match="at most 8"):
        trt.DimsExprs(9)
    field = trt.PluginField("a", b"text")
    assert field.type == trt.PluginFieldType.CHAR and field.size == 4
    fields = trt.PluginFieldCollection([field])
    fields.append(trt.PluginField("b", np.array([1, 2], np.int64)))
    assert len(fields) == 2 and fields[-1].type == trt.PluginFieldType.INT64
    with pytest.raises(IndexError):
        fields[2]


def test_create_plugin_by_the_creator(creator):
    found = trt.get_plugin_registry().get_creator("PyPad", "1", "")
    assert found is creator
    assert [c.name for c in trt.get_plugin_registry().all_creators].count("PyPad") == 1
    plugin = found.create_plugin("p", trt.PluginFieldCollection(
        [trt.PluginField("tail", np.array([5], np.float32))]), trt.TensorRTPhase.BUILD)
    assert plugin.tail.tolist() == [5]


SQUARE = dict(
    name="Square", kernel="square", signature="T[...] -> T[...]", arguments="...",
    grid="ceil_div(..., 128)", block="128", source="""
extern "C" __global__ void square(const T* x, T* y, long long n) {
    long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
""")


def test_a_dimension_name_can_be_taken_back():
    network = trt.Builder(LOGGER).create_network()
    x = network.add_input("x", trt.float32, (-1, 4))
    x.set_dimension_name(0, "batch")
    assert x.get_dimension_name(0) == "batch"
    x.set_dimension_name(0, None)
    assert x.get_dimension_name(0) is None


def test_kernels_of_source_text():
    import ingot
    source = ingot.CudaSource(**SQUARE)
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (4,))
    layer = ingot.add_cuda_source_layer(network, [x], source)
    assert layer.type == trt.LayerType.PLUGIN and tuple(layer.get_output(0).shape) == (4,)
    network.mark_output(layer.get_output(0))
    blob = builder.build_serialized_network(network, builder.create_builder_config())
    assert blob is not None, LOGGER.take()
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    engine = runtime.deserialize_cuda_engine(blob)
    assert engine.create_execution_context() is None
    assert "needs a CUDA device" in LOGGER.take()

    def square(inputs, outputs, arguments):
        assert arguments == [4]
        outputs[0][:] = inputs[0] ** 2

    assert ingot.register_host_kernel("Square", square)
    assert not ingot.register_host_kernel("Square", square)
    context = engine.create_execution_context()
    assert ingot.deregister_host_kernel("Square") and not ingot.deregister_host_kernel("Square")
    values, result = np.array([1, -2, 3, 0.5], np.float32), np.empty(4, np.float32)
    assert context.set_tensor_address("x", values.ctypes.data)
    assert context.set_tensor_address(network.get_output(0).name, result.ctypes.data)
    assert context.execute_async_v3(0) and result.tolist() == [1, 4, 9, 0.25]
    LOGGER.take()
    bad = ingot.CudaSource(**{**SQUARE, "grid": "rows"})
    assert ingot.add_cuda_source_layer(network, [x], bad) is None
    assert "'rows' is not a size of an input" in LOGGER.take()
    fixed = {**SQUARE, "signature": "float32[n] -> float32[n]", "grid": "1", "source":
             'extern "C" __global__ void square(const float* x, float* y) { *y = *x * *x; }'}
    del fixed["arguments"]
    assert network.add_cuda_source_layer([x], **fixed) is not None, LOGGER.take()
    assert network.add_cuda_source_layer([x], **SQUARE, shared_bytes="64") is not None, LOGGER.take()
    assert ingot.register_cuda_source("my.domain", "Square", source)
    assert ingot.deregister_cuda_source("my.domain", "Square")
