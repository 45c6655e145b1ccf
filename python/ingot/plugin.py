# SPDX-License-Identifier: Apache-2.0
"""Plugins from a few Python functions: TensorRT's quickly deployable plugins.

    import numpy as np
    import ingot.plugin as trtp        # or tensorrt.plugin

    @trtp.register("my::scale")
    def scale_desc(x: trtp.TensorDesc, factor: float) -> trtp.TensorDesc:
        return x.like()

    @trtp.impl("my::scale")
    def scale_impl(x: trtp.Tensor, factor: float, outputs: tuple[trtp.Tensor], stream: int) -> None:
        np.multiply(x, factor, out=np.asarray(outputs[0]))

    layer = network.add_plugin(trtp.op.my.scale(tensor, factor=2.0))

register() defines inputs, attributes and the types and shapes of outputs; impl() runs the plugin;
autotune() lists its types and tactics. An engine holds the attributes; the process that loads it
must register the plugin too. Attributes are int, float, bool, str, bytes and numpy arrays
(numpy.typing.NDArray[...]). Kernels compiled ahead (aot_impl) are not supported:
add_cuda_source_layer() takes a kernel's text, which needs no Python at run time.
"""
from __future__ import annotations

import builtins
import inspect
import itertools
import types
import typing
from typing import Any, Callable, Iterable, Sequence

import numpy as np

from ingot import _ingot as trt
from ingot._plugin_formats import AutoTuneCombination
from ingot._plugin_values import (Shape, ShapeExpr, ShapeExprs, SizeTensorDesc, SizeTensorShapeExpr,
                                  Tensor, TensorDesc, shape_rule)

__all__ = ["AutoTuneCombination", "Shape", "ShapeExpr", "ShapeExprs", "SizeTensorDesc",
           "SizeTensorShapeExpr", "Tensor", "TensorDesc", "autotune", "cdiv", "from_shape_expr", "impl",
           "max", "min", "op", "register", "size_tensor"]

_Function = Callable[..., Any]
_RESERVED_SPACES = ("", "trt", "tensorrt", "std")
_RESERVED_NAMES = ("outputs", "stream", "tactic")
_FIELDS = {int: (np.int64, trt.PluginFieldType.INT64), float: (np.float64, trt.PluginFieldType.FLOAT64),
           builtins.bool: (np.int8, trt.PluginFieldType.INT8)}
_ARRAYS = {"int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"}


# --- sizes ---------------------------------------------------------------------------------------

def _two(name: str, operation: trt.DimensionOperation, first: int | ShapeExpr,
         second: int | ShapeExpr) -> ShapeExpr:
    if isinstance(first, int) and isinstance(second, int):
        raise ValueError(f"{name}() takes at least one ShapeExpr, got {first} and {second}")
    return ShapeExpr(first)._op(operation, second)


def cdiv(first: int | ShapeExpr, second: int | ShapeExpr) -> ShapeExpr:
    """`first` divided by `second`, rounded up. Errors: ValueError for two numbers."""
    return _two("cdiv", trt.DimensionOperation.CEIL_DIV, first, second)


def max(first: int | ShapeExpr, second: int | ShapeExpr) -> ShapeExpr:
    """The larger of two sizes. Errors: ValueError for two numbers."""
    return _two("max", trt.DimensionOperation.MAX, first, second)


def min(first: int | ShapeExpr, second: int | ShapeExpr) -> ShapeExpr:
    """The smaller of two sizes. Errors: ValueError for two numbers."""
    return _two("min", trt.DimensionOperation.MIN, first, second)


def size_tensor(opt: ShapeExpr, upper_bound: ShapeExpr) -> SizeTensorDesc:
    """An output that holds a data-dependent size: `opt` is the expected size, `upper_bound` the
    largest. Return it among the outputs; its expr() is the size for shapes of others."""
    return SizeTensorDesc(opt, upper_bound)


def from_shape_expr(shape_expr: Sequence[int | ShapeExpr] | ShapeExprs, dtype: trt.DataType) -> TensorDesc:
    """An output of this shape and type."""
    shape = shape_expr if isinstance(shape_expr, ShapeExprs) else ShapeExprs.from_tuple(shape_expr)
    return TensorDesc(shape, dtype)


