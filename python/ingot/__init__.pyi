# For type checkers: what __init__.py gives, which they cannot follow.
from typing import Final

from ingot._compile import CompiledModel as CompiledModel
from ingot._compile import NotFinite as NotFinite
from ingot._compile import TensorSpec as TensorSpec
from ingot._compile import compile as compile
from ingot._ingot import *
from ingot._ingot import DataType as _DataType
from ingot._slim import slim as slim
from ingot._types import nptype as nptype
from ingot._types import volume as volume

__version__: str

float32: Final = _DataType.FLOAT
float16: Final = _DataType.HALF
bfloat16: Final = _DataType.BF16
int8: Final = _DataType.INT8
int32: Final = _DataType.INT32
int64: Final = _DataType.INT64
uint8: Final = _DataType.UINT8
bool: Final = _DataType.BOOL
fp8: Final = _DataType.FP8
int4: Final = _DataType.INT4
fp4: Final = _DataType.FP4
e8m0: Final = _DataType.E8M0
