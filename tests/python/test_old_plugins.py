# SPDX-License-Identifier: Apache-2.0
"""Plugins of the older generation, written in Python; shared plugins; names of that generation."""
import ctypes
import gc

import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402
from shim.networks import LOGGER, build, network_of, run  # noqa: E402


ALIVE = []


class Shift(trt.IPluginV2DynamicExt):
    """y = x + amount."""

    def __init__(self, amount=0.0):
        super().__init__()
        self.num_outputs, self.plugin_type, self.plugin_version = 1, "Shift", "1"
        self.plugin_namespace = "tests"
        self.amount = amount
        self.configured = None
        ALIVE.append(self.amount)

    def get_output_datatype(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, output_index, inputs, expr_builder):
        return trt.DimsExprs(inputs[0])

    def supports_format_combination(self, pos, in_out, num_inputs):
        assert num_inputs == 1 and len(in_out) == 2
        return in_out[pos].type == trt.float32 and in_out[pos].format == trt.TensorFormat.LINEAR

    def configure_plugin(self, inp, out):
        self.configured = tuple(inp[0].max)

    def get_workspace_size(self, inp, out):
        return 64

    def serialize(self):
        return np.float32(self.amount).tobytes()

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        assert workspace != 0 and self.configured is not None
        count = int(np.prod(tuple(input_desc[0].dims)))
        x, y = (np.ctypeslib.as_array(ctypes.cast(address[0], ctypes.POINTER(ctypes.c_float)), (count,))
                for address in (inputs, outputs))
        y[:] = x + self.amount

    def clone(self):
        copy = Shift(self.amount)
        copy.configured = self.configured
        return copy

    def destroy(self):
        ALIVE.pop()


class ShiftCreator(trt.IPluginCreator):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "Shift", "1", ""
        self.field_names = trt.PluginFieldCollection([trt.PluginField("amount", np.zeros(0, np.float32))])

    def create_plugin(self, name, field_collection):
        return Shift(float(field_collection[0].data[0]))

    def deserialize_plugin(self, name, serialized_plugin):
        return Shift(float(np.frombuffer(serialized_plugin, np.float32)[0]))


def test_an_old_plugin_is_built_serialised_and_run():
    creator = ShiftCreator()
    registry = trt.get_plugin_registry()
    assert registry.register_creator(creator, "tests") and creator.plugin_namespace == "tests"
    try:
        assert registry.get_creator("Shift", "1", "tests") is creator
        ALIVE.clear()

        def whole():
            builder, network, (x,) = network_of((-1, 2))
            plugin = creator.create_plugin("p", trt.PluginFieldCollection(
                [trt.PluginField("amount", np.float32([2.5]))]))
            assert plugin.serialize() == np.float32(2.5).tobytes() and plugin.tensorrt_version >> 24 == 3
            layer = network.add_plugin_v2([x], plugin)
            assert isinstance(layer, trt.IPluginV2Layer) and isinstance(layer.plugin, Shift)
            assert layer.plugin is not plugin and layer.plugin.amount == 2.5
            blob = build(builder, network, [layer.get_output(0)])
            result = np.empty((3, 2), np.float32)
            run(blob, [np.ones((3, 2), np.float32)], [result])
            assert (result == 3.5).all()

        whole()
        gc.collect()
        assert len(ALIVE) == 1  # the application's own: the library let every clone go
    finally:
        assert registry.deregister_creator(creator)


def test_what_old_plugins_raise_reaches_the_caller():
    class Raises(Shift):
        def get_output_dimensions(self, output_index, inputs, expr_builder):
            raise KeyError("no shape")

        def clone(self):
            return Raises()

    class Bare(trt.IPluginV2DynamicExt):
        pass

    builder, network, (x,) = network_of((2,))
    with pytest.raises(KeyError, match="no shape"):
        network.add_plugin_v2([x], Raises())
    with pytest.raises(Exception, match="clone"):
        network.add_plugin_v2([x], Bare())
    with pytest.raises(NotImplementedError, match="Bare has to define this method"):
        Bare().get_output_datatype(0, [])
    LOGGER.take()


# --- what plugins share --------------------------------------------------------------------------

def test_resources_are_cloned_shared_and_released():
    alive = []

    class Table(trt.IPluginResource):
        def __init__(self):
            super().__init__()
            self.values = None

        def clone(self):
            copy = Table()
            copy.values = [1, 2, 3]
            alive.append(copy.values)
            return copy

        def release(self):
            alive.remove(self.values)

    registry = trt.get_plugin_registry()
    first = registry.acquire_plugin_resource("tests.table", Table())
    gc.collect()
    assert first.values == [1, 2, 3] and len(alive) == 1
    assert registry.acquire_plugin_resource("tests.table", Table()) is first and len(alive) == 1
    assert registry.release_plugin_resource("tests.table") == 0 and len(alive) == 1
    assert registry.release_plugin_resource("tests.table") == 0 and not alive
    assert registry.release_plugin_resource("tests.table") != 0
    assert isinstance(first, trt.IVersionedInterface)
    assert first.api_language == trt.APILanguage.PYTHON and first.interface_info.kind == "IPluginResource"

    class Breaks(Table):
        def clone(self):
            raise ValueError("no table")

    with pytest.raises(ValueError, match="no table"):
        registry.acquire_plugin_resource("tests.other", Breaks())


def test_lists_of_fields_behave_as_lists():
    def field(name):
        return trt.PluginField(name, np.int32([1, 2, 3]))
    fields = trt.PluginFieldCollection([field("a")])
    fields.extend(trt.PluginFieldCollection([field("b"), field("c")]))
    fields.insert(0, field("z"))
    fields[1] = field("A")
    assert [f.name for f in fields] == ["z", "A", "b", "c"] and [f.name for f in fields[1:3]] == ["A", "b"]
    assert fields.pop().name == "c" and fields.pop(0).name == "z" and len(fields) == 2
    short = fields[0]
    short.size = 2
    assert short.data.tolist() == [1, 2]
    with pytest.raises(ValueError, match="the size is 3, the array has 2 elements"):
        short.size = 3
    fields.clear()
    with pytest.raises(IndexError):
        fields.pop()


def test_names_of_the_newest_api_do_what_they_say():
    builder, network, (x,) = network_of((1, 3, 1, -1))
    assert network.builder is builder
    squeezed = network.add_squeeze(x)
    blob = build(builder, network, [squeezed.get_output(0)])
    result = np.empty((3, 2), np.float32)
    values = np.arange(6, dtype=np.float32).reshape(1, 3, 1, 2)
    run(blob, [values], [result])
    assert result.tolist() == values.reshape(3, 2).tolist()
    dims = trt.Dims([1, 2, 3])
    dims[1:] = (7, 8)
    assert tuple(dims) == (1, 7, 8)
    with pytest.raises(ValueError, match="as many sizes as it has"):
        dims[1:] = (7,)
    assert trt.LayerType.KV_CACHE_UPDATE == 54 and trt.LayerType["KV_CACHE_UPDATE"] is trt.LayerType.KVCACHE_UPDATE
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    engine = runtime.deserialize_cuda_engine(blob)
    assert engine.create_execution_context(runtime_config=None) is not None
    assert engine.get_engine_stat() == engine.get_engine_stat(trt.EngineStat.TOTAL_WEIGHTS_SIZE)
    assert trt.get_builder_plugin_registry() is not None