# --- what is registered --------------------------------------------------------------------------

class _Definition:
    """A plugin's functions and signature. A call with tensors and attributes gives a layer for
    add_plugin()."""

    def __init__(self, space: str, name: str, function: _Function) -> None:
        self.space, self.name, self.function = space, name, function
        self.tensors: list[str] = []
        self.attributes: dict[str, Any] = {}
        self.impl: _Function | None = None
        self.autotune: _Function | None = None
        self.creator: _Creator | None = None
        self.output_count = 0
        self._read_signature()

    @property
    def id(self) -> str:
        return f"{self.space}::{self.name}"

    def _read_signature(self) -> None:
        hints = _hints(self.function)
        for name, parameter in inspect.signature(self.function).parameters.items():
            kind = hints.get(name)
            if kind is None:
                raise ValueError(f"plugin {self.id}: parameter {name} has no type: expected TensorDesc, or "
                                 "the type of an attribute")
            if parameter.default is not parameter.empty:
                raise ValueError(f"plugin {self.id}: parameter {name} has a default, which is not supported")
            if kind is TensorDesc and not self.attributes:
                self.tensors.append(name)
            elif kind is TensorDesc or not self.tensors:
                raise ValueError(f"plugin {self.id}: tensors come first, then attributes")
            else:
                self._check_attribute(name, kind)
                self.attributes[name] = kind
        result = hints.get("return")
        outputs = list(typing.get_args(result)) if typing.get_origin(result) is tuple else [result]
        if not outputs or any(not (isinstance(one, type) and issubclass(one, TensorDesc)) for one in outputs):
            raise ValueError(f"plugin {self.id}: the function's result is {result}, expected TensorDesc or "
                             "tuple[TensorDesc, ...]")
        self.output_count = len(outputs)

    def _check_attribute(self, name: str, kind: Any) -> None:
        if name in _RESERVED_NAMES:
            raise ValueError(f"plugin {self.id}: no attribute can be called {name}")
        if kind not in (int, float, builtins.bool, str, bytes) and _array_type(kind) not in _ARRAYS:
            raise ValueError(f"plugin {self.id}: attribute {name} is {kind}, expected int, float, bool, str, "
                             f"bytes or numpy.typing.NDArray of {', '.join(sorted(_ARRAYS))}")

    def needs(self, function: _Function, what: str, tail: Sequence[str]) -> list[str]:
        """The attributes that a function takes. Errors: ValueError for another signature."""
        given = list(inspect.signature(function).parameters)
        taken = [name for name in self.attributes if name in given]
        allowed = [[*self.tensors, *taken, *tail]]
        if what == "impl":
            allowed.append([*allowed[0], "tactic"])
        if given not in allowed:
            raise ValueError(f"plugin {self.id}: {what} takes ({', '.join(given)}), expected "
                             f"({', '.join(allowed[0])})")
        for name, kind in _hints(function).items():
            if name in self.attributes and kind != self.attributes[name]:
                raise ValueError(f"plugin {self.id}: {what} has {name} as {kind}, register() as "
                                 f"{self.attributes[name]}")
        return taken

    def describe(self, inputs: Sequence[TensorDesc], attributes: dict[str, Any]) -> tuple[TensorDesc, ...]:
        result = self.function(*inputs, **attributes)
        outputs = result if isinstance(result, tuple) else (result,)
        if len(outputs) != self.output_count:
            raise ValueError(f"plugin {self.id}: register()'s function returned {len(outputs)} outputs, its "
                             f"signature says {self.output_count}")
        for i, output in enumerate(outputs):
            if isinstance(output, SizeTensorDesc):
                output._index = i
        return outputs

    def checked(self, attributes: dict[str, Any]) -> dict[str, Any]:
        if list(attributes) != list(self.attributes) and set(attributes) != set(self.attributes):
            raise ValueError(f"plugin {self.id}: the attributes are {sorted(attributes)}, expected "
                             f"{list(self.attributes)}")
        return {name: _checked(self.id, name, kind, attributes[name])
                for name, kind in self.attributes.items()}

    def registered(self) -> _Creator:
        if self.creator is None:
            self.creator = _Creator(self)
            registry = trt.get_plugin_registry()
            if not registry.register_creator(self.creator, self.space):
                raise ValueError(f"plugin {self.id} is registered already")
        return self.creator

    def __call__(self, *tensors: trt.ITensor, **attributes: Any) -> Callable[..., Any]:
        if len(tensors) != len(self.tensors) or any(not isinstance(t, trt.ITensor) for t in tensors):
            raise ValueError(f"plugin {self.id}: got {[type(t).__name__ for t in tensors]}, expected "
                             f"{len(self.tensors)} tensors ({', '.join(self.tensors)})")
        values = self.checked(attributes)
        self.registered()

        def make(request: trt.QuickPluginCreationRequest = trt.QuickPluginCreationRequest.UNKNOWN) -> Any:
            if request == trt.QuickPluginCreationRequest.STRICT_AOT:
                raise ValueError(f"plugin {self.id}: kernels that are compiled ahead are not supported; "
                                 "define impl(), or give a kernel's text to add_cuda_source_layer()")
            if self.impl is None:
                raise ValueError(f"plugin {self.id} has no implementation: define it by "
                                 f"@ingot.plugin.impl(\"{self.id}\")")
            return list(tensors), [], _Plugin(self, values)
        return make


