# SPDX-License-Identifier: Apache-2.0
"""ingot.compile(): a model as a function of arrays."""
import dataclasses
import os
import pathlib
import threading
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ingot import _arrays, _cuda, _ingot
from ingot._inputs import by_name, host_values
from ingot._types import nptype, storage

# Inputs of one run: one array, arrays in their order, or by name.
Sample = typing.Any
# One shape, or the smallest, the best and the largest.
Shapes = Sequence[int] | Sequence[Sequence[int]]
MakesShapes = Callable[[list[tuple[str, tuple[int, ...]]]], Mapping[str, Shapes]]

_PRIORITIES = ("low", "normal", "high")
_DEVICES = {"auto": 0, "gpu": 1, "cuda": 1, "cpu": 2}


class _Log(_ingot.ILogger):
    """Keeps errors for the texts of exceptions; other messages go to another logger, and errors
    too if it is the caller's."""

    def __init__(self, logger: _ingot.ILogger | None) -> None:
        super().__init__()
        self._given = logger is not None
        self._other = logger or _ingot.Logger(_ingot.Logger.WARNING)
        self._errors: list[str] = []
        self._lock = threading.Lock()

    def log(self, severity: _ingot.ILogger.Severity, msg: str) -> None:
        is_error = severity <= _ingot.ILogger.ERROR
        if is_error:
            with self._lock:
                self._errors.append(msg)
        if self._given or not is_error:
            self._other.log(severity, msg)

    def take(self) -> str:
        with self._lock:
            text = "; ".join(self._errors)
            self._errors.clear()
        return text or "no message"


def _sizes(what: str, shape: Iterable[int], errors: _Log) -> tuple[int, ...]:
    """Errors: ValueError with the library's reason where it has no shape."""
    try:
        return tuple(shape)
    except ValueError:
        raise ValueError(f"{what} has no shape: {errors.take()}") from None


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output: name, shape (-1: known only at run time), DataType."""
    name: str
    shape: tuple[int, ...]
    dtype: _ingot.DataType


@dataclasses.dataclass(frozen=True)
class NotFinite:
    """A layer's result, or an input, that holds infinity or NaN."""
    text: str
    """All of it as a sentence."""
    layer: str
    """The layer's name: "'conv_1'", or "input 'x'"."""
    value: str
    """"nan", "inf" or "-inf": the first element that is not finite."""
    index: tuple[int, ...]
    """The position of that element."""
    shape: tuple[int, ...]
    """The shape of the result."""
    count: int
    """Elements of the result that are not finite."""
    arises: bool
    """All that the layer reads is finite."""


