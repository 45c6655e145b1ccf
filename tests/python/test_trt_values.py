# SPDX-License-Identifier: Apache-2.0
"""The Python package: enumerations, shapes, weights, types, host memory."""
import collections.abc
import pathlib
import pickle
import re

import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402

INCLUDE = package.REPOSITORY / "include"
PYTHON_NAMES = {"ErrorCode": "ErrorCodeTRT"}
NOT_FOR_PROGRAMS = {"APILanguage"}


def enumerations():
    """(name in Python, {member: number}) of every enumeration that a header declares."""
    found = []
    for path in sorted({*INCLUDE.glob("NvInfer*.h"), *INCLUDE.glob("ingot/*.h")}
                       - {INCLUDE / "ingot" / "plugin_v2.h"}):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for name, body in re.findall(r"enum class (\w+) : \w+ \{(.*?)\};", text, re.DOTALL):
            if name in NOT_FOR_PROGRAMS:
                continue
            members = {}
            for member, value in re.findall(r"k(\w+)(?: TRT_DEPRECATED_ENUM)? = ([^,]+)", body):
                value = value.strip()
                shift = re.fullmatch(r"1ULL << (\d+)", value)
                members[member] = (1 << int(shift[1]) if shift else members[value[1:]]
                                   if value.startswith("k") else int(value))
            found.append((PYTHON_NAMES.get(name, name), members))
    return found


ENUMERATIONS = enumerations()


def test_headers_declare_enumerations():
    assert len(ENUMERATIONS) > 60


@pytest.mark.parametrize("name, members", ENUMERATIONS, ids=[name for name, _ in ENUMERATIONS])
def test_numbers_of_enumerations(name, members):
    enumeration = trt.Logger.Severity if name == "Severity" else getattr(trt, name)
    for member, value in members.items():
        assert int(getattr(enumeration, member)) == value, f"{name}.{member}"
    added = set(enumeration.__members__) - set(members)
    # KV_CACHE_UPDATE is KVCACHE_UPDATE under its name in Python's bindings.
    assert added == {"CalibrationAlgoType": {"MSE_CALIBRATION"},
                     "LayerType": {"KV_CACHE_UPDATE"}}.get(name, set())


def test_enumerations_behave_as_integers():
    flag = trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH
    assert 1 << int(flag) == 1 << flag == 1 << 16
    assert trt.BuilderFlag.FP16 | 4 == 4
    assert str(trt.DataType.FLOAT) == "DataType.FLOAT"
    assert trt.DataType.HALF.name == "HALF" and trt.DataType.HALF.value == 1
    assert trt.DataType(3) is trt.int32
    assert trt.float32 and trt.Logger.INTERNAL_ERROR  # though their numbers are 0
    assert trt.TensorIOMode.INPUT != trt.TensorIOMode.OUTPUT
    assert {trt.float32: 1}[trt.DataType.FLOAT] == 1
    assert trt.Logger.INFO is trt.Logger.Severity.INFO is trt.ILogger.Severity.INFO
    assert trt.BuilderFlag.WEIGHTLESS is trt.BuilderFlag.STRIP_PLAN
    with pytest.raises(ValueError):
        trt.DataType(77)


@pytest.mark.parametrize("name, numpy_type", [
    ("float32", np.float32), ("float16", np.float16), ("int8", np.int8), ("int32", np.int32),
    ("int64", np.int64), ("uint8", np.uint8), ("bool", np.bool_)])
def test_types_of_numpy(name, numpy_type):
    dtype = getattr(trt, name)
    assert trt.nptype(dtype) is numpy_type
    assert dtype.itemsize == np.dtype(numpy_type).itemsize
    weights = trt.Weights(np.ones(3, numpy_type))
    assert weights.dtype == dtype and weights.nbytes == 3 * dtype.itemsize


def test_types_that_numpy_has_by_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert trt.nptype(trt.bfloat16) is ml_dtypes.bfloat16
    assert trt.nptype(trt.fp8) is ml_dtypes.float8_e4m3fn
    assert trt.nptype(trt.e8m0) is ml_dtypes.float8_e8m0fnu
    assert trt.Weights(np.ones(2, ml_dtypes.bfloat16)).dtype == trt.bfloat16
    for small in (trt.int4, trt.fp4):
        assert small.itemsize == 0.5
        with pytest.raises(TypeError, match="smaller than a byte"):
            trt.nptype(small)


def test_volume():
    assert trt.volume((2, 3, 4)) == 24
    assert trt.volume(trt.Dims((5, 0))) == 0
    assert trt.volume(()) == 1


