# SPDX-License-Identifier: Apache-2.0
"""One version of a model: its engine, whether configuration and requests fit it, and runs of batches.
Nothing here knows Ray."""
import dataclasses
import math
import pathlib
import typing

import numpy as np
from tritonclient.grpc import model_config_pb2  # type: ignore[import-untyped, import-not-found, unused-ignore]

import ingot
from ingot.ray import _config, _repository, _tensors
from ingot.ray._errors import ConfigError, Refused
from ingot.ray._tensors import RAW, Array, Arrays, shape_text

_TYPE_NAMES = {ingot.DataType.FLOAT: "FP32", ingot.DataType.HALF: "FP16", ingot.DataType.BF16: "BF16",
               ingot.DataType.INT8: "INT8", ingot.DataType.UINT8: "UINT8", ingot.DataType.INT32: "INT32",
               ingot.DataType.INT64: "INT64", ingot.DataType.BOOL: "BOOL"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output; -1 is a size that is open."""
    name: str
    datatype: str
    engine: tuple[int, ...]  # the engine's shape, with the rows of a batch
    wire: tuple[int, ...]  # the configured shape in requests and responses
    inner: tuple[int, ...]  # the configured shape of the engine's side: `reshape` where it is given
    least: tuple[int, ...] = ()  # of the profile; () without
    usual: tuple[int, ...] = ()
    most: tuple[int, ...] = ()
    has_default: bool = False


class _Errors(ingot.IErrorRecorder):
    """Keeps a run's errors: their kind says whether the request or the server is to blame."""

    def __init__(self) -> None:
        super().__init__()
        self._found: list[tuple[ingot.ErrorCodeTRT, str]] = []

    def num_errors(self) -> int:
        return len(self._found)

    def get_error_code(self, index: int) -> ingot.ErrorCodeTRT:
        return self._found[index][0]

    def get_error_desc(self, index: int) -> str:
        return self._found[index][1]

    def has_overflowed(self) -> bool:
        return False

    def clear(self) -> None:
        self._found.clear()

    def report_error(self, code: ingot.ErrorCodeTRT, text: str) -> bool:
        self._found.append((code, text))
        return True

    def take(self, otherwise: str) -> Refused:
        invalid = (ingot.ErrorCodeTRT.INVALID_ARGUMENT, ingot.ErrorCodeTRT.INVALID_CONFIG,
                   ingot.ErrorCodeTRT.INVALID_STATE)
        codes = {**dict.fromkeys(invalid, "INVALID_ARG"),
                 ingot.ErrorCodeTRT.FAILED_ALLOCATION: "UNAVAILABLE",
                 ingot.ErrorCodeTRT.UNSUPPORTED_STATE: "UNSUPPORTED"}
        code = codes.get(self._found[0][0], "INTERNAL") if self._found else "INTERNAL"
        text = "; ".join(text for _, text in self._found) or otherwise
        self._found.clear()
        return Refused(code, text)


class Version:
    """Threads: run(), prepare() and warm_up() from one thread, the one that made it; the rest from
    any."""

    def __init__(self, settings: _config.Settings, path: str, device: str) -> None:
        """Loads the engine. Errors: ConfigError naming the file, and tensor, configured and found."""
        self.settings = settings
        try:
            _repository.check_start(pathlib.Path(path))
            is_model = pathlib.Path(path).suffix == ".onnx"
            optional = [t.name for t in settings.message().input if t.optional and is_model]
            self.model = ingot.compile(path, fp16=settings.fp16, batch_invariant=settings.batch_invariant,
                                       device=device, threads=settings.threads if device == "cpu" else None,
                                       optional_inputs=optional)
            self._describe()
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigError(f"model '{settings.name}', file '{pathlib.Path(path).name}': {error}") from None
        self.limit = self.config.max_batch_size
        self.buckets = settings.buckets if settings.buckets or not self.limit or not settings.pads else (
            *(1 << i for i in range((self.limit - 1).bit_length())), self.limit)
        self._errors = _Errors()
        context = self.model._context()
        context.error_recorder = self._errors
        if settings.profile and not context.set_optimization_profile_async(settings.profile, 0):
            raise ConfigError(f"model '{settings.name}': profile {settings.profile} cannot be chosen: "
                              f"{self._errors.take('no reason is given')}")

    def _describe(self) -> None:
        engine, profile = self.model.engine, self.settings.profile
        if profile >= engine.num_optimization_profiles:
            raise ConfigError(f"profile {profile} is asked for, and the engine has "
                              f"{engine.num_optimization_profiles}")
        found = [self._tensor(spec, spec in self.model.inputs)
                 for spec in [*self.model.inputs, *self.model.outputs]]
        count = len(self.model.inputs)
        config = self.settings.message()
        _complete(config, found[:count], found[count:])
        self.inputs = _checked("input", config, config.input, found[:count])
        self.outputs = _checked("output", config, config.output, found[count:])
        _check_batch(config, self.settings, [*found])
        self.optional = _optional(config, self.model.defaults)
        missing = [t.name for t in found[:count]
                   if t.name not in {i.name for i in self.inputs} and not t.has_default]
        if missing:
            raise ConfigError(f"the engine's input '{missing[0]}' is not configured: add it, or leave out all "
                              "inputs and outputs")
        self.config = config

    def _tensor(self, spec: ingot.TensorSpec, is_input: bool) -> Tensor:
        if spec.dtype not in _TYPE_NAMES:
            raise ConfigError(f"tensor '{spec.name}' has elements of {spec.dtype.name}, which the protocol has no "
                              "type for: convert it inside the model")
        bounds: list[tuple[int, ...]] = [(), (), ()]
        if is_input:
            shapes = self.model.engine.get_tensor_profile_shape(spec.name, self.settings.profile)
            found = [tuple(shape) for shape in shapes]
            if len(found) == 3 and len(found[2]) == len(spec.shape) and -1 not in found[2]:
                bounds = found
        least, usual, most = bounds
        return Tensor(spec.name, _TYPE_NAMES[spec.dtype], tuple(spec.shape), (), (), least, usual, most,
                      spec.name in self.model.defaults)

    def prepare(self, inputs: Arrays) -> tuple[dict[str, Array], int]:
        """A request's inputs as the engine sees them, and its rows (0 without batches). Errors:
        Refused."""
        if RAW in inputs:
            inputs = {self.inputs[0].name: self._from_raw(inputs[RAW])}
        expected = {tensor.name: tensor for tensor in self.inputs}
        model = f"model '{self.settings.name}'"
        for key in inputs.keys() - expected.keys() if len(inputs) <= len(expected) else ():
            raise Refused("INVALID_ARG", f"unexpected inference input '{key}' for {model}")
        required = expected.keys() - self.optional
        if required - inputs.keys() or len(inputs) > len(expected):
            raise _about(f"expected {len(expected)} inputs but got {len(inputs)} inputs for {model}. Got input(s) "
                         f"{_names(inputs)}, but missing required input(s) {_names(required - inputs.keys())}. "
                         "Please provide all required input(s).")
        values, rows = {}, -1
        for key, array in inputs.items():
            values[key] = self._fit(expected[key], array)
            if self.limit and rows not in (-1, values[key].shape[0]):
                raise _about(f"input '{key}' batch size does not match other inputs for '{self.settings.name}'")
            rows = values[key].shape[0] if self.limit else 0
        return values, max(rows, 0)

    def _from_raw(self, data: Array) -> Array:
        """A body that is nothing but the one input, of one row. Errors: Refused."""
        tensor = self.inputs[0]
        shape = (1, *tensor.wire[1:]) if self.limit else tensor.wire
        if len(self.inputs) != 1 or -1 in shape:
            raise Refused("INVALID_ARG", "a body without JSON is for models with one input of a fixed shape, and "
                                         f"'{self.settings.name}' is none")
        expected = _tensors.count_of(shape) * _tensors.numpy_type(tensor.datatype).itemsize
        if data.nbytes != expected:
            raise self._mismatch(RAW, expected, data.nbytes)
        return _tensors.from_bytes(RAW, tensor.datatype, shape, data.tobytes())

    def _mismatch(self, name: str, expected: int, found: int) -> Refused:
        return _about(f"input byte size mismatch for input '{name}' for model '{self.settings.name}'. Expected "
                      f"{expected}, got {found}")

    def _fit(self, tensor: Tensor, array: Array) -> Array:
        name = self.settings.name
        found = _tensors.type_name(array)
        if found != tensor.datatype:
            raise _about(f"inference input '{tensor.name}' data-type is '{found}', but model '{name}' expects "
                         f"'{tensor.datatype}'")
        shape = array.shape
        if self.limit and not shape:
            raise _about(f"input '{tensor.name}' has no shape but model requires batch dimension for '{name}'")
        if self.limit and shape[0] > self.limit:
            raise _about(f"inference request batch-size must be <= {self.limit} for '{name}'")
        if not _fits(shape, tensor.wire):
            raise _about(f"unexpected shape for input '{tensor.name}' for model '{name}'. Expected "
                         f"{shape_text(tensor.wire)}, got {shape_text(shape)}.")
        if self.limit and shape[0] == 0:
            raise self._mismatch(tensor.name, _tensors.count_of(shape[1:]) * array.itemsize, 0)
        array = array.reshape(_reshaped(shape, tensor.wire, tensor.inner))
        if tensor.most and not _within(array.shape, tensor, bool(self.limit)):
            raise Refused("INVALID_ARG", f"input '{tensor.name}' has shape {list(array.shape)}, expected "
                                         f"{list(tensor.engine)} within {list(tensor.least)} to "
                                         f"{list(tensor.most)}")
        return array

    def run(self, requests: list[Arrays]) -> list[Arrays]:
        """Runs requests of one shape as one batch; the outputs of each. Errors: Refused."""
        rows = [next(iter(request.values())).shape[0] if self.limit else 0 for request in requests]
        padded = self.padded(sum(rows)) if self.limit else 0
        inputs = requests[0] if len(requests) == 1 and rows[0] == padded else {
            name: _gathered([request[name] for request in requests], padded) for name in requests[0]}
        try:
            results = self.model(**inputs)
        except (RuntimeError, TypeError, ValueError) as error:
            raise self._errors.take(str(error)) from None
        named = dict(zip([spec.name for spec in self.model.outputs],
                         results if isinstance(results, tuple) else (results,)))
        wanted = [(tensor, named[tensor.name]) for tensor in self.outputs]
        for tensor, value in wanted:
            if self.limit and value.shape[:1] != (padded,):
                raise Refused("INTERNAL", f"output '{tensor.name}' has shape {list(value.shape)} after a batch of "
                                          f"{padded} rows: its rows are not the batch's; set max_batch_size to 0")
        answers, first = [], 0
        for count in rows:
            answers.append({tensor.name: _shown(value[first:first + count] if self.limit else value, tensor)
                            for tensor, value in wanted})
            first += count
        return answers

    def padded(self, rows: int) -> int:
        """The smallest bucket that holds so many rows; without one, their number."""
        return next((bucket for bucket in self.buckets if bucket >= rows), rows)

    def warm_up(self) -> str:
        """Runs each bucket once, the largest first; why some were left out, else ''."""
        for rows in sorted(self.buckets, reverse=True) or [max(self.limit, 1)]:
            shapes = {tensor.name: self._warm_shape(tensor, rows) for tensor in self.inputs}
            unknown = [name for name, shape in shapes.items() if -1 in shape]
            if unknown:
                return (f"input '{unknown[0]}' has the open shape {list(shapes[unknown[0]])} and the engine no "
                        "profile that says which sizes to expect")
            zeros = {tensor.name: np.zeros(shapes[tensor.name], _tensors.numpy_type(tensor.datatype))
                     for tensor in self.inputs}
            try:
                self.run([zeros])
            except Refused as error:
                if error.code in ("UNAVAILABLE",):
                    raise
                return f"a run of zeros failed: {error}"  # values may matter to the model
        return ""

    def _warm_shape(self, tensor: Tensor, rows: int) -> tuple[int, ...]:
        written = {t.name: t for t in self.settings.message().input}.get(tensor.name)
        fixed = tuple(written.reshape.shape if written.HasField("reshape") else written.dims) if written else ()
        shape = list(tensor.engine)
        if fixed:
            shape[len(shape) - len(fixed):] = fixed
        for axis, size in enumerate(shape):
            if self.limit and axis == 0:
                shape[axis] = rows
            elif size == -1 and tensor.usual:
                shape[axis] = tensor.usual[axis]
        return tuple(shape)


def _about(text: str) -> Refused:
    return Refused("INVALID_ARG", text, True)


def _names(names: typing.Iterable[str]) -> str:
    return "[" + ",".join(f"'{name}'" for name in sorted(names)) + "]"


def _fits(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    return len(shape) == len(expected) and all(want in (-1, size) for size, want in zip(shape, expected))


def _within(shape: tuple[int, ...], tensor: Tensor, batched: bool) -> bool:
    first = 1 if batched else 0
    return all(low <= size <= high or tensor.engine[i] != -1
               for i, (low, size, high) in enumerate(zip(tensor.least, shape, tensor.most)) if i >= first)


def _reshaped(shape: tuple[int, ...], given: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """`wanted` with its open sizes from those of `shape`, in their order."""
    sizes = iter([size for size, want in zip(shape, given) if want == -1])
    return tuple(next(sizes) if size == -1 else size for size in wanted)


def _shown(value: Array, tensor: Tensor) -> Array:
    if tensor.wire == tensor.inner:
        return value
    return value.reshape(_reshaped(value.shape, tensor.inner, tensor.wire))


def _gathered(parts: list[Array], rows: int) -> Array:
    """The rows of all parts, and zeros up to the bucket."""
    made = np.zeros((rows, *parts[0].shape[1:]), parts[0].dtype)
    first = 0
    for part in parts:
        made[first:first + part.shape[0]] = part
        first += part.shape[0]
    return made


def _complete(config: typing.Any, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    """Adds what is not configured."""
    both = [*inputs, *outputs]
    batched = bool(inputs) and all(tensor.engine[:1] == (-1,) for tensor in both)
    ranks = {tensor.name: len(tensor.engine) for tensor in both}
    without_rows = all(len(t.reshape.shape if t.HasField("reshape") else t.dims) + 1 == ranks.get(t.name)
                       for t in [*config.input, *config.output])
    if config.max_batch_size == 0 and batched and without_rows:
        bounds = [tensor.most[0] for tensor in inputs if tensor.most]
        config.max_batch_size = min(bounds) if bounds else _config.DEFAULT_BATCH
    for written, found in ((config.input, inputs), (config.output, outputs)):
        if not written:
            for tensor in found:
                _write(written.add(), tensor, config.max_batch_size > 0)
    if config.max_batch_size > 1 and not config.HasField("dynamic_batching"):
        config.dynamic_batching.SetInParent()


def _optional(config: typing.Any, defaults: typing.Container[str]) -> set[str]:
    """The inputs that a request may leave out. Errors: ConfigError as the backend's for Triton."""
    names = {entry.name for entry in config.input if entry.optional}
    for name in sorted(names):
        if name not in defaults:
            raise ConfigError(f"input '{name}' has optional, and the engine has no default for it: build it with "
                              f"'ingot build --optionalInputs={name}' from a model that has one (an initializer of "
                              "the input's name), or leave the field out")
        if config.max_batch_size:
            raise ConfigError(f"input '{name}' has optional, and max_batch_size is {config.max_batch_size}: a default "
                              "has no rows for the requests of a batch; set max_batch_size to 0, or leave the field "
                              "out")
    return names


def _write(entry: typing.Any, tensor: Tensor, batched: bool) -> None:
    entry.name = tensor.name
    entry.data_type = model_config_pb2.DataType.Value(f"TYPE_{tensor.datatype}")
    dims = tensor.engine[1:] if batched else tensor.engine
    entry.dims.extend(dims or (1,))  # the protocol has no tensor without sizes
    if tensor.has_default and not batched:
        entry.optional = True
    if not dims and batched:
        entry.reshape.SetInParent()


def _checked(what: str, config: typing.Any, written: typing.Any, found: list[Tensor]) -> list[Tensor]:
    """The tensors with the shapes that clients see, in the order of the configuration."""
    by_name = {tensor.name: tensor for tensor in found}
    rows = (-1,) if config.max_batch_size > 0 else ()
    checked = []
    for entry in written:
        tensor = by_name.get(entry.name)
        if tensor is None:
            raise ConfigError(f"configured {what} '{entry.name}' is none of the engine's, which are: "
                              f"{', '.join(by_name)}")
        datatype = model_config_pb2.DataType.Name(entry.data_type)
        if datatype != f"TYPE_{tensor.datatype}":
            raise ConfigError(f"{what} '{entry.name}': data_type {datatype} is configured, the engine has "
                              f"TYPE_{tensor.datatype}")
        shape = (*rows, *(entry.reshape.shape if entry.HasField("reshape") else entry.dims))
        if not _agree(shape, tensor):
            bounds = f", built for {list(tensor.least)} to {list(tensor.most)}" if tensor.most else ""
            raise ConfigError(f"{what} '{entry.name}': shape {list(shape)} is configured"
                              f"{' (the first size are the rows of a batch)' if rows else ''}, the engine has "
                              f"{list(tensor.engine)}{bounds}")
        if entry.is_shape_tensor and rows:
            raise ConfigError(f"{what} '{entry.name}' is a shape tensor, which requests of one batch cannot share: "
                              "set max_batch_size to 0")
        checked.append(dataclasses.replace(tensor, wire=(*rows, *entry.dims),
                                           inner=shape if tensor.engine else ()))
    return checked


def _agree(configured: tuple[int, ...], tensor: Tensor) -> bool:
    if not tensor.engine and configured == (1,):
        return True  # the protocol has no tensor without sizes
    if len(configured) != len(tensor.engine):
        return False
    bounds: list[tuple[int, float]] = [*zip(tensor.least, tensor.most)] or [(0, math.inf)] * len(configured)
    return all(want == size if -1 not in (want, size) else size != -1 or want == -1 or low <= want <= high
               for want, size, (low, high) in zip(configured, tensor.engine, bounds))


def _check_batch(config: typing.Any, settings: _config.Settings, tensors: list[Tensor]) -> None:
    limit = config.max_batch_size
    for tensor in tensors if limit else ():
        if tensor.engine[:1] != (-1,):
            raise ConfigError(f"max_batch_size {limit} is configured, and tensor '{tensor.name}' of the engine has "
                              f"the fixed shape {list(tensor.engine)}: set max_batch_size to 0, or build the "
                              "engine with open rows")
        if tensor.most and limit > tensor.most[0]:
            raise ConfigError(f"max_batch_size {limit} is configured, the engine was built for {tensor.most[0]} "
                              "rows at most: lower it, or build the engine with a larger --maxShapes")
    for bucket in settings.buckets:
        if bucket > limit:
            raise ConfigError(f"parameter 'buckets' has {bucket}, and max_batch_size is {limit}")
