# SPDX-License-Identifier: Apache-2.0
"""One reference case: explicit inputs, the results by a formula, the same by ONNX's reference evaluator where
the op has a counterpart there, and its line in the grammar of tests/ops/op_case.h."""
import math
import zlib

import ml_dtypes
import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f4e2m1": ml_dtypes.float4_e2m1fn}
INTEGERS = {"i4": (-8, 7, ml_dtypes.int4), "u4": (0, 15, ml_dtypes.uint4), "i8": (-128, 127, np.int8),
            "u8": (0, 255, np.uint8), "i16": (-2**15, 2**15 - 1, np.int16), "u16": (0, 2**16 - 1, np.uint16),
            "i32": (-2**31, 2**31 - 1, np.int32), "i64": (-2**63, 2**63 - 1, np.int64)}
OPSET = 24
CASES = []


def numpy_type(dtype):
    return np.bool_ if dtype == "bool" else FLOATS[dtype] if dtype in FLOATS else INTEGERS[dtype][2]


def limits(dtype):
    """The lowest and highest value of an integer type; None for a float."""
    return INTEGERS[dtype][:2] if dtype in INTEGERS else None


def rounded(x, dtype, saturate=False):
    """x rounded to the type: to nearest, ties to even."""
    if saturate and dtype in FLOATS:
        most = float(ml_dtypes.finfo(FLOATS[dtype]).max)
        x = np.clip(x, -most, most)
    with np.errstate(over="ignore"):
        y = np.asarray(x).astype(numpy_type(dtype))
    return y.astype(np.float64) if dtype in FLOATS else y.astype(bool if dtype == "bool" else np.int64)


def random_numbers(seed, count, low, high):
    """Integers of [low, high]: a linear congruential generator, the same on every machine."""
    state, out = seed * 2 + 1, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(low + (state >> 33) % (high - low + 1))
    return out


class Given:
    """An input: a type whose sizes may be symbols, and values, or a range of random ones: quarters for floats."""

    def __init__(self, dtype, dims, values=None, span=None):
        self.dtype, self.dims, self.values = dtype, dims, values
        self.span = span or ((-3, 3) if dtype in FLOATS else (0, 1) if dtype == "bool"
                             else (max(-99, limits(dtype)[0]), min(99, limits(dtype)[1])))

    def array(self, symbols, seed):
        shape = [symbols.get(d, d) for d in self.dims]
        values, count = self.values, math.prod(shape)
        if values is None and self.dtype in FLOATS:
            low, high = self.span
            values = [v / 4 for v in random_numbers(seed, count, round(low * 4), round(high * 4))]
        elif values is None:
            values = random_numbers(seed, count, *self.span)
        assert len(values) == count, f"{len(values)} values for {self.dtype}{shape}"
        return rounded(np.array(values).reshape(shape), self.dtype)

    def text(self, array):
        numbers = ",".join(number(v, self.dtype, None) for v in array.reshape(-1))
        return f"{self.dtype}[{','.join(map(str, self.dims))}]:={numbers}"


def number(value, dtype, digits):
    """All digits of a value, or so many."""
    if dtype not in FLOATS:
        return str(int(value))
    text = repr(float(value)) if digits is None else format(float(value), f".{digits}g")
    return text.removesuffix(".0")


def attribute(name, value):
    if isinstance(value, bool):
        return f"{name}={str(value).lower()}"
    if isinstance(value, str):
        quoted = name != "dtype" and not value.startswith("?")
        return f'{name}="{value}"' if quoted else f"{name}={value.removeprefix('?')}"
    if isinstance(value, (list, tuple)):
        return f"{name}=[{','.join(map(str, value))}]"
    return f"{name}={value}"


def by_onnx(op, arrays, outputs=1, **attrs):
    """Results of ONNX's reference evaluator, which computes in the arrays' types."""
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph([helper.make_node(op, names, results, **attrs)], "reference",
                              [helper.make_tensor_value_info(n, 1, None) for n in names if n],
                              [helper.make_tensor_value_info(n, 1, None) for n in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    feeds = {n: a for n, a in zip(names, arrays) if n}
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feeds)


def agree(line, want, onnx):
    for index, (ours, theirs) in enumerate(zip(want, onnx)):
        theirs = np.asarray(theirs).astype(np.float64)
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=1e-5, atol=1e-5, equal_nan=True):
            raise AssertionError(f"{line}\n  result {index} by its formula: {ours.tolist()}\n"
                                 f"  by ONNX's evaluator: {theirs.tolist()}")


def case(op, attrs, given, formula, *, out=None, exact=False, saturate=False, symbols=None, onnx=None, tol=None):
    """Adds a case. formula and onnx take the inputs' arrays and give the results. out: the results' types, else
    the first input's. exact: results are the formula's, rounded once. Attributes that begin with ? are symbolic."""
    symbols = symbols or {}
    head = " ".join(["op", op, *(attribute(n, v) for n, v in attrs.items())])
    types = out or [given[0].dtype]
    arrays = [g.array(symbols, zlib.crc32(f"{head} {i} {g.dtype}{g.dims}".encode())) for i, g in enumerate(given)]
    inputs = " ".join(g.text(a) for g, a in zip(given, arrays))
    with np.errstate(all="ignore"):
        want = formula(*arrays)
    want = list(want) if isinstance(want, tuple) else [want]
    if onnx is not None:
        agree(f"{head} | {inputs}", want, onnx(*arrays))
    want = [rounded(w, t, saturate) if exact or t not in FLOATS else w for w, t in zip(want, types)]
    assert len(want) == len(types)
    options = ["want " + ",".join(number(v, t, None if exact else 10) for v in w.reshape(-1))
               for w, t in zip(want, types)]
    options += ["exact"] * exact + [f"tol {tol}"] * (tol is not None)
    options += [f"{name}={size}" for name, size in symbols.items()]
    CASES.append(f"{head}\n  | {inputs}\n  | {' '.join(options)}\n")
