# SPDX-License-Identifier: Apache-2.0
"""The Python package: interfaces that Python classes implement, exceptions in them, Ctrl-C."""
import ctypes
import gc
import io
import os
import signal
import threading

import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402
from shim.recorder import Recorder  # noqa: E402

F32 = np.float32


class Collector(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.messages = []

    def log(self, severity, msg):
        self.messages.append((severity, msg))


def relu_network(builder, rank=2):
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2,) * rank)
    y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def engine_bytes(logger=None, mark_debug=False):
    builder = trt.Builder(logger or trt.Logger(trt.Logger.ERROR))
    network = relu_network(builder)
    if mark_debug:
        assert network.mark_debug(network.get_output(0))
    return builder.build_serialized_network(network, builder.create_builder_config())


def context_of(data, logger=None):
    runtime = trt.Runtime(logger or trt.Logger(trt.Logger.ERROR))
    assert runtime.set_device(package.CPU)
    context = runtime.deserialize_cuda_engine(data).create_execution_context()
    x, y = np.array([[1, -2], [-3, 4]], F32), np.zeros((2, 2), F32)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    return context, x, y


def test_loggers_of_python():
    logger = Collector()
    runtime = trt.Runtime(logger)
    assert runtime.deserialize_cuda_engine(b"no engine") is None
    severity, text = logger.messages[-1]
    assert severity == trt.ILogger.Severity.ERROR
    assert text.startswith("IRuntime::deserializeCudaEngine: ")
    assert runtime.logger is logger


def test_the_logger_of_the_library_prints_what_is_bad_enough(capfd):
    logger = trt.Logger(trt.Logger.WARNING)
    logger.log(trt.Logger.INFO, "not shown")
    logger.log(trt.Logger.ERROR, "shown")
    logger.min_severity = trt.Logger.VERBOSE
    logger.log(trt.Logger.VERBOSE, "shown too")
    out, err = capfd.readouterr()
    assert err.endswith("] [TRT] [E] shown\n") and "not shown" not in out + err
    assert out.endswith("] [TRT] [V] shown too\n")


def test_a_subclass_of_logger_may_override_log():
    class Mine(trt.Logger):
        texts = []

        def log(self, severity, msg):
            self.texts.append(msg)

    logger = Mine(trt.Logger.ERROR)
    trt.Runtime(logger).deserialize_cuda_engine(b"no engine")
    assert logger.texts


def test_error_recorders():
    logger, recorder = Collector(), Recorder()
    runtime = trt.Runtime(logger)
    runtime.error_recorder = recorder
    assert runtime.error_recorder is recorder
    assert runtime.deserialize_cuda_engine(b"no engine") is None
    code, text = recorder.errors[0]
    assert isinstance(code, trt.ErrorCodeTRT) and "deserializeCudaEngine" in text
    assert not [m for m in logger.messages if m[0] == trt.ILogger.ERROR]
    runtime.error_recorder = None
    assert runtime.error_recorder is None
    assert runtime.deserialize_cuda_engine(b"no engine") is None
    assert [m for m in logger.messages if m[0] == trt.ILogger.ERROR]


def test_an_exception_in_a_logger_is_raised_by_the_call():
    class Bad(trt.ILogger):
        def log(self, severity, msg):
            if severity <= trt.ILogger.ERROR:
                raise LookupError(msg)

    with pytest.raises(LookupError, match="deserializeCudaEngine"):
        trt.Runtime(Bad()).deserialize_cuda_engine(b"no engine")


def test_a_logger_that_defines_nothing(capfd):
    class Nothing(trt.ILogger):
        pass

    logger = Nothing()
    with pytest.raises(RuntimeError, match="log"):
        trt.Runtime(logger).deserialize_cuda_engine(b"no engine")


def test_profilers():
    class Profiler(trt.IProfiler):
        def __init__(self):
            super().__init__()
            self.times = {}

        def report_layer_time(self, layer_name, ms):
            self.times[layer_name] = ms

    context, _, y = context_of(engine_bytes())
    context.profiler = profiler = Profiler()
    assert context.profiler is profiler
    assert context.execute_async_v3(0)
    assert profiler.times and all(ms >= 0 for ms in profiler.times.values())
    np.testing.assert_array_equal(y, [[1, 0], [0, 4]])


class Monitor(trt.IProgressMonitor):
    def __init__(self, stop=None):
        super().__init__()
        self.calls, self.stop = [], stop

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.calls.append(("start", phase_name, parent_phase, num_steps))

    def step_complete(self, phase_name, step):
        self.calls.append(("step", phase_name, step))
        if callable(self.stop):
            self.stop()
        return self.stop is None or callable(self.stop)

    def phase_finish(self, phase_name):
        self.calls.append(("finish", phase_name))


