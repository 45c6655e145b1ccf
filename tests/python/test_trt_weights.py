# SPDX-License-Identifier: Apache-2.0
"""Weights that leave memory and come back: IWeightsManager, ICudaEngine.unload_weights(),
Refitter.release_refit_resources()."""
import gc
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper

from shim import package

package.find()

import tensorrt as trt  # noqa: E402

from shim.recorder import Recorder  # noqa: E402

LOGGER = trt.Logger(trt.Logger.ERROR)
SIDE = 8
VALUES = np.arange(2 * SIDE, dtype=np.float32).reshape(2, SIDE)


def weights_of(seed=0, side=SIDE):
    return np.random.default_rng(seed).standard_normal((side, side)).astype(np.float32)


def blob_of(weights, *flags):
    """x @ weights + 1, as an engine."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    side = len(weights)
    x = network.add_input("x", trt.float32, (2, side))
    w = network.add_constant((side, side), weights)
    w.name = "w"
    one = network.add_constant((1, 1), np.ones((1, 1), np.float32))
    one.name = "one"
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(x, none, w.get_output(0), none).get_output(0)
    y = network.add_elementwise(product, one.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    return builder.build_serialized_network(network, config)


def engine_of(blob, deferred=False):
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    runtime.defer_weights_loading = deferred
    runtime.error_recorder = recorder = Recorder()
    engine = runtime.deserialize_cuda_engine(blob)
    assert engine is not None
    return engine, recorder


def run(context, values=VALUES):
    """None when it fails."""
    result = np.full(values.shape, np.nan, np.float32)
    context.set_tensor_address("x", values.ctypes.data)
    context.set_tensor_address("y", result.ctypes.data)
    return result if context.execute_async_v3(0) else None


def text_of(recorder):
    text = "\n".join(desc for _, desc in recorder.errors)
    recorder.clear()
    return text


HOST = trt.TensorLocation.HOST


@pytest.mark.parametrize("location", [HOST, trt.TensorLocation.DEVICE])
def test_weights_are_saved_unloaded_and_restored(location):
    weights = weights_of()
    expected = VALUES @ weights + 1
    engine, recorder = engine_of(blob_of(weights, trt.BuilderFlag.REFIT))
    context = engine.create_execution_context()
    np.testing.assert_allclose(run(context), expected, 1e-5, 1e-5)
    manager = engine.create_weights_manager()
    size = manager.get_size()
    assert size >= weights.nbytes and size % 256 == 0
    saved = np.full(size, 7, np.uint8)
    assert manager.save_to_buffer(saved.ctypes.data, size, location, 0)
    assert weights.tobytes() in saved.tobytes() and 7 not in saved[weights.nbytes + 300:]

    assert engine.weights_loaded and manager.unload(0) and not engine.weights_loaded
    assert run(context) is None
    assert "the weights are unloaded: call IWeightsManager::restoreFromBuffer() first" in text_of(recorder)
    assert engine.create_execution_context() is None
    assert "the weights are unloaded" in text_of(recorder)
    assert not manager.unload(0) and "the weights are unloaded" in text_of(recorder)
    assert not manager.save_to_buffer(saved.ctypes.data, size, location, 0)
    assert "the weights are unloaded" in text_of(recorder)
    # Values set meanwhile are used afterwards.
    times = []

    class Profiler(trt.IProfiler):
        def report_layer_time(self, layer_name, ms):
            times.append(layer_name)

    context.profiler = profiler = Profiler()

    assert not manager.restore_from_buffer(saved.ctypes.data, size - 1, location, 0)
    assert f"the buffer has {size - 1} bytes, expected getSize(), which is {size}" in text_of(recorder)
    assert manager.restore_from_buffer(saved.ctypes.data, size, location, 0) and engine.weights_loaded
    saved[:] = 0  # it was copied
    np.testing.assert_allclose(run(context), expected, 1e-5, 1e-5)
    assert times and context.profiler is profiler
    assert not manager.restore_from_buffer(saved.ctypes.data, size, location, 0)
    assert "the engine has weights: call unload() first" in text_of(recorder)


def test_the_manager_outlives_the_engine_and_fills_others():
    first, second = weights_of(1), weights_of(2)
    engine, _ = engine_of(blob_of(first, trt.BuilderFlag.REFIT))
    manager = engine.create_weights_manager()
    del engine
    gc.collect()

    class Writer(trt.IStreamWriter):
        def __init__(self):
            super().__init__()
            self.pieces = []

        def write(self, data):
            self.pieces.append(bytes(data))
            return len(data)

    writer = Writer()
    assert manager.save_to_stream(writer, 0)
    saved = np.frombuffer(b"".join(writer.pieces), np.uint8)
    assert len(saved) == manager.get_size()
    for flags in ([trt.BuilderFlag.STRIP_PLAN, trt.BuilderFlag.REFIT], [trt.BuilderFlag.REFIT]):
        other, _ = engine_of(blob_of(second, *flags))
        filled = other.create_weights_manager()
        if trt.BuilderFlag.STRIP_PLAN not in flags:
            assert filled.unload(0)
        assert filled.restore_from_buffer(saved.ctypes.data, len(saved), HOST, 0)
        np.testing.assert_allclose(run(other.create_execution_context()), VALUES @ first + 1, 1e-5, 1e-5)


def test_a_writer_that_fails_and_what_is_not_supported():
    engine, recorder = engine_of(blob_of(weights_of(), trt.BuilderFlag.REFIT))
    manager = engine.create_weights_manager()

    class Full(trt.IStreamWriter):
        def write(self, data):
            return 0

    assert not manager.save_to_stream(Full(), 0)
    assert "the writer took 0 of 256 bytes after 0" in text_of(recorder)
    assert not manager.restore_from_vmm_allocation(1, 0, 256, 0)
    assert "memory of others is not mapped: restoreFromBuffer() copies from it" in text_of(recorder)
    plain, recorder = engine_of(blob_of(weights_of()))
    assert plain.create_weights_manager() is None
    assert "the engine's weights cannot be taken out: build it with kREFIT" in text_of(recorder)


def resident():
    """Resident bytes of this process."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def in_new_process(function):
    """The number that this file's `function` returns. (malloc serves even the largest requests from free pieces of its
    heap, and keeps those: in the process of other tests, what is freed need not leave resident memory.)"""
    code = f"import test_trt_weights; print(test_trt_weights.{function.__name__}())"
    done = subprocess.run([sys.executable, "-c", code], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


def freed_by_unloading():
    """Bytes that unloading weights of 64 MiB gives back."""
    side = 4096
    weights = weights_of(3, side)
    values = np.ones((2, side), np.float32)
    engine, _ = engine_of(blob_of(weights, trt.BuilderFlag.REFIT))
    context = engine.create_execution_context()
    assert run(context, values) is not None
    manager = engine.create_weights_manager()
    before = resident()
    assert manager.unload(0)
    return before - resident()


def test_unloading_frees_memory():
    assert in_new_process(freed_by_unloading) > 1.9 * 2**26, "the weights, and their copy in a kernel's layout"


def test_deferred_weights_are_unloaded_and_loaded_again():
    weights = weights_of()
    blob = bytes(memoryview(blob_of(weights)))
    engine, recorder = engine_of(blob, deferred=True)
    context = engine.create_execution_context()
    assert not engine.unload_weights() and "the weights are not loaded" in text_of(recorder)
    for _ in range(2):
        assert run(context) is None and "call ICudaEngine::loadWeights() first" in text_of(recorder)
        assert engine.load_weights(blob) and engine.weights_loaded
        np.testing.assert_allclose(run(context), VALUES @ weights + 1, 1e-5, 1e-5)
        assert engine.unload_weights() and not engine.weights_loaded
    assert not engine.load_weights(blob[:-1]) and "belong to another engine" in text_of(recorder)
    plain, recorder = engine_of(blob)
    assert not plain.unload_weights()
    assert "the weights came with the engine: call IRuntime::setDeferredWeightsLoading(true)" in \
        text_of(recorder)


def test_unloading_undoes_a_refit():
    weights = weights_of()
    blob = bytes(memoryview(blob_of(weights, trt.BuilderFlag.REFIT)))
    engine, _ = engine_of(blob, deferred=True)
    assert engine.load_weights(blob)
    refitter = trt.Refitter(engine, LOGGER)
    assert refitter.set_named_weights("w.constant", weights_of(5)) and refitter.refit_cuda_engine()
    context = engine.create_execution_context()
    np.testing.assert_allclose(run(context), VALUES @ weights_of(5) + 1, 1e-5, 1e-5)
    assert engine.unload_weights() and engine.load_weights(blob)
    np.testing.assert_allclose(run(context), VALUES @ weights + 1, 1e-5, 1e-5)


def freed_by_releasing():
    """Bytes that the release of a refitter's weights, 64 MiB from a model, gives back."""
    side = 4096
    weights = weights_of(4, side)

    def model(values):
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, side])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, side])],
            [onnx.numpy_helper.from_array(values, "w")])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                 ir_version=8).SerializeToString()

    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    assert trt.OnnxParser(network, LOGGER).parse(model(weights))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine, _ = engine_of(builder.build_serialized_network(network, config))
    del builder, network, config
    refitter = trt.Refitter(engine, LOGGER)
    assert trt.OnnxParserRefitter(refitter, LOGGER).refit_from_bytes(model(weights * 2))
    before = resident()
    assert refitter.release_refit_resources()
    freed = before - resident()
    values = np.ones((2, side), np.float32)
    for _ in range(2):
        np.testing.assert_allclose(run(engine.create_execution_context(), values), values @ weights * 2,
                                   1e-3, 1e-2)
        assert refitter.refit_cuda_engine()  # the engine has them
    assert refitter.set_named_weights("w", weights) and refitter.release_refit_resources()
    assert refitter.refit_cuda_engine()  # they were set, and not refitted since
    np.testing.assert_allclose(run(engine.create_execution_context(), values), values @ weights, 1e-3, 1e-2)
    return freed


def test_refit_resources_are_released():
    """Weights that a refitter read from a model are copies of its own, until they are released."""
    assert in_new_process(freed_by_releasing) > 0.9 * 2**26


def test_the_dlas_strategy_is_kept():
    runtime = trt.Runtime(LOGGER)
    strategy = trt.DLAWorkspaceAllocationStrategy
    assert runtime.dla_workspace_allocation_strategy == strategy.DEFAULT
    runtime.dla_workspace_allocation_strategy = strategy.SHARED_STATIC
    assert runtime.dla_workspace_allocation_strategy == strategy.SHARED_STATIC