def _hints(function: _Function) -> dict[str, Any]:
    """Types of parameters, evaluated where they are text."""
    names = dict(getattr(function, "__globals__", {}))
    names |= inspect.getclosurevars(function).nonlocals
    found: dict[str, Any] = {}
    for name, kind in getattr(function, "__annotations__", {}).items():
        found[name] = eval(kind, names) if isinstance(kind, str) else kind
    return found


def _array_type(kind: Any) -> str:
    """The type of the elements of NDArray[...]; "" for others."""
    if typing.get_origin(kind) is not np.ndarray:
        return ""
    return str(np.dtype(typing.get_args(typing.get_args(kind)[1])[0]).name)


def _checked(plugin: str, name: str, kind: Any, value: Any) -> Any:
    expected = _array_type(kind)
    if expected:
        if not isinstance(value, np.ndarray) or value.dtype.name != expected:
            got = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise ValueError(f"plugin {plugin}: attribute {name} is {got}, expected an array of {expected}")
        return np.ascontiguousarray(value)
    is_number = kind is float and isinstance(value, int) and not isinstance(value, builtins.bool)
    if type(value) is not kind and not is_number:
        raise ValueError(f"plugin {plugin}: attribute {name} is {type(value).__name__}, expected {kind.__name__}")
    return kind(value)


def _field(name: str, value: Any) -> trt.PluginField:
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        kind = trt.PluginFieldType.CHAR if isinstance(value, str) else trt.PluginFieldType.UNKNOWN
        return trt.PluginField(name, np.frombuffer(data, np.uint8), kind)
    if isinstance(value, np.ndarray):
        return trt.PluginField(name, value.view(np.int8) if value.dtype == builtins.bool else value)
    dtype, kind = _FIELDS[type(value)]
    return trt.PluginField(name, np.array([value], dtype), kind)


def _value(kind: Any, field: trt.PluginField) -> Any:
    data = np.asarray(field.data)
    dtype = _array_type(kind)
    if dtype:
        return data.view(np.bool_) if dtype == "bool" else data.view(np.dtype(dtype))
    if kind in (str, bytes):
        return data.tobytes().decode() if kind is str else data.tobytes()
    return kind(data.reshape(-1)[0])


class _Creator(trt.IPluginCreatorV3Quick):
    def __init__(self, definition: _Definition) -> None:
        super().__init__()
        self.name, self.plugin_version = definition.name, "1"
        self.plugin_namespace = definition.space
        self._definition = definition

    def create_plugin(self, name: str, namespace: str,  # type: ignore[override]
                      field_collection: trt.PluginFieldCollection, phase: trt.TensorRTPhase,
                      quickPluginType: trt.QuickPluginCreationRequest) -> Any:
        kinds = self._definition.attributes
        fields = [field_collection[i] for i in range(len(field_collection))]
        given = {f.name: _value(kinds[f.name], f) for f in fields if f.name in kinds}
        missing = [key for key in kinds if key not in given]
        if missing:
            raise ValueError(f"plugin {self._definition.id}: attributes {missing} are missing")
        return _Plugin(self._definition, given)