def build_with(monitor):
    builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
    config = builder.create_builder_config()
    config.progress_monitor = monitor
    assert config.progress_monitor is monitor
    result = builder.build_serialized_network(relu_network(builder), config)
    assert config.progress_monitor is monitor
    return result


def test_progress_monitors():
    monitor = Monitor()
    assert build_with(monitor) is not None
    kinds = [call[0] for call in monitor.calls]
    assert kinds.count("start") == kinds.count("finish") > 0 and "step" in kinds


def test_progress_monitors_stop_builds():
    assert build_with(Monitor(stop=True)) is None


def test_an_exception_in_a_monitor_stops_the_build_and_is_raised():
    def fail():
        raise ZeroDivisionError("in a callback")

    with pytest.raises(ZeroDivisionError, match="in a callback"):
        build_with(Monitor(stop=fail))


def test_ctrl_c_stops_a_build(listens_to_ctrl_c):
    def press():
        os.kill(os.getpid(), signal.SIGINT)

    monitor = Monitor(stop=press)
    with pytest.raises(KeyboardInterrupt):
        build_with(monitor)
    assert sum(call[0] == "step" for call in monitor.calls) <= 2
    assert build_with(Monitor()) is not None


def test_other_threads_run_during_a_build():
    """The GIL is free: a callback that waits for another thread's Python code does not hang."""
    answered = threading.Event()

    def wait():
        thread = threading.Thread(target=answered.set)
        thread.start()
        thread.join(10)
        assert answered.is_set()

    assert build_with(Monitor(stop=wait)) is not None


