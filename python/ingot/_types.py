# SPDX-License-Identifier: Apache-2.0
"""Data types in numpy's terms, and arrays over memory that another object owns."""
import typing
from collections.abc import Iterable

import numpy as np

from ingot._ingot import DataType

_NUMPY: dict[DataType, type] = {
    DataType.FLOAT: np.float32,
    DataType.HALF: np.float16,
    DataType.INT8: np.int8,
    DataType.INT32: np.int32,
    DataType.INT64: np.int64,
    DataType.BOOL: np.bool_,
    DataType.UINT8: np.uint8,
}
# From the package ml_dtypes, where it is installed.
_ML_DTYPES = {
    DataType.BF16: "bfloat16",
    DataType.FP8: "float8_e4m3fn",
    DataType.E8M0: "float8_e8m0fnu",
}
_BITS = {DataType.FLOAT: 32, DataType.INT32: 32, DataType.INT64: 64, DataType.HALF: 16,
         DataType.BF16: 16, DataType.INT4: 4, DataType.FP4: 4}


def nptype(trt_type: DataType) -> type:
    """The numpy type of a DataType.

    BF16, FP8 and E8M0 need the package ml_dtypes. Errors: TypeError for types that numpy cannot
    have.
    """
    trt_type = DataType(trt_type)
    if trt_type in _NUMPY:
        return _NUMPY[trt_type]
    if trt_type in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(f"{trt_type} has no numpy type: install the package ml_dtypes, which "
                            f"adds {_ML_DTYPES[trt_type]}") from None
        found: type = getattr(ml_dtypes, _ML_DTYPES[trt_type])
        return found
    raise TypeError(f"{trt_type} has no numpy type: its elements are smaller than a byte")


def storage(trt_type: DataType) -> np.dtype[typing.Any]:
    """A numpy type of the same size; uint8 for types of 4 bits, of which two share a byte."""
    try:
        return np.dtype(nptype(trt_type))
    except TypeError:
        return np.dtype(np.uint16 if _BITS.get(DataType(trt_type)) == 16 else np.uint8)


def itemsize(trt_type: DataType) -> float:
    bits = _BITS.get(trt_type, 8)
    return bits // 8 if bits >= 8 else bits / 8


def volume(iterable: Iterable[int]) -> int:
    """The number of elements of a shape: the product of its sizes, 1 for none."""
    count = 1
    for size in iterable:
        count *= size
    return count


class _Kept(np.ndarray[typing.Any, np.dtype[typing.Any]]):
    """An array that keeps the owner of its memory alive."""
    owner: object


def keeping(array: np.ndarray[typing.Any, typing.Any], owner: object) -> _Kept:
    kept = array.view(_Kept)
    kept.owner = owner
    return kept