class _Plugin(trt.IPluginV3, trt.IPluginV3QuickCore, trt.IPluginV3QuickBuild, trt.IPluginV3QuickRuntime):
    def __init__(self, definition: _Definition, attributes: dict[str, Any]) -> None:
        trt.IPluginV3.__init__(self)
        self.plugin_name, self.plugin_version = definition.name, "1"
        self.plugin_namespace = definition.space
        self._definition, self._attributes = definition, attributes
        self._types: list[trt.DataType] = []
        self._aliases: list[int] | None = None
        self._inputs: list[TensorDesc] = []
        self._outputs: tuple[TensorDesc, ...] = ()
        self._supported: dict[Any, list[int]] = {}
        self._chosen: Any = None
        self._tactic = 0

    def _chosen_attributes(self, function: _Function) -> dict[str, Any]:
        names = inspect.signature(function).parameters
        return {name: value for name, value in self._attributes.items() if name in names}

    def _described(self, inputs: list[TensorDesc]) -> tuple[TensorDesc, ...]:
        outputs = self._definition.describe(inputs, self._attributes)
        places = {id(desc): i for i, desc in enumerate(inputs)}
        self._aliases = [places.get(id(out.get_aliased()), -1) for out in outputs]
        return outputs

    # The network's queries.

    def get_num_outputs(self) -> int:
        return self._definition.output_count

    def get_output_data_types(self, input_types: list[trt.DataType], ranks: list[int]) -> list[Any]:
        self._types = input_types
        return [out.dtype for out in self._described(
            [TensorDesc(ShapeExprs(rank), t) for t, rank in zip(input_types, ranks)])]

    def get_output_shapes(self, inputs: list[trt.DimsExprs], shape_inputs: list[trt.DimsExprs],
                          expr_builder: trt.IExprBuilder) -> list[trt.DimsExprs]:
        with shape_rule(expr_builder):
            self._inputs = [TensorDesc(ShapeExprs.from_tuple([ShapeExpr(x[i]) for i in range(len(x))]), t)
                            for x, t in zip(inputs, self._types)]
            self._outputs = self._described(self._inputs)
            return [trt.DimsExprs([size._built() for size in out.shape_expr or ()])
                    for out in self._outputs]

    def get_supported_format_combinations(self, in_out: list[trt.DynamicPluginTensorDesc],
                                          num_inputs: int) -> list[trt.PluginTensorDesc]:
        descs = [*self._inputs, *self._outputs]
        combinations = [tuple((desc.dtype, trt.TensorFormat.LINEAR) for desc in descs)]
        self._supported = {combinations[0]: []}
        function = self._definition.autotune
        if function is not None:
            for desc, found in zip(descs, in_out):
                desc.shape, desc.format, desc.scale = Shape(found), found.desc.format, found.desc.scale
            result = function(*self._inputs, **self._chosen_attributes(function), outputs=self._outputs)
            self._supported = {}
            for one in [result] if isinstance(result, AutoTuneCombination) else result:
                for combination in one._expanded(len(descs)):
                    tactics = self._supported.setdefault(combination, [])
                    tactics += [t for t in one._tactics if t not in tactics]
        made = []
        for dtype, layout in itertools.chain(*self._supported):
            one_of = trt.PluginTensorDesc()
            one_of.type, one_of.format = dtype, layout
            made.append(one_of)
        return made

    def configure_plugin(self, inp: list[trt.DynamicPluginTensorDesc],
                         out: list[trt.DynamicPluginTensorDesc]) -> None:
        self._chosen = tuple((d.desc.type, d.desc.format) for d in [*inp, *out])

    def get_valid_tactics(self) -> list[int]:
        return self._supported.get(self._chosen, [])

    def get_aliased_input(self, output_index: int) -> int:
        return self._aliases[output_index] if self._aliases else -1

    # The run's queries.

    def set_tactic(self, tactic: int) -> None:
        self._tactic = tactic

    def get_fields_to_serialize(self) -> trt.PluginFieldCollection:
        return trt.PluginFieldCollection([_field(*item) for item in self._attributes.items()])

    def enqueue(self, input_desc: list[trt.PluginTensorDesc], output_desc: list[trt.PluginTensorDesc],
                inputs: list[int], outputs: list[int], in_strides: list[trt.Dims],
                out_strides: list[trt.Dims], stream: int) -> None:
        function = self._definition.impl
        if function is None:
            raise ValueError(f"plugin {self._definition.id} has no implementation")
        if self._aliases is None:
            self._described([TensorDesc(ShapeExprs(len(d.dims)), d.type) for d in input_desc])
        sources = [Tensor._of(*one, stream) for one in zip(input_desc, inputs, in_strides)]
        results = [Tensor._of(*one, stream) for one in zip(output_desc, outputs, out_strides)]
        for result, alias in zip(results, self._aliases or []):
            if alias >= 0:
                result._aliased, sources[alias]._aliased = sources[alias], result
        more = {"tactic": self._tactic} if "tactic" in inspect.signature(function).parameters else {}
        function(*sources, **self._chosen_attributes(function), outputs=tuple(results), stream=stream, **more)


