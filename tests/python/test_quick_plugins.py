# SPDX-License-Identifier: Apache-2.0
"""Plugins of tensorrt.plugin."""
import ctypes
import textwrap

import numpy as np
import pytest
from numpy.typing import NDArray

from shim import package

package.find()

import tensorrt as trt  # noqa: E402
import tensorrt.plugin as trtp  # noqa: E402
from shim.networks import LOGGER, Memory, build, network_of, run  # noqa: E402


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