class _Memory(_ingot.IOutputAllocator):
    """Memory for an output whose shape is known only after the run."""

    def __init__(self, kind: str, dtype: _ingot.DataType, gpu: int | None, stream: int) -> None:
        super().__init__()
        self.kind, self.dtype, self.gpu, self.stream = kind, dtype, gpu, stream
        self.made: typing.Any = None
        self.shape: tuple[int, ...] = ()

    def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int,
                                stream: int) -> int:
        del tensor_name, memory, alignment, stream
        count = -(-size // storage(self.dtype).itemsize)
        self.made, address = _arrays.empty(self.kind, (max(count, 1),), self.dtype, self.gpu,
                                           self.stream)
        return address

    def notify_shape(self, tensor_name: str, shape: Iterable[int]) -> None:
        del tensor_name
        self.shape = tuple(shape)

    def result(self) -> typing.Any:
        count = int(np.prod(self.shape, dtype=np.int64))
        if self.made is None:
            self.made, _ = _arrays.empty(self.kind, (1,), self.dtype, self.gpu, self.stream)
        if isinstance(self.made, _arrays.DeviceTensor):
            self.made.shape = self.shape
            return self.made
        return self.made[:count].reshape(self.shape)


class CompiledModel:
    """A model that runs by being called.

        y = model(x)            # one array for one output, a tuple for several
        y = model(image=x)      # inputs by name

    Takes and returns arrays of numpy, torch, CuPy, JAX or any library that speaks DLPack; outputs
    are of the library of the first input. On the CPU, dense arrays are not copied. On a GPU,
    tensors in its memory are not copied, and the run is queued on the caller's stream: `stream=`,
    else the current stream of torch or CuPy, else the default stream; arrays in host memory are
    copied there and back, and the call waits.

    Threads: any, each has a context of its own.
    """

    engine: _ingot.ICudaEngine
    """The engine, with TensorRT's methods."""
    inputs: list[TensorSpec]
    """Inputs in their order."""
    outputs: list[TensorSpec]
    """Outputs in their order."""
    defaults: dict[str, np.ndarray[typing.Any, typing.Any]]
    """By name, the values of inputs that a call may leave out."""

    def __init__(self, engine: _ingot.ICudaEngine, errors: _Log, gpu: int | None,
                 priority: str = "normal") -> None:
        self.engine, self._priority = engine, priority
        self._errors, self._gpu, self._local = errors, gpu, threading.local()
        names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
        specs = [TensorSpec(name, _sizes(f"tensor '{name}'", engine.get_tensor_shape(name), errors),
                            engine.get_tensor_dtype(name)) for name in names]
        is_input = [engine.get_tensor_mode(name) == _ingot.TensorIOMode.INPUT for name in names]
        self.inputs = [spec for spec, first in zip(specs, is_input) if first]
        self.outputs = [spec for spec, first in zip(specs, is_input) if not first]
        found = {spec.name: engine.get_input_default(spec.name) for spec in self.inputs}
        self.defaults = {name: value for name, value in found.items() if value is not None}
        self._on_host = {name: engine.get_tensor_location(name) == _ingot.TensorLocation.HOST
                         for name in names}

    @property
    def device(self) -> str:
        """Where it runs: "gpu" or "cpu"."""
        return "cpu" if self._gpu is None else "gpu"

    @property
    def device_error(self) -> str | None:
        """Why the device is lost to this process, which has to end: every later run fails. None
        while it is sound, which it is after runs that were refused or out of memory."""
        return self.engine.device_error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the engine; ingot.compile(path) reads it. Errors: OSError, RuntimeError."""
        blob = self.engine.serialize()
        if blob is None:
            raise RuntimeError(f"the engine could not be serialized: {self._errors.take()}")
        pathlib.Path(path).write_bytes(blob)

    def __repr__(self) -> str:
        def text(specs: list[TensorSpec]) -> str:
            return ", ".join(f"{s.name}: {s.dtype.name}{list(s.shape)}" for s in specs)
        return f"<ingot.CompiledModel {text(self.inputs)} -> {text(self.outputs)}, {self.device}>"

    def __call__(self, *arrays: typing.Any, stream: typing.Any = None, **named: typing.Any) -> typing.Any:
        """Runs once: inputs in their order or by name, but for those with defaults; one array for one
        output, a tuple for several.

        stream: a CUDA stream of torch, CuPy or cuda-python, or its address as an integer.
        Errors: TypeError for inputs of a wrong number, name or type, ValueError for shapes that do
        not fit, RuntimeError when the run fails.
        """
        values = by_name([spec.name for spec in self.inputs], arrays, named, self.defaults)
        first = next(iter(values.values()), None)
        kind = _arrays.kind_of(first) if first is not None else "numpy"
        handle = 0 if self._gpu is None else _arrays.stream_of(stream, kind, self._gpu)
        with _cuda.current(self._gpu):
            return self._run(kind, handle, values)

    def find_not_finite(self, *arrays: typing.Any, **named: typing.Any) -> list[NotFinite]:
        """Runs once and looks at every float value that is computed on the way.

        Takes inputs as a call does; arrays of a GPU are refused. Slower than a run, and takes more
        memory: for finding out where numbers overflow.
        Returns [] when all is finite, else the first layer that gives infinity or NaN, and behind
        it, where that is another one, the first layer that gives NaN.
        Errors: TypeError for inputs of a wrong number, name or type, RuntimeError when the run
        fails or shapes do not fit.
        """
        values = by_name([spec.name for spec in self.inputs], arrays, named, self.defaults)
        given, held = host_values([(spec.name, spec.dtype) for spec in self.inputs], values)
        with _cuda.current(self._gpu):
            found = _ingot._find_not_finite(self.engine, given)
        del held
        if found is None:
            raise RuntimeError(f"the run failed: {self._errors.take()}")
        return [NotFinite(*each) for each in found]

    def _run(self, kind: str, handle: int, values: dict[str, typing.Any]) -> typing.Any:
        context = self._context()
        held = [self._set_input(context, spec, values[spec.name], handle) for spec in self.inputs]
        results: list[typing.Any] = []
        back: list[typing.Any] = []
        for spec in self.outputs:
            results.append(self._set_output(context, spec, kind, handle, back))
        if not context.execute_async_v3(handle):
            raise RuntimeError(f"the run failed: {self._errors.take()}")
        for host, memory in back:
            _cuda.copy(_cuda.DEVICE_TO_HOST, host.ctypes.data, memory.address, host.nbytes, handle)
        if back or (self._gpu is not None and kind == "numpy"):
            _cuda.synchronize(handle)
        del held
        done = [result.result() if isinstance(result, _Memory) else result for result in results]
        done = [_arrays.finished(kind, result) for result in done]
        return done[0] if len(done) == 1 else tuple(done)

    def _context(self) -> _ingot.IExecutionContext:
        context: _ingot.IExecutionContext | None = getattr(self._local, "context", None)
        if context is None:
            config = self.engine.create_runtime_config()
            if config is not None:
                config.priority = self._priority
                context = self.engine.create_execution_context(config)
            if context is None:
                raise RuntimeError(f"no context could be made: {self._errors.take()}")
            self._local.context = context
        return context

    def _set_input(self, context: _ingot.IExecutionContext, spec: TensorSpec, value: typing.Any,
                   stream: int) -> object:
        """Returns the objects that must live until the run is done."""
        what = f"input '{spec.name}'"
        array = _arrays.from_any(what, value, stream)
        if array.dtype != spec.dtype:
            raise TypeError(f"{what}: got {array.dtype.name}, expected {spec.dtype.name}")
        fits = len(array.shape) == len(spec.shape) and all(
            size in (-1, found) for size, found in zip(spec.shape, array.shape))
        if not fits:
            raise ValueError(f"{what}: got shape {list(array.shape)}, expected {list(spec.shape)}")
        if -1 in spec.shape and not context.set_input_shape(spec.name, array.shape):
            raise ValueError(f"{what}: shape {list(array.shape)} is refused: {self._errors.take()}")
        gpu = None if self._on_host[spec.name] else self._gpu
        if array.on_gpu and gpu is None:
            raise ValueError(f"{what}: got a tensor in GPU memory, expected one in host memory")
        held: object = array
        address = array.address
        if gpu is not None and not array.on_gpu:
            size = int(np.prod(array.shape, dtype=np.int64)) * storage(array.dtype).itemsize
            memory = _cuda.Memory(size, gpu, stream)
            _cuda.copy(_cuda.HOST_TO_DEVICE, memory.address, address, size, stream)
            held, address = (array, memory), memory.address
        if not context.set_tensor_address(spec.name, address):
            raise RuntimeError(f"{what}: {self._errors.take()}")
        return held

    def _set_output(self, context: _ingot.IExecutionContext, spec: TensorSpec, kind: str,
                    stream: int, back: list[typing.Any]) -> typing.Any:
        """Returns the run's outputs; `back` receives the copies to make afterwards."""
        gpu = None if self._on_host[spec.name] else self._gpu
        shape = _sizes(f"output '{spec.name}'", context.get_tensor_shape(spec.name), self._errors)
        made: typing.Any
        if -1 in shape:
            made = _Memory("dlpack" if gpu is not None and kind == "numpy" else kind, spec.dtype,
                           gpu, stream)
            if not context.set_output_allocator(spec.name, made):
                raise RuntimeError(f"output '{spec.name}': {self._errors.take()}")
            return made
        if gpu is not None and kind == "numpy":
            made = np.empty(shape, nptype(spec.dtype))
            memory = _cuda.Memory(made.nbytes, gpu, stream)
            back.append((made, memory))
            address = memory.address
        else:
            made, address = _arrays.empty(kind, shape, spec.dtype, gpu, stream)
        context.set_tensor_address(spec.name, address)
        return made


def _shape_triple(name: str, given: typing.Any) -> list[tuple[int, ...]]:
    """[min, opt, max] of a shape or of three."""
    given = list(given)
    if all(isinstance(size, (int, np.integer)) for size in given):
        return [tuple(given)] * 3
    if len(given) == 3:
        return [tuple(shape) for shape in given]
    raise ValueError(f"shapes['{name}']: got {given}, expected a shape or (min, opt, max)")


def _inputs(network: _ingot.INetworkDefinition,
            errors: _Log) -> list[tuple[str, tuple[int, ...]]]:
    tensors = [network.get_input(i) for i in range(network.num_inputs)]
    return [(tensor.name, _sizes(f"input '{tensor.name}'", tensor.shape, errors))
            for tensor in tensors if tensor is not None]


def _add_profile(builder: _ingot.Builder, network: _ingot.INetworkDefinition,
                 config: _ingot.IBuilderConfig, shapes: Mapping[str, Shapes],
                 errors: _Log) -> None:
    inputs = dict(_inputs(network, errors))
    unknown = [name for name in shapes if name not in inputs]
    if unknown:
        raise ValueError(f"shapes: there is no input '{unknown[0]}'; there are "
                         f"{', '.join(inputs)}")
    dynamic = [name for name, shape in inputs.items() if -1 in shape]
    missing = [name for name in dynamic if name not in shapes]
    if not shapes or not dynamic:
        return
    if missing:
        text = ", ".join(f"'{name}': {list(inputs[name])}" for name in missing)
        raise ValueError(f"shapes: inputs with sizes known only at run time are missing: {text}")
    profile = builder.create_optimization_profile()
    for name in dynamic:
        profile.set_shape(name, *_shape_triple(name, shapes[name]))
    if config.add_optimization_profile(profile) < 0:
        raise ValueError(f"shapes: the profile is not valid: {errors.take()}")


def _add_samples(network: _ingot.INetworkDefinition, config: _ingot.IBuilderConfig,
                 samples: Iterable[Sample], errors: _Log) -> None:
    tensors = [network.get_input(i) for i in range(network.num_inputs)]
    inputs = [(tensor.name, tensor.dtype) for tensor in tensors if tensor is not None]
    names = [name for name, _ in inputs]
    if isinstance(samples, Mapping) or hasattr(samples, "dtype"):
        raise TypeError(f"samples: got {type(samples).__name__}, expected a list of runs, each an "
                        f"array, a sequence of arrays or a dict")
    for number, sample in enumerate(samples):
        named = sample if isinstance(sample, Mapping) else {}
        arrays = () if named else sample if isinstance(sample, (list, tuple)) else (sample,)
        try:
            given, held = host_values(inputs, by_name(names, arrays, named))
        except TypeError as error:
            raise TypeError(f"samples[{number}]: {error}") from None
        added = _ingot._add_sample_inputs(config, given)
        del held
        if not added:
            raise ValueError(f"samples[{number}]: {errors.take()}")


def _build(model: bytes | None, path: str | None, logger: _Log,
           options: dict[str, typing.Any]) -> _ingot.IHostMemory:
    builder = _ingot.Builder(logger)
    network, config = builder.create_network(0), builder.create_builder_config()
    if network is None or config is None:
        raise RuntimeError(f"the engine could not be built: {logger.take()}")
    parser = _ingot.OnnxParser(network, logger)
    parser.set_optional_inputs(options["optional_inputs"])
    if not (parser.parse_from_file(path or "") if model is None else parser.parse(model, path)):
        texts = [str(parser.get_error(i)) for i in range(parser.num_errors)]
        raise ValueError("the model cannot be read: " + ("; ".join(texts) or logger.take()))
    for flag in ("fp16", "bf16", "int8", "fp8"):
        if options[flag]:
            config.set_flag(getattr(_ingot.BuilderFlag, flag.upper()))
    if options["batch_invariant"]:
        config.set_flag(_ingot.BuilderFlag.DISTRIBUTIVE_INDEPENDENCE)
    if options["calibrator"] is not None:
        config.int8_calibrator = options["calibrator"]
    if options["workspace"] is not None:
        config.set_memory_pool_limit(_ingot.MemoryPoolType.WORKSPACE, options["workspace"])
    if options["optimization_level"] is not None:
        config.builder_optimization_level = options["optimization_level"]
    if options["progress_monitor"] is not None:
        config.progress_monitor = options["progress_monitor"]
    shapes = options["shapes"] or {}
    if callable(shapes):
        shapes = shapes(_inputs(network, logger))
    _add_profile(builder, network, config, shapes, logger)
    if options["samples"] is not None:
        _add_samples(network, config, options["samples"], logger)
    memory = builder.build_serialized_network(network, config)
    if memory is None:
        raise RuntimeError(f"the engine could not be built: {logger.take()}")
    return memory


def _is_engine(data: bytes) -> bool:
    return data[:8] == b"INGOT\r\n\x1a"


def compile(model: typing.Any, *, fp16: bool = False, bf16: bool = False, int8: bool = False,
            fp8: bool = False, calibrator: _ingot.IInt8Calibrator | None = None,
            shapes: Mapping[str, Shapes] | MakesShapes | None = None, device: str | int = "auto", workspace: int | None = None,
            optimization_level: int | None = None, logger: _ingot.ILogger | None = None,
            progress_monitor: _ingot.IProgressMonitor | None = None,
            save: str | os.PathLike[str] | None = None,
            priority: str = "normal", threads: int | None = None,
            samples: Iterable[Sample] | None = None, batch_invariant: bool = False,
            optional_inputs: Sequence[str] = ()) -> CompiledModel:
    """A function of arrays from a model.

    model: the path of an ONNX model or of an engine, the bytes of either, or an onnx.ModelProto.
    fp16, bf16, fp8, int8: types that the engine may compute in; int8 needs a model with Q/DQ or a
        calibrator (trt.IInt8EntropyCalibrator2 and siblings).
    shapes: for inputs with sizes known only at run time: {name: shape} or {name: (min, opt, max)},
        or a function from [(name, shape), ...], the inputs of the model, to such a dict. Default:
        the engine takes any shape.
    device: "auto" (a GPU if there is one), "gpu", "cpu", or the ordinal of a GPU.
    workspace: most bytes of scratch memory of a layer.
    optimization_level: 0 (fast build) to 5.
    logger: an ILogger, which gets all messages; default: warnings go to standard error, and errors
    appear in exceptions alone. progress_monitor: an IProgressMonitor. Ctrl-C stops a build anyway.
    save: where to write the engine. priority: "low", "normal" or "high": how urgent runs on the
    default stream are to a GPU that other
        programs use too; runs on another stream are as urgent as it is. With "low", kernels compile
        when nothing else needs the CPU.
    threads: most threads of a run on the CPU, the caller's included. Default: all that the process
        may use.
    samples: for fp16: inputs of one run or several, each a dict, a sequence of arrays or an array.
        They are run in f32; layers whose numbers f16 cannot hold keep f32, and a warning names
        them. Without samples such numbers become infinite.
    batch_invariant: for ONNX models: a row's results have the same bits alone and in any batch.
    optional_inputs: for ONNX models: inputs that calls may leave out, whose default is the
        initializer of the same name. Without it such inputs are constants.

    Returns a CompiledModel. Errors: FileNotFoundError, ValueError for a model or shapes that are
    not valid, RuntimeError when the engine cannot be built or cannot run on the device.
    """
    ordinal = device if isinstance(device, int) else 0
    place = "gpu" if isinstance(device, int) else device
    if place not in _DEVICES:
        raise ValueError(f"device: got '{device}', expected auto, gpu, cpu, or the ordinal of a "
                         f"GPU")
    if priority not in _PRIORITIES:
        raise ValueError(f"priority: got {priority!r}, expected {', '.join(_PRIORITIES)}")
    options = {"fp16": fp16, "bf16": bf16, "int8": int8, "fp8": fp8, "calibrator": calibrator,
               "shapes": shapes, "workspace": workspace, "progress_monitor": progress_monitor,
               "optimization_level": optimization_level, "samples": samples,
               "batch_invariant": batch_invariant, "optional_inputs": list(optional_inputs)}
    log = _Log(logger)
    data: bytes | None
    path: str | None = None
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        with open(path, "rb") as file:
            start = file.read(8)
            data = start + file.read() if _is_engine(start) else None
    else:
        data = model.SerializeToString() if hasattr(model, "SerializeToString") else bytes(model)
    if samples is not None and (not fp16 or (data is not None and _is_engine(data))):
        raise ValueError("samples: they show a build with fp16=True where numbers overflow; got "
                         + ("an engine, which is built" if fp16 else "fp16=False"))
    if batch_invariant and data is not None and _is_engine(data):
        raise ValueError("batch_invariant: it is for ONNX models, and this is an engine: build it with "
                         "'ingot build --batchInvariant' and leave the argument out")
    if optional_inputs and data is not None and _is_engine(data):
        raise ValueError("optional_inputs: they are for ONNX models, and this is an engine: build it with "
                         "'ingot build --optionalInputs=" + ",".join(optional_inputs) + "' and leave the argument out")
    blob: bytes | _ingot.IHostMemory
    blob = data if data is not None and _is_engine(data) else _build(data, path, log, options)
    runtime = _ingot.Runtime(log)
    if not runtime.set_device(_DEVICES[place], ordinal):
        raise RuntimeError(f"device {device!r} cannot be used: {log.take()}")
    if threads is not None:
        if threads < 1:
            raise ValueError(f"threads: got {threads}, expected 1 or more")
        runtime.max_threads = threads
    engine = runtime.deserialize_cuda_engine(blob)
    if engine is None:
        raise RuntimeError(f"the engine cannot be loaded: {log.take()}")
    if save is not None:
        pathlib.Path(save).write_bytes(blob)
    return CompiledModel(engine, log, ordinal if engine.device == "gpu" else None, priority)