def test_dims_are_like_tuples():
    dims = trt.Dims((1, 3, 224, -1))
    assert dims == (1, 3, 224, -1) and dims == [1, 3, 224, -1] and dims != (1, 3)
    assert tuple(dims) == (1, 3, 224, -1) and list(dims)[-1] == -1
    assert len(dims) == 4 and dims[1] == 3 and dims[-2] == 224 and dims[1:3] == (3, 224)
    assert repr(dims) == str(dims) == "(1, 3, 224, -1)"
    assert 3 in dims and 7 not in dims
    assert hash(dims) == hash((1, 3, 224, -1))
    assert dims + (5,) == (1, 3, 224, -1, 5) and (5,) + dims == (5, 1, 3, 224, -1)
    dims[3] = 224
    assert np.prod(dims) == 1 * 3 * 224 * 224
    assert np.empty(trt.Dims((2, 3))).shape == (2, 3)
    assert np.zeros(6).reshape(trt.Dims((2, 3))).shape == (2, 3)
    assert (7, *trt.Dims((2, 3))) == (7, 2, 3)
    assert not trt.Dims(()) and trt.Dims((0,))
    assert pickle.loads(pickle.dumps(trt.Dims((4, 5)))) == (4, 5)
    assert trt.Dims(np.array([3, 4])) == (3, 4)
    assert dims != "no shape" and (dims == None) is False  # noqa: E711
    assert trt.Dims.MAX_DIMS == 8
    assert isinstance(dims, collections.abc.Sequence)
    assert list(reversed(dims)) == [224, 224, 3, 1] and dims.count(224) == 2
    assert dims.index(224) == 2 and "h" not in dims
    with pytest.raises(ValueError):
        dims.index(5)


def test_dims_of_given_rank():
    assert trt.Dims2(1, 2) == (1, 2) == trt.Dims2((1, 2))
    assert trt.Dims3(1, 2, 3) == (1, 2, 3)
    assert trt.Dims4([1, 2, 3, 4]) == (1, 2, 3, 4)
    assert trt.Dims4() == (0, 0, 0, 0)
    size = trt.DimsHW(5, 6)
    size.h = 7
    assert size == (7, 6) and size.w == 6 and isinstance(size, trt.Dims2)
    assert isinstance(trt.Dims4(), trt.Dims)


@pytest.mark.parametrize("make, error, text", [
    (lambda: trt.Dims(range(9)), TypeError, "incompatible function arguments"),
    (lambda: trt.Dims("abc"), TypeError, "incompatible function arguments"),
    (lambda: trt.Dims((1.5, 2)), TypeError, "incompatible function arguments"),
    (lambda: trt.Dims3((1, 2)), ValueError, "the number of sizes does not fit the class"),
    (lambda: trt.Dims((1, 2))[2], IndexError, "index out of range"),
    (lambda: trt.Dims((1, 2))[-3], IndexError, "index out of range"),
    (lambda: trt.Permutation()[8], IndexError, "index out of range"),
    (lambda: len(trt.IOptimizationProfile), TypeError, "has no len"),
    (lambda: trt.Weights([1.0, 2.0]), TypeError, "weights are a numpy array"),
    (lambda: trt.Weights(np.ones(2, np.complex64)), TypeError, "weights of numpy type complex64"),
    (lambda: trt.Weights(np.ones(2)), TypeError, "convert it, for instance with array.astype"),
    (lambda: trt.TimingCacheKey.parse("0x12"), ValueError, "32 hexadecimal digits"),
])
def test_misuse_of_values(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make()


def test_permutations():
    permutation = trt.Permutation((2, 0, 1))
    assert list(permutation)[:4] == [2, 0, 1, 3] and len(permutation) == 8
    permutation[0] = 1
    assert permutation[0] == 1


def test_weights_do_not_copy_dense_arrays():
    array = np.arange(6, dtype=np.float32)
    weights = trt.Weights(array)
    assert weights.address == array.ctypes.data and weights.size == len(weights) == 6
    assert weights.numpy() is array
    transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_array_equal(trt.Weights(transposed).numpy(), transposed)
    raw = trt.Weights(trt.float32, array.ctypes.data, 6)
    np.testing.assert_array_equal(raw.numpy(), array)
    empty = trt.Weights(trt.int8)
    assert not empty and empty.numpy().shape == (0,) and trt.Weights().dtype == trt.float32


def test_timing_cache_keys():
    text = "0x00112233445566778899aabbccddeeff"
    key = trt.TimingCacheKey.parse(text)
    assert str(key) == text and key == trt.TimingCacheKey.parse(text.upper().replace("X", "x"))
    value = trt.TimingCacheValue(5, 0.25)
    assert (value.tactic_hash, value.timing_msec) == (5, 0.25)


def test_versions():
    import ingot
    import tensorrt_rtx
    assert trt.__version__.split(".")[0] == "11" and tensorrt_rtx.__version__ == "1.6.0.0"
    assert ingot.__version__ == "0.1.0"
    assert tensorrt_rtx.Builder is trt.Builder is ingot.Builder


def test_the_package_is_typed():
    assert (pathlib.Path(trt.volume.__code__.co_filename).parent / "py.typed").is_file()