class Listener(trt.IDebugListener):
    """Copies the shown data on the CPU."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        assert location == trt.TensorLocation.HOST
        count = int(np.prod(shape))
        values = np.ctypeslib.as_array((ctypes.c_float * count).from_address(addr))
        self.seen[name] = (type, tuple(shape), values.copy())
        return True


def test_debug_listeners():
    context, _, _ = context_of(engine_bytes(mark_debug=True))
    listener = Listener()
    assert context.set_debug_listener(listener) and context.get_debug_listener() is listener
    assert context.set_tensor_debug_state("y", True) and context.get_debug_state("y")
    assert context.execute_async_v3(0)
    dtype, shape, values = listener.seen["y"]
    assert dtype == trt.float32 and shape == (2, 2)
    np.testing.assert_array_equal(values, [1, 0, 0, 4])


def test_debug_tensors_inside_a_network():
    """A marked tensor is shown though it would be fused; the unfused ones under their names."""
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2, 2))
    negated = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    negated.name = "negated"
    y = network.add_activation(negated, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert network.mark_debug(negated) and network.is_debug_tensor(negated)
    assert network.mark_unfused_tensors_as_debug_tensors()
    context, _, y = context_of(builder.build_serialized_network(network, builder.create_builder_config()))
    assert context.engine.is_debug_tensor("negated") and context.engine.num_io_tensors == 2
    listener = Listener()
    assert context.set_debug_listener(listener) and context.set_all_tensors_debug_state(True)
    assert context.execute_async_v3(0)
    assert list(listener.seen) == ["negated"]
    np.testing.assert_array_equal(listener.seen["negated"][2], [-1, 2, 3, -4])
    np.testing.assert_array_equal(y, [[0, 2], [3, 0]])
    context.unfused_tensors_debug_state = True
    assert context.execute_async_v3(0)
    assert set(listener.seen) == {"negated", "y"}


class Allocator(trt.IGpuAllocator):
    """Host memory, which the CPU backend requires."""

    def __init__(self):
        super().__init__()
        self.memory, self.taken = {}, 0

    def allocate_async(self, size, alignment, flags, stream):
        array = np.empty(size + 4096, np.uint8)
        address = -(-array.ctypes.data // 4096) * 4096
        self.memory[address] = array
        self.taken += 1
        return address

    def deallocate_async(self, memory, stream):
        return self.memory.pop(memory, None) is not None


def check_run_with(allocator):
    """A run is right, and the allocator has all its memory back."""
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    runtime.set_device(package.CPU)
    runtime.gpu_allocator = allocator
    engine = runtime.deserialize_cuda_engine(engine_bytes())
    context = engine.create_execution_context()
    x, y = np.full((2, 2), 3, F32), np.zeros((2, 2), F32)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0) and y[0, 0] == 3
    del context, engine
    gc.collect()
    assert not allocator.memory


def test_allocators():
    check_run_with(Allocator())


class OldAllocator(trt.IGpuAllocator):
    """In the style of older releases: without streams."""

    def __init__(self):
        super().__init__()
        self.memory, self.taken = {}, 0

    def allocate(self, size, alignment, flags):
        array = np.empty(size + 4096, np.uint8)
        address = -(-array.ctypes.data // 4096) * 4096
        self.memory[address] = array
        self.taken += 1
        return address

    def reallocate(self, address, alignment, new_size):
        return 0

    def deallocate(self, memory):
        return self.memory.pop(memory, None) is not None


class MixedAllocator(OldAllocator):
    """Overrides one method with a stream, and calls its base for the rest."""

    def allocate_async(self, size, alignment, flags, stream):
        assert stream == 0
        return super().allocate_async(size, alignment, flags, stream)


@pytest.mark.parametrize("kind", [OldAllocator, MixedAllocator])
def test_allocators_without_streams(kind):
    check_run_with(kind())


def test_methods_of_allocators_fall_back_to_each_other():
    allocator = OldAllocator()
    address = allocator.allocate_async(64, 256, 0, 0)
    assert address in allocator.memory and allocator.taken == 1
    assert allocator.deallocate_async(address, 0) and not allocator.memory
    bare = trt.IGpuAllocator()
    assert bare.allocate(64, 0, 0) == 0 == bare.allocate_async(64, 0, 0, 0) == bare.reallocate(0, 0, 64)
    assert not bare.deallocate(0) and not bare.deallocate_async(0, 0)


def test_output_allocators():
    class Output(trt.IOutputAllocator):
        def __init__(self):
            super().__init__()
            self.array, self.shape = None, None

        def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
            self.array = np.zeros(size, np.uint8)
            return self.array.ctypes.data

        def notify_shape(self, tensor_name, shape):
            self.shape = tuple(shape)

    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network()
    found = network.add_non_zero(network.add_input("x", trt.float32, (6,))).get_output(0)
    found.name = "y"
    network.mark_output(found)
    data = builder.build_serialized_network(network, builder.create_builder_config())
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    runtime.set_device(package.CPU)
    context = runtime.deserialize_cuda_engine(data).create_execution_context()
    x, output = np.array([0, 1, 0, 2, 3, 0], F32), Output()
    context.set_tensor_address("x", x.ctypes.data)
    assert context.set_output_allocator("y", output)
    assert context.get_output_allocator("y") is output
    assert context.execute_async_v3(0)
    assert output.shape == (1, 3)
    np.testing.assert_array_equal(output.array[:12].view(np.int32), [1, 3, 4])


def test_stream_readers_and_writers():
    class Writer(trt.IStreamWriter):
        def __init__(self):
            super().__init__()
            self.file = io.BytesIO()

        def write(self, data):
            return self.file.write(data)

    class Reader(trt.IStreamReader):
        def __init__(self, data):
            super().__init__()
            self.file = io.BytesIO(data)

        def read(self, size):
            return self.file.read(size)

    class ReaderV2(trt.IStreamReaderV2):
        def __init__(self, data):
            super().__init__()
            self.file = io.BytesIO(data)

        def read(self, num_bytes, stream):
            return self.file.read(num_bytes)

        def seek(self, offset, where):
            self.file.seek(offset, int(where))
            return True

    logger = trt.Logger(trt.Logger.ERROR)
    builder, writer = trt.Builder(logger), Writer()
    network, config = relu_network(builder), builder.create_builder_config()
    assert builder.build_serialized_network_to_stream(network, config, writer)
    data = writer.file.getvalue()
    runtime = trt.Runtime(logger)
    runtime.set_device(package.CPU)
    for reader in (Reader(data), ReaderV2(data)):
        engine = runtime.deserialize_cuda_engine(reader)
        assert engine.num_io_tensors == 2


@pytest.mark.parametrize("name", ["IInt8EntropyCalibrator", "IInt8EntropyCalibrator2",
                                  "IInt8MinMaxCalibrator", "IInt8LegacyCalibrator",
                                  "IInt8MseCalibrator"])
def test_calibrators_know_their_algorithm(name):
    base = getattr(trt, name)
    algorithm = {"IInt8EntropyCalibrator": 1, "IInt8EntropyCalibrator2": 2,
                 "IInt8MinMaxCalibrator": 3, "IInt8LegacyCalibrator": 0,
                 "IInt8MseCalibrator": 100}[name]

    class Mine(base):
        pass

    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    config = builder.create_builder_config()
    config.int8_calibrator = calibrator = Mine()
    assert config.int8_calibrator is calibrator
    assert int(calibrator.get_algorithm()) == algorithm
