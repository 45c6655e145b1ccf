# SPDX-License-Identifier: Apache-2.0
"""Ingot: an inference compiler with TensorRT's Python API.

`import ingot as trt` serves programs written for TensorRT; the package ingot-tensorrt has modules
named `tensorrt` and `tensorrt_rtx` that re-export it. Beyond TensorRT there are `ingot.compile()`,
which makes a function of a model, `ingot.slim()`, which simplifies one, and `ingot.config`, which
reads configuration files.

Objects made by other objects keep them alive. Methods that fail return None or False, as in
TensorRT, and report why to the error recorder, or else to the logger.
"""
import collections.abc
import enum

from ingot import _cuda, _ingot
from ingot._ingot import *  # noqa: F403
from ingot._ingot import DataType, Dims, ILogger, LayerType
from ingot._compile import CompiledModel, NotFinite, TensorSpec, compile
from ingot._slim import slim
from ingot._types import itemsize as _itemsize
from ingot._types import nptype, volume

_cuda.tell_where_nvrtc_is()
collections.abc.Sequence.register(Dims)

# Ingot's own; the modules tensorrt and tensorrt_rtx have those of the API that they stand for.
__version__ = _ingot.library_version()

float32 = DataType.FLOAT
float16 = DataType.HALF
bfloat16 = DataType.BF16
int8 = DataType.INT8
int32 = DataType.INT32
int64 = DataType.INT64
uint8 = DataType.UINT8
bool = DataType.BOOL
fp8 = DataType.FP8
int4 = DataType.INT4
fp4 = DataType.FP4
e8m0 = DataType.E8M0
# A member with the number 0 is true, as in TensorRT.
for _enumeration in [*vars(_ingot).values(), ILogger.Severity]:
    if isinstance(_enumeration, enum.EnumMeta):
        _enumeration.__bool__ = lambda member: True
del _enumeration
# The name that TensorRT gives it in Python.
LayerType._member_map_["KV_CACHE_UPDATE"] = LayerType.KVCACHE_UPDATE
type.__setattr__(LayerType, "KV_CACHE_UPDATE", LayerType.KVCACHE_UPDATE)
DataType.itemsize = property(_itemsize, doc="Bytes of an element; 0.5 for types of 4 bits.")

__all__ = [name for name in dir(_ingot) if not name.startswith("_")] + [
    "CompiledModel", "NotFinite", "TensorSpec", "compile", "slim", "nptype", "volume", "float32", "float16", "bfloat16",
    "int8", "int32", "int64", "uint8", "bool", "fp8", "int4", "fp4", "e8m0",
]
