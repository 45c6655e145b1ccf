# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of functions of ingot.plugin: sizes as expressions, descriptions of
tensors, tensors."""
from __future__ import annotations

import builtins
import threading
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ingot._ingot import (DataType, DimensionOperation, Dims, DynamicPluginTensorDesc, IDimensionExpr,
                          IExprBuilder, PluginTensorDesc, TensorFormat)
from ingot._types import nptype

_current = threading.local()
_NUMBERS: dict[DimensionOperation, Callable[[int, int], int]] = {
    DimensionOperation.SUM: lambda a, b: a + b, DimensionOperation.SUB: lambda a, b: a - b,
    DimensionOperation.PROD: lambda a, b: a * b, DimensionOperation.MAX: builtins.max,
    DimensionOperation.MIN: builtins.min, DimensionOperation.EQUAL: lambda a, b: int(a == b),
    DimensionOperation.LESS: lambda a, b: int(a < b),
}


class shape_rule:
    """Active while a shape rule runs on this thread: expressions can be evaluated."""

    def __init__(self, builder: IExprBuilder) -> None:
        self._builder = builder

    def __enter__(self) -> None:
        _current.builder = self._builder

    def __exit__(self, *error: object) -> None:
        _current.builder = None


class ShapeExpr:
    """The size of a dimension: a number, or an expression of sizes of inputs. `+ - * // == <` and
    cdiv(), max(), min() make others. While output types are inferred, sizes are unknown:
    expressions are fake then, and so are all expressions computed from them."""

    def __init__(self, value: int | IDimensionExpr | ShapeExpr | None = None) -> None:
        self._number: int | None = None
        self._size: IDimensionExpr | None = None
        self._tree: tuple[Any, ...] | None = None
        if isinstance(value, ShapeExpr):
            self._number, self._size, self._tree = value._number, value._size, value._tree
        elif isinstance(value, IDimensionExpr):
            self._size = value
        elif value is not None:
            self._number = int(value)

    @property
    def is_fake(self) -> bool:
        """Whether it is a size that is unknown at this stage."""
        return self._number is None and self._size is None and self._tree is None

    @property
    def is_size_tensor(self) -> bool:
        """Whether a size tensor holds it."""
        return False

    @property
    def is_constant(self) -> bool:
        """Whether the value is known while building. Errors: RuntimeError for a fake one."""
        return self._number is not None or self._built().is_constant()

    def constant_value(self) -> int:
        """The value. Errors: RuntimeError where it is not known."""
        if not self.is_constant:
            raise RuntimeError("the size is not known while building: look at is_constant first")
        return self._number if self._number is not None else self._built().get_constant_value()

    def _built(self) -> IDimensionExpr:
        """For the library. Errors: RuntimeError where no shape rule runs, or for a fake one."""
        builder: IExprBuilder | None = getattr(_current, "builder", None)
        if self.is_fake or builder is None:
            raise RuntimeError("the size is not known at this stage: look at is_fake first")
        if self._number is not None:
            return builder.constant(self._number)
        if self._tree is not None:
            op, first, second = self._tree
            self._size = builder.operation(op, first._built(), second._built())
            self._tree = None
        assert self._size is not None
        return self._size

    def _op(self, op: DimensionOperation, other: int | ShapeExpr, swapped: bool = False) -> ShapeExpr:
        second = other if isinstance(other, ShapeExpr) else ShapeExpr(other)
        first, second = (second, self) if swapped else (self, second)
        if first.is_size_tensor or second.is_size_tensor:
            raise ValueError("a size that a size tensor holds cannot be computed with")
        made = ShapeExpr()
        if first.is_fake or second.is_fake:
            return made
        if first._number is not None and second._number is not None and op in _NUMBERS:
            made._number = _NUMBERS[op](first._number, second._number)
        else:
            made._tree = (op, first, second)
        return made

    def __add__(self, other: int | ShapeExpr) -> ShapeExpr:
        return self._op(DimensionOperation.SUM, other)

    def __radd__(self, other: int) -> ShapeExpr:
        return self._op(DimensionOperation.SUM, other, True)

    def __sub__(self, other: int | ShapeExpr) -> ShapeExpr:
        return self._op(DimensionOperation.SUB, other)

    def __rsub__(self, other: int) -> ShapeExpr:
        return self._op(DimensionOperation.SUB, other, True)

    def __mul__(self, other: int | ShapeExpr) -> ShapeExpr:
        return self._op(DimensionOperation.PROD, other)

    def __rmul__(self, other: int) -> ShapeExpr:
        return self._op(DimensionOperation.PROD, other, True)

    def __floordiv__(self, other: int | ShapeExpr) -> ShapeExpr:
        return self._op(DimensionOperation.FLOOR_DIV, other)

    def __rfloordiv__(self, other: int) -> ShapeExpr:
        return self._op(DimensionOperation.FLOOR_DIV, other, True)

    def __eq__(self, other: Any) -> Any:
        return self._op(DimensionOperation.EQUAL, other)

    def __lt__(self, other: int | ShapeExpr) -> ShapeExpr:
        return self._op(DimensionOperation.LESS, other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return builtins.bool(self.constant_value())

    def __repr__(self) -> str:
        if self._number is not None:
            return f"ShapeExpr[{self._number}]"
        return "ShapeExpr[fake]" if self.is_fake else "ShapeExpr[...]"


class SizeTensorShapeExpr(ShapeExpr):
    """A data-dependent size that the plugin computes: the result of SizeTensorDesc.expr()."""

    def __init__(self, size_tensor_desc: SizeTensorDesc) -> None:
        super().__init__()
        self._desc = size_tensor_desc

    @property
    def is_fake(self) -> bool:
        """Whether it is a size that is unknown at this stage."""
        return self._desc.opt.is_fake

    @property
    def is_size_tensor(self) -> bool:
        """True."""
        return True

    @property
    def is_constant(self) -> bool:
        """False: it is known only at run time."""
        return False

    def _built(self) -> IDimensionExpr:
        builder: IExprBuilder | None = getattr(_current, "builder", None)
        if builder is None or self._desc.index is None:
            raise RuntimeError("the size tensor has to be among the outputs that are returned")
        if self._size is None:
            self._size = builder.declare_size_tensor(self._desc.index, self._desc.opt._built(),
                                                     self._desc.upper_bound._built())
        return self._size


class ShapeExprs:
    """A shape whose sizes are expressions."""

    def __init__(self, length: int, _is_dummy: bool = False) -> None:
        if length > Dims.MAX_DIMS:
            raise ValueError(f"a shape has at most {Dims.MAX_DIMS} dimensions, got {length}")
        self._sizes = [ShapeExpr() for _ in range(length)]

    @classmethod
    def from_tuple(cls, shape_exprs: Sequence[int | ShapeExpr]) -> ShapeExprs:
        """A shape of these sizes."""
        made = cls(len(shape_exprs))
        for i, size in enumerate(shape_exprs):
            made[i] = size
        return made

    def numel(self) -> ShapeExpr:
        """The number of elements."""
        product = ShapeExpr(1)
        for size in self._sizes:
            product = product * size
        return product

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> Iterator[ShapeExpr]:
        return iter(self._sizes)

    def __getitem__(self, index: int) -> ShapeExpr:
        return self._sizes[index]

    def __setitem__(self, index: int, value: int | ShapeExpr) -> None:
        if not isinstance(value, (int, ShapeExpr)):
            raise ValueError(f"a size is an int or a ShapeExpr, got {type(value).__name__}")
        self._sizes[index] = value if isinstance(value, ShapeExpr) else ShapeExpr(value)

    def __repr__(self) -> str:
        return f"ShapeExprs{self._sizes}"


class Shape:
    """Sizes as numbers: those of a run, or those of a build, with -1 for sizes known only at run
    time."""

    def __init__(self, tensor_desc: Sequence[int] | PluginTensorDesc | DynamicPluginTensorDesc | None
                 = None) -> None:
        self._range = tensor_desc if isinstance(tensor_desc, DynamicPluginTensorDesc) else None
        if isinstance(tensor_desc, DynamicPluginTensorDesc):
            self._sizes = list(tensor_desc.desc.dims)
        elif isinstance(tensor_desc, PluginTensorDesc):
            self._sizes = list(tensor_desc.dims)
        else:
            self._sizes = list(tensor_desc or ())

    @property
    def is_dynamic(self) -> bool:
        """Whether a size is known only at run time."""
        return -1 in self._sizes

    def _bound(self, which: str) -> tuple[int, ...]:
        return tuple(getattr(self._range, which)) if self._range is not None else tuple(self._sizes)

    @property
    def opt(self) -> tuple[int, ...]:
        """The expected shape."""
        return self._bound("opt")

    @property
    def min(self) -> tuple[int, ...]:
        """The smallest shape."""
        return self._bound("min")

    @property
    def max(self) -> tuple[int, ...]:
        """The largest shape."""
        return self._bound("max")

    def numel(self) -> int:
        """The number of elements. Errors: ValueError where a size is known only at run time."""
        if self.is_dynamic:
            raise ValueError(f"runs decide the number of elements of {tuple(self._sizes)}")
        return int(np.prod(self._sizes, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sizes)

    def __getitem__(self, index: int) -> int:
        return self._sizes[index]

    def __setitem__(self, index: int, val: int) -> None:
        self._sizes[index] = val

    def __repr__(self) -> str:
        return f"Shape{tuple(self._sizes)}"


class TensorDesc:
    """An input or output of a plugin: its type, and its shape in expressions; in autotune functions
    also its shape in numbers. Make outputs by like(), aliased() or from_shape_expr()."""

    shape_expr: ShapeExprs | None = None
    dtype: DataType | None = None

    def __init__(self, shape_expr: ShapeExprs | None = None, dtype: DataType | None = None,
                 format: TensorFormat | None = None, scale: float | None = None) -> None:
        self.shape_expr = shape_expr
        self.dtype = dtype
        self._format = format
        self._scale = scale
        self._shape: Shape | None = None
        self._aliased: TensorDesc | None = None

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        assert self.shape_expr is not None
        return len(self.shape_expr)

    @property
    def is_size_tensor(self) -> bool:
        """Whether it holds a data-dependent size."""
        return False

    def numel(self) -> int:
        """Number of elements. Errors: ValueError where there is no shape in numbers."""
        return self.shape.numel()

    def like(self) -> TensorDesc:
        """An output of the same type and shape."""
        assert self.shape_expr is not None
        made = TensorDesc(ShapeExprs.from_tuple(list(self.shape_expr)), self.dtype)
        made._format, made._scale, made._shape = self._format, self._scale, self._shape
        return made

    def aliased(self) -> TensorDesc:
        """An output in the memory of this input."""
        made = self.like()
        made._aliased = self
        return made

    def get_aliased(self) -> TensorDesc | None:
        """The input whose memory it uses; None for memory of its own."""
        return self._aliased

    @property
    def is_aliased(self) -> bool:
        """Whether it uses an input's memory."""
        return self._aliased is not None

    @property
    def has_shape_expr(self) -> bool:
        """Whether there is a shape in expressions."""
        return self.shape_expr is not None

    @property
    def has_shape(self) -> bool:
        """Whether there is a shape in numbers."""
        return self._shape is not None

    @property
    def is_dynamic(self) -> bool:
        """Whether a size is known only at run time. Errors: ValueError without a shape in
        numbers."""
        return self.shape.is_dynamic

    def _needed(self, value: Any) -> Any:
        if self._shape is None:
            raise ValueError("there is no shape in numbers at this stage: look at has_shape first")
        return value

    @property
    def shape(self) -> Shape:
        """The shape in numbers. Errors: ValueError where there is none."""
        made: Shape = self._needed(self._shape)
        return made

    @shape.setter
    def shape(self, value: Shape) -> None:
        self._shape = value

    @property
    def format(self) -> TensorFormat:
        """The memory format. Errors: ValueError without a shape in numbers."""
        made: TensorFormat = self._needed(self._format)
        return made

    @format.setter
    def format(self, value: TensorFormat) -> None:
        self._format = value

    @property
    def scale(self) -> float:
        """The scale of INT8 without Q/DQ, else -1. Errors: ValueError without a shape in
        numbers."""
        made: float = self._needed(self._scale)
        return made

    @scale.setter
    def scale(self, value: float) -> None:
        self._scale = value


