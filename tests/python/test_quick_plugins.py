# SPDX-License-Identifier: Apache-2.0
"""Plugins of tensorrt.plugin, of the older generation, and what plugins share."""
import ctypes
import gc
import textwrap

import numpy as np
import pytest
from numpy.typing import NDArray

from shim import package

package.find()

import tensorrt as trt  # noqa: E402
import tensorrt.plugin as trtp  # noqa: E402


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


def network_of(*shapes, dtype=trt.float32, flags=0):
    """(builder, network, inputs); sizes of -1 are 1 to 8, 4 expected."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(flags)
    inputs = [network.add_input(f"x{i}", dtype, shape) for i, shape in enumerate(shapes)]
    return builder, network, inputs


def build(builder, network, outputs):
    for i, tensor in enumerate(outputs):
        tensor.name = f"y{i}"
        network.mark_output(tensor)
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    dynamic = False
    for i in range(network.num_inputs):
        x = network.get_input(i)
        if -1 in tuple(x.shape):
            dynamic = True
            profile.set_shape(x.name, *[[size if n < 0 else n for n in x.shape] for size in (1, 4, 8)])
    if dynamic:
        config.add_optimization_profile(profile)
    blob = builder.build_serialized_network(network, config)
    assert blob is not None, LOGGER.take()
    return bytes(memoryview(blob))


class Memory(trt.IOutputAllocator):
    """Of an output whose size the run decides."""

    def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
        self.values = np.zeros(max(size, 1) // 4 + 1, np.float32)
        return self.values.ctypes.data

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)

    def get(self):
        return self.values[:int(np.prod(self.shape))].reshape(self.shape)


def run(blob, inputs, outputs):
    """Fills `outputs`, arrays or Memory."""
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    engine = runtime.deserialize_cuda_engine(blob)
    assert engine is not None, LOGGER.take()
    context = engine.create_execution_context()
    for i, x in enumerate(inputs):
        context.set_input_shape(f"x{i}", x.shape)
        context.set_tensor_address(f"x{i}", x.ctypes.data)
    for i, y in enumerate(outputs):
        if isinstance(y, Memory):
            context.set_output_allocator(f"y{i}", y)
        else:
            context.set_tensor_address(f"y{i}", y.ctypes.data)
    assert context.execute_async_v3(0), LOGGER.take()


# --- tensorrt.plugin -----------------------------------------------------------------------------

@trtp.register("tests::every")
def every(x: trtp.TensorDesc, number: int, factor: float, flag: bool, text: str, raw: bytes,
          table: NDArray[np.float32], halves: NDArray[np.float16]) -> tuple[trtp.TensorDesc, trtp.TensorDesc]:
    assert x.dtype == trt.float32 and x.ndim == 2
    assert type(number) is int and type(flag) is bool and type(text) is str and type(raw) is bytes
    return x.like(), trtp.from_shape_expr((x.shape_expr[0] * 2 + number, trtp.cdiv(x.shape_expr[1], 2)),
                                          trt.int32)


SEEN = []


@trtp.impl("tests::every")
def every_impl(x: trtp.Tensor, number: int, factor: float, flag: bool, text: str, raw: bytes,
               table: NDArray[np.float32], halves: NDArray[np.float16], outputs: tuple[trtp.Tensor],
               stream: int) -> None:
    SEEN.append((number, factor, flag, text, raw, table.tolist(), halves.dtype.name, halves.tolist(), stream))
    assert tuple(x.shape) == np.asarray(x).shape and x.numel() == np.asarray(x).size
    assert not x.is_aliased and not hasattr(x, "__cuda_array_interface__")
    np.multiply(np.asarray(x), factor, out=np.asarray(outputs[0]))
    np.asarray(outputs[1])[:] = number


ATTRIBUTES = dict(number=3, factor=0.5, flag=True, text="täxt", raw=b"\0\1", table=np.float32([1, 2]),
                  halves=np.float16([0.5]))


def test_a_plugin_is_registered_built_and_run():
    builder, network, (x,) = network_of((-1, 5))
    layer = network.add_plugin(trtp.op.tests.every(x, **ATTRIBUTES))
    assert isinstance(layer, trt.IPluginV3Layer) and layer.num_outputs == 2
    assert tuple(layer.get_output(1).shape) == (-1, 3) and layer.get_output(1).dtype == trt.int32
    assert isinstance(layer.plugin, trt.IPluginV3QuickCore) and layer.plugin.plugin_name == "every"
    blob = build(builder, network, [layer.get_output(0), layer.get_output(1)])
    values = np.arange(10, dtype=np.float32).reshape(2, 5)
    first, second = np.empty((2, 5), np.float32), np.empty((7, 3), np.int32)
    SEEN.clear()
    run(blob, [values], [first, second])
    assert first.tolist() == (values / 2).tolist() and (second == 3).all()
    assert SEEN == [(3, 0.5, True, "täxt", b"\0\1", [1, 2], "float16", [0.5], 0)]


def test_another_process_registers_it_and_loads_the_engine(tmp_path):
    (tmp_path / "scale.py").write_text(textwrap.dedent("""
        import numpy as np, tensorrt as trt, tensorrt.plugin as trtp
        @trtp.register("tests::scaled")
        def describe(x: trtp.TensorDesc, factor: float) -> trtp.TensorDesc:
            return x.like()
        @trtp.impl("tests::scaled")
        def scale(x: trtp.Tensor, factor: float, outputs: tuple[trtp.Tensor], stream: int) -> None:
            np.multiply(x, factor, out=np.asarray(outputs[0]))
        logger = trt.Logger(trt.Logger.ERROR)
    """))
    head = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom scale import *\n"
    engine = tmp_path / "scaled.engine"
    package.run(head + textwrap.dedent(f"""
        builder = trt.Builder(logger)
        network = builder.create_network()
        x = network.add_input("x", trt.float32, (4,))
        layer = network.add_plugin(trtp.op.tests.scaled(x, factor=3.0))
        layer.get_output(0).name = "y"
        network.mark_output(layer.get_output(0))
        blob = builder.build_serialized_network(network, builder.create_builder_config())
        open({str(engine)!r}, "wb").write(memoryview(blob))
    """))
    tail = textwrap.dedent(f"""
        runtime = trt.Runtime(logger)
        runtime.set_device({package.CPU})
        engine = runtime.deserialize_cuda_engine(open({str(engine)!r}, "rb").read())
        if engine is None:
            sys.exit(0)
        context = engine.create_execution_context()
        x, y = np.float32([1, 2, 3, 4]), np.zeros(4, np.float32)
        context.set_tensor_address("x", x.ctypes.data)
        context.set_tensor_address("y", y.ctypes.data)
        assert context.execute_async_v3(0)
        print(y.tolist())
    """)
    assert package.run(head + tail) == "[3.0, 6.0, 9.0, 12.0]\n"
    without = head.replace("from scale import *",
                           "import numpy as np, tensorrt as trt; logger = trt.Logger(trt.Logger.ERROR)")
    assert "plugin 'scaled' version '1' of namespace 'tests': the engine needs it, and no creator" in \
        package.run(without + tail)


def test_tactics_are_timed_and_formats_are_checked():
    used = []

    @trtp.register("tests::tuned")
    def tuned(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    @trtp.autotune("tests::tuned")
    def tuned_autotune(x: trtp.TensorDesc, outputs: tuple[trtp.TensorDesc]) -> list[trtp.AutoTuneCombination]:
        assert x.has_shape and tuple(x.shape) == (6,) and x.shape.opt == (6,) and x.format == trt.TensorFormat.LINEAR
        assert outputs[0].dtype == x.dtype
        return [trtp.AutoTuneCombination("FP32|FP16, FP32|FP16", "LINEAR*HWC, LINEAR", [4, 7])]

    @trtp.impl("tests::tuned")
    def tuned_impl(x, outputs, stream, tactic):
        used.append(tactic)
        np.asarray(outputs[0])[:] = np.asarray(x) + tactic

    builder, network, (x,) = network_of((6,))
    layer = network.add_plugin(trtp.op.tests.tuned(x))
    blob = build(builder, network, [layer.get_output(0)])
    used.clear()
    result = np.empty(6, np.float32)
    run(blob, [np.zeros(6, np.float32)], [result])
    assert set(used) <= {4, 7} and set(result) == {used[-1]}
    builder, network, (x,) = network_of((6,), dtype=trt.int32)
    assert network.add_plugin(trtp.op.tests.tuned(x)) is None
    assert "supportsFormatCombination() refuses input 0 as INT32" in LOGGER.take()


def test_an_output_in_place_of_an_input_and_a_size_that_it_finds_out():
    @trtp.register("tests::add_in_place")
    def describe(x: trtp.TensorDesc, amount: int) -> trtp.TensorDesc:
        return x.aliased()

    @trtp.impl("tests::add_in_place")
    def add(x, amount, outputs, stream):
        assert outputs[0].is_aliased and outputs[0].data_ptr == x.data_ptr
        np.asarray(outputs[0])[:] += amount

    @trtp.register("tests::positive")
    def positive(x: trtp.TensorDesc) -> tuple[trtp.TensorDesc, trtp.TensorDesc]:
        count = x.shape_expr.numel()
        size = trtp.size_tensor(count // 2, count)
        return trtp.from_shape_expr((size.expr(),), x.dtype), size

    @trtp.impl("tests::positive")
    def keep(x, outputs, stream):
        found = np.asarray(x)[np.asarray(x) > 0]
        np.asarray(outputs[1])[...] = len(found)
        ctypes.memmove(outputs[0].data_ptr, found.ctypes.data, found.nbytes)

    builder, network, (x,) = network_of((5,))
    added = network.add_plugin(trtp.op.tests.add_in_place(x, amount=2)).get_output(0)
    layer = network.add_plugin(trtp.op.tests.positive(added))
    blob = build(builder, network, [added, layer.get_output(0), layer.get_output(1)])
    all_of, some, count = np.empty(5, np.float32), Memory(), np.zeros((), np.int32)
    run(blob, [np.float32([-3, -1, 0, -9, 1])], [all_of, some, count])
    assert all_of.tolist() == [-1, 1, 2, -7, 3]
    assert count == 3 and some.get().tolist() == [1, 2, 3]


def test_mistakes_in_functions_are_told():
    def refused(text, register=trtp.register, name="tests::bad"):
        def decorate(function):
            with pytest.raises(ValueError, match=text):
                register(name)(function)
        return decorate

    @refused("parameter x has no type: expected TensorDesc")
    def _(x) -> trtp.TensorDesc: ...

    @refused("tensors come first, then attributes")
    def _(x: trtp.TensorDesc, a: int, y: trtp.TensorDesc) -> trtp.TensorDesc: ...

    @refused("attribute a is <class 'list'>, expected int, float, bool, str, bytes or")
    def _(x: trtp.TensorDesc, a: list) -> trtp.TensorDesc: ...

    @refused("the function's result is None, expected TensorDesc or")
    def _(x: trtp.TensorDesc): ...

    @refused("no attribute can be called stream")
    def _(x: trtp.TensorDesc, stream: int) -> trtp.TensorDesc: ...

    @refused("plugin tests::every is registered already", name="tests::every")
    def _(x: trtp.TensorDesc) -> trtp.TensorDesc: ...

    @refused(r"impl takes \(x, outputs\), expected \(x, outputs, stream\)", trtp.impl, "tests::every")
    def _(x, outputs): ...

    @refused(r"autotune takes \(y, outputs\), expected \(x, outputs\)", trtp.autotune, "tests::every")
    def _(y, outputs): ...

    with pytest.raises(ValueError, match="plugin tests::none is not registered"):
        trtp.impl("tests::none")
    for wrong in ("plain", "::x", "trt::x", "a.b::c"):
        with pytest.raises(ValueError, match="expected NAMESPACE::NAME without dots"):
            trtp.register(wrong)
    with pytest.raises(AttributeError, match="no plugin of namespace 'nowhere' is registered"):
        trtp.op.nowhere


def test_mistakes_in_calls_are_told():
    builder, network, (x,) = network_of((2, 5))
    for change, text in [({"number": 2.0}, "attribute number is float, expected int"),
                         ({"flag": 1}, "attribute flag is int, expected bool"),
                         ({"table": np.zeros(2)}, "attribute table is float64, expected an array of float32"),
                         ({"more": 1}, "the attributes are .*'more'.*, expected")]:
        with pytest.raises(ValueError, match=text):
            trtp.op.tests.every(x, **(ATTRIBUTES | change))
    with pytest.raises(ValueError, match=r"got \['int'\], expected 1 tensors \(x\)"):
        trtp.op.tests.every(3, **ATTRIBUTES)
    with pytest.raises(TypeError, match="takes .inputs, shape inputs, plugin. or a function"):
        network.add_plugin(3)
    with pytest.raises(ValueError, match="kernels that are compiled ahead are not supported"):
        network.add_plugin(trtp.op.tests.every(x, **ATTRIBUTES), aot=True)
    assert network.add_plugin(trtp.op.tests.every(x, **ATTRIBUTES), aot=False) is not None

    @trtp.register("tests::unfinished", lazy_register=True)
    def unfinished(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    assert trt.get_plugin_registry().get_creator("unfinished", "1", "tests") is None
    layer = trtp.op.tests.unfinished(x)
    assert trt.get_plugin_registry().get_creator("unfinished", "1", "tests") is not None
    with pytest.raises(ValueError, match="plugin tests::unfinished has no implementation: define it by"):
        network.add_plugin(layer)
    LOGGER.take()


def test_combinations_expand_as_their_texts_say():
    def expanded(count, *texts, **more):
        return [[(str(t.name), str(f.name)) for t, f in one]
                for one in trtp.AutoTuneCombination(*texts, **more)._expanded(count)]
    assert [[t for t, _ in one] for one in expanded(3, "FP32|FP16, FP32|FP16, FP32*INT8")] == [
        ["FLOAT", "FLOAT", "FLOAT"], ["FLOAT", "FLOAT", "INT8"],
        ["HALF", "HALF", "FLOAT"], ["HALF", "HALF", "INT8"]]
    by_place = trtp.AutoTuneCombination()
    by_place.pos([0, 1], "FP32|FP16")
    by_place.pos(2, "BF16", "HWC8")
    assert len(by_place._expanded(3)) == 2
    with pytest.raises(ValueError, match="types of position 2 are given already"):
        by_place.pos(2, "FP32")
    for count, text, error in [(2, "FP32", "has to give types of 2"), (1, "FP99", "no data type 'FP99'"),
                               (1, "FP32|FP16*INT8", "has both"), (2, "FP32|FP16, FP32|FP16|BF16", "entries")]:
        with pytest.raises(ValueError, match=error):
            expanded(count, text)


# --- the older generation ------------------------------------------------------------------------

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