# --- decorators ----------------------------------------------------------------------------------

_definitions: dict[str, _Definition] = {}


class _Op(types.SimpleNamespace):
    """Registered plugins: op.NAMESPACE.NAME(*tensors, **attributes) is the argument of
    INetworkDefinition.add_plugin()."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no plugin of namespace '{name}' is registered")


op = _Op()


def register(plugin_id: str, lazy_register: builtins.bool = False) -> Callable[[_Function], _Function]:
    """Decorates the function that describes a plugin "NAMESPACE::NAME": its parameters are the inputs
    (TensorDesc), then the attributes, each with its type; it returns the outputs. Engines with
    the plugin can be loaded from then on; with lazy_register, from its first use in a network
    on. Errors: ValueError for a name in use or an unsuitable signature."""
    space, separator, name = plugin_id.partition("::")
    if not separator or not name or "." in plugin_id or space in _RESERVED_SPACES:
        raise ValueError(f"the plugin's id is '{plugin_id}', expected NAMESPACE::NAME without dots; "
                         f"the namespaces {_RESERVED_SPACES[1:]} are reserved")

    def decorate(function: _Function) -> _Function:
        if plugin_id in _definitions:
            raise ValueError(f"plugin {plugin_id} is registered already")
        definition = _Definition(space, name, function)
        if not lazy_register:
            definition.registered()
        _definitions[plugin_id] = definition
        if space not in vars(op):
            setattr(op, space, types.SimpleNamespace())
        setattr(getattr(op, space), name, definition)
        return function
    return decorate


def _definition(plugin_id: str) -> _Definition:
    if plugin_id not in _definitions:
        raise ValueError(f"plugin {plugin_id} is not registered: @ingot.plugin.register(\"{plugin_id}\") "
                         "comes first")
    return _definitions[plugin_id]


def impl(plugin_id: str) -> Callable[[_Function], _Function]:
    """Decorates the function that runs a plugin: (tensors, attributes, outputs, stream) and, where it
    has tactics, tactic. Tensors are Tensor, outputs a tuple of them; unneeded attributes may be
    left out. It queues its work on the stream; on the CPU, where the stream is 0, the work is
    done when it returns. Errors: ValueError."""
    definition = _definition(plugin_id)

    def decorate(function: _Function) -> _Function:
        definition.needs(function, "impl", ["outputs", "stream"])
        definition.impl = function
        return function
    return decorate


def autotune(plugin_id: str) -> Callable[[_Function], _Function]:
    """Decorates the function that lists a plugin's types, formats and tactics: (tensors,
    attributes, outputs), all TensorDesc with shapes; it returns a list of AutoTuneCombination.
    They must include the network's combination. Errors: ValueError."""
    definition = _definition(plugin_id)

    def decorate(function: _Function) -> _Function:
        definition.needs(function, "autotune", ["outputs"])
        definition.autotune = function
        return function
    return decorate