class SizeTensorDesc(TensorDesc):
    """An output, an INT32 scalar, that holds a data-dependent size; size_tensor() makes it,
    expr() is the size for shapes of other outputs."""

    def __init__(self, opt: ShapeExpr, upper_bound: ShapeExpr) -> None:
        super().__init__(ShapeExprs(0), DataType.INT32)
        self._opt, self._upper_bound = opt, upper_bound
        self._index: int | None = None
        self._expr = SizeTensorShapeExpr(self)

    @property
    def is_size_tensor(self) -> bool:
        """True."""
        return True

    @property
    def opt(self) -> ShapeExpr:
        """The expected size."""
        return self._opt

    @property
    def upper_bound(self) -> ShapeExpr:
        """The upper bound of the size."""
        return self._upper_bound

    @property
    def index(self) -> int | None:
        """The index among the outputs; None before it was returned."""
        return self._index

    def expr(self) -> SizeTensorShapeExpr:
        """The size."""
        return self._expr


class Tensor:
    """An input or output during a run. numpy.asarray() takes it where the engine runs on the CPU,
    libraries for GPUs take its __cuda_array_interface__; do not write inputs."""

    data_ptr = 0
    dtype = DataType.FLOAT
    shape = Shape()
    format = TensorFormat.LINEAR
    scale = -1.0
    strides: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._stream = 0
        self._aliased: Tensor | None = None

    @classmethod
    def _of(cls, desc: PluginTensorDesc, address: int, strides: Sequence[int], stream: int) -> Tensor:
        made = cls()
        made.data_ptr, made.dtype, made.shape = address, desc.type, Shape(desc)
        made.format, made.scale = desc.format, desc.scale
        made.strides, made._stream = tuple(strides), stream
        return made

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_data_dependent(self) -> bool:
        """Whether a size depends on data."""
        return self.shape.is_dynamic

    def numel(self) -> int:
        """The number of elements. Errors: ValueError where it depends on data."""
        return self.shape.numel()

    def get_aliased(self) -> Tensor | None:
        """The tensor with the same memory; None for memory of its own."""
        return self._aliased

    @property
    def is_aliased(self) -> bool:
        """Whether another tensor has the same memory."""
        return self._aliased is not None

    def aliased(self, shape: Shape | Sequence[int] | PluginTensorDesc | None = None) -> Tensor:
        """The same elements under another shape. Errors: ValueError for another element count."""
        made = Tensor()
        made.__dict__.update(self.__dict__)
        if shape is not None:
            made.shape = shape if isinstance(shape, Shape) else Shape(shape)
            if not self.is_data_dependent and made.numel() != self.numel():
                raise ValueError(f"{made.shape} has {made.numel()} elements, expected {self.numel()}")
            sizes = list(made.shape)
            made.strides = tuple(int(np.prod(sizes[i + 1:], dtype=np.int64))
                                 for i in range(len(sizes)))
        made._aliased = self
        return made

    def _interface(self) -> dict[str, Any]:
        try:
            dtype = np.dtype(nptype(self.dtype))
        except TypeError:
            raise AttributeError(f"numpy has no type for {self.dtype.name}") from None
        return {"shape": tuple(self.shape), "typestr": dtype.str, "version": 3,
                "data": (self.data_ptr, False),
                "strides": tuple(stride * dtype.itemsize for stride in self.strides)}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._stream != 0:
            raise AttributeError("the tensor lies in a GPU's memory: see __cuda_array_interface__")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._stream == 0:
            raise AttributeError("the tensor lies in the host's memory: see __array_interface__")
        return self._interface() | {"stream": self._stream}
