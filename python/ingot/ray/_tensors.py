# SPDX-License-Identifier: Apache-2.0
"""Element types in the protocol's words and numpy's."""
import typing

import numpy as np

from ingot.ray._errors import Refused

Array = np.ndarray[typing.Any, typing.Any]
Arrays = dict[str, Array]

# The name of an input that is the bytes of a request and nothing else.
RAW = "raw_input"

_TYPES: dict[str, typing.Any] = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16,
    "FP32": np.float32, "FP64": np.float64, "BYTES": np.object_,
}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def _bfloat16() -> typing.Any:
    import ml_dtypes  # which tritonclient needs, too
    return ml_dtypes.bfloat16


def numpy_type(name: str) -> np.dtype[typing.Any]:
    """Errors: KeyError for a name that is none."""
    found: np.dtype[typing.Any] = np.dtype(_bfloat16() if name == "BF16" else _TYPES[name])
    return found


def type_name(array: Array) -> str:
    """FP32 and its like; "" for types that the protocol does not have."""
    return "BF16" if array.dtype.name == "bfloat16" else _NAMES.get(array.dtype, "")


def count_of(shape: typing.Sequence[int]) -> int:
    """The number of elements; Python's integers do not overflow."""
    count = 1
    for size in shape:
        count *= size
    return count


def shape_text(shape: typing.Iterable[int]) -> str:
    """As the protocol's messages have it: [1,8,8]."""
    return f"[{','.join(str(size) for size in shape)}]"


def from_bytes(what: str, datatype: str, shape: typing.Sequence[int], data: bytes | memoryview) -> Array:
    """The array of a binary tensor, in place. Errors: Refused."""
    if datatype == "BYTES":
        return np.empty(0, np.object_)  # engines take no strings: the type alone matters
    kind = numpy_type(datatype)
    expected = count_of(shape) * kind.itemsize
    if len(data) != expected:
        raise Refused("INVALID_ARG", f"{what} has {len(data)} bytes, expected {expected} bytes for "
                                     f"{datatype}{shape_text(shape)}")
    return np.frombuffer(data, kind).reshape(shape)
