# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy, torch, CuPy, JAX and other libraries with DLPack, as ingot.compile() sees
them: an address, a shape, a type, a place; and new arrays of the same kind for outputs."""
import dataclasses
import sys
import typing
from collections.abc import Sequence

import numpy as np

from ingot import _cuda
from ingot._ingot import DataType, _Tensor, _capsule_over
from ingot._types import nptype, storage

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLPack's device types
_TYPES: dict[np.dtype[typing.Any], DataType] = {np.dtype(np.float32): DataType.FLOAT, np.dtype(np.float16): DataType.HALF,
          np.dtype(np.int8): DataType.INT8, np.dtype(np.int32): DataType.INT32,
          np.dtype(np.int64): DataType.INT64, np.dtype(np.bool_): DataType.BOOL,
          np.dtype(np.uint8): DataType.UINT8}
_NAMED = {"bfloat16": DataType.BF16, "float8_e4m3fn": DataType.FP8,
          "float8_e8m0fnu": DataType.E8M0}


@dataclasses.dataclass
class Array:
    """Elements in row-major order; `owner` keeps the memory alive."""
    address: int
    shape: tuple[int, ...]
    dtype: DataType
    on_gpu: bool
    owner: object


def kind_of(value: object) -> str:
    """The library that an array belongs to: numpy, torch, cupy, jax or dlpack."""
    root = type(value).__module__.partition(".")[0]
    if isinstance(value, (np.ndarray, np.generic)):
        return "numpy"
    return {"torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax"}.get(root, "dlpack")


def stream_of(stream: typing.Any, kind: str, device: int) -> int:
    """The address of the given stream, else of the library's current one."""
    if stream is None:
        if kind == "torch":
            return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
        if kind == "cupy":
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
        return 0
    for attribute in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    return int(stream)


def _numpy_type(what: str, dtype: np.dtype[typing.Any]) -> DataType:
    found = _TYPES.get(dtype, _NAMED.get(dtype.name))
    if found is None:
        raise TypeError(f"{what}: got numpy type {dtype}, which the library does not have")
    return found


def from_any(what: str, value: typing.Any, stream: int) -> Array:
    """A caller's value as an Array, in place where it is dense, else a dense copy."""
    if isinstance(value, (np.ndarray, np.generic)):
        dense = np.ascontiguousarray(value).reshape(np.shape(value))
        return Array(dense.ctypes.data, dense.shape, _numpy_type(what, dense.dtype), False, dense)
    if not hasattr(value, "__dlpack__"):
        if hasattr(value, "__array__") or isinstance(value, (list, tuple, int, float)):
            return from_any(what, np.asarray(value), stream)
        raise TypeError(f"{what}: got {type(value).__name__}, expected a numpy array or an object "
                        f"with __dlpack__, such as a tensor of torch, CuPy or JAX")
    if kind_of(value) == "torch" and value.requires_grad:
        value = value.detach()
    on_gpu = value.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)
    # DLPack's number for the legacy default stream is 1.
    tensor = _Tensor(value.__dlpack__(stream=stream or 1) if on_gpu else value.__dlpack__())
    if not tensor.is_dense:
        if hasattr(value, "contiguous"):
            return from_any(what, value.contiguous(), stream)
        if on_gpu:
            raise ValueError(f"{what}: the tensor is not contiguous; pass a contiguous copy")
        return from_any(what, np.ascontiguousarray(np.from_dlpack(value)), stream)
    return Array(tensor.address, tensor.shape, tensor.dtype, on_gpu, tensor)


class DeviceTensor:
    """An output in GPU memory for callers whose library is unknown: it is passed by DLPack."""

    def __init__(self, shape: Sequence[int], dtype: DataType, device: int, stream: int) -> None:
        self.shape, self.dtype, self.device = tuple(shape), dtype, device
        count = int(np.prod(shape, dtype=np.int64))
        self._memory = _cuda.Memory(count * storage(dtype).itemsize, device, stream)
        self._stream = stream

    @property
    def address(self) -> int:
        return self._memory.address

    def __dlpack__(self, **options: typing.Any) -> object:
        if options.get("stream") not in (None, -1, self._stream, self._stream or 1):
            with _cuda.current(self.device):
                _cuda.synchronize(self._stream)
        return _capsule_over(self.address, list(self.shape), self.dtype, CUDA, self.device,
                             self._memory)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.device)

    def numpy(self) -> np.ndarray[typing.Any, typing.Any]:
        """A copy in host memory."""
        result: np.ndarray[typing.Any, typing.Any] = np.empty(self.shape, nptype(self.dtype))
        with _cuda.current(self.device):
            _cuda.copy(_cuda.DEVICE_TO_HOST, result.ctypes.data, self.address, result.nbytes,
                       self._stream)
            _cuda.synchronize(self._stream)
        return result


def _torch_type(dtype: DataType) -> object:
    torch: typing.Any = sys.modules["torch"]
    return {DataType.FLOAT: torch.float32, DataType.HALF: torch.float16,
            DataType.BF16: torch.bfloat16, DataType.INT8: torch.int8, DataType.INT32: torch.int32,
            DataType.INT64: torch.int64, DataType.BOOL: torch.bool,
            DataType.UINT8: torch.uint8}[dtype]


def empty(kind: str, shape: Sequence[int], dtype: DataType, gpu: int | None,
          stream: int) -> tuple[typing.Any, int]:
    """A new array of the caller's library: (the caller's array, its address). `gpu` is the
    ordinal of the GPU, None for host memory."""
    made: typing.Any
    if kind == "torch":
        torch: typing.Any = sys.modules["torch"]
        place = "cpu" if gpu is None else f"cuda:{gpu}"
        made = torch.empty(tuple(shape), dtype=_torch_type(dtype), device=place)
        return made, made.data_ptr()
    if gpu is not None and kind == "cupy":
        made = sys.modules["cupy"].empty(tuple(shape), nptype(dtype))
        return made, made.data.ptr
    if gpu is not None and kind != "numpy":
        made = DeviceTensor(shape, dtype, gpu, stream)
        return made, made.address
    made = np.empty(tuple(shape), nptype(dtype))
    return made, made.ctypes.data


def finished(kind: str, value: typing.Any) -> typing.Any:
    """An output as an array of the caller's library."""
    if kind == "jax" and not type(value).__module__.startswith("jax"):
        return sys.modules["jax"].dlpack.from_dlpack(value)
    return value
