# SPDX-License-Identifier: Apache-2.0
"""quantize, dequantize, quantized_dot, and dot of 8-bit floats."""
import numpy as np
from onnx import TensorProto

from . import formulas
from .case import FLOATS, Given, by_onnx, case, limits, numpy_type, rounded

INF, NAN = float("inf"), float("nan")
CODES = {"i4": TensorProto.INT4, "u4": TensorProto.UINT4, "i8": TensorProto.INT8, "u8": TensorProto.UINT8,
         "i16": TensorProto.INT16, "u16": TensorProto.UINT16, "f8e4m3": TensorProto.FLOAT8E4M3FN,
         "f8e5m2": TensorProto.FLOAT8E5M2, "f4e2m1": TensorProto.FLOAT4E2M1}
# Values between two steps, on either side of zero, and far outside.
TIES = [0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.25, -0.25, 3.75, -3.75, 0.0, -0.0]
# Powers of two: quotients and products are exact.
STEPS = [0.25, 0.5, 1, 2, 0.125]


def scales(dtype, dims, count):
    return Given(dtype, dims, (STEPS * count)[:count])


def quantize(dtype, x, scale, zero=None, axis=1, block=0, saturate=True, compare=True, **options):
    given = [x, scale] + ([zero] if zero else [])

    def formula(x, scale, zero=None):
        return formulas.quantize(x, scale, zero, axis, block, limits(dtype))

    def onnx(x, scale, zero=None):
        zeros = [] if zero is None else [zero.astype(numpy_type(dtype))]
        scale = scale.reshape(()) if scale.size == 1 and not block else scale
        zeros = [z.reshape(scale.shape) for z in zeros]
        y = by_onnx("QuantizeLinear", [x.astype(np.float32), scale.astype(np.float32), *zeros], axis=axis,
                    block_size=block, saturate=int(saturate), output_dtype=CODES[dtype])[0]
        return [y.astype(np.float64)]
    unrounded = dtype in FLOATS  # the formula leaves the cast to the case
    case("quantize", {"axis": axis, "block": block, "dtype": dtype, "saturate": saturate}, given,
         (lambda *v: rounded(formula(*v), dtype, saturate)) if unrounded else formula,
         out=[dtype], exact=True, onnx=onnx if compare else None, **options)


def quantizations():
    quantize("i8", Given("f32", [12], TIES), Given("f32", [], [1]))
    quantize("u8", Given("f32", [12], TIES), Given("f32", [], [0.5]), Given("u8", [], [3]), axis=0)
    quantize("i8", Given("f32", [6], [127.5, 126.5, -128.5, -129, 1e9, -1e9]), Given("f32", [], [1]))
    quantize("u8", Given("f32", [6], [254.5, 255.5, -0.5, -1.5, 1e9, -1e9]), Given("f32", [1], [1]))
    quantize("i8", Given("f32", [2], [INF, -INF]), Given("f32", [], [1]), Given("i8", [], [-7]), compare=False)
    quantize("u8", Given("f32", [4], [-300, -2, 250, 300]), Given("f32", [], [1]), Given("u8", [], [200]), axis=0)
    quantize("i16", Given("f32", [5], [32767.5, -32769, 0.5, 1.5, 1e6]), Given("f32", [], [1]), Given("i16", [], [-1]),
             axis=0)
    quantize("u16", Given("f32", [5], [65535.5, -2, 0.5, 1.5, 1e6]), Given("f32", [], [1]), Given("u16", [], [3]),
             axis=0)
    quantize("i8", Given("f32", [2, 3, 2]), scales("f32", [3], 3), Given("i8", [3], span=(-9, 9)))
    quantize("u8", Given("f32", ["N", 2]), scales("f32", ["N"], 3), axis=0, symbols={"N": 3})
    quantize("i8", Given("f32", [2, "M"]), scales("f32", ["M"], 3), Given("i8", ["M"], [1, -2, 0]), axis=-1,
             symbols={"M": 3})
    quantize("i4", Given("f32", [2, 5], span=(-9, 9)), Given("f32", [], [1]))
    quantize("u4", Given("f32", [3, 3], span=(-2, 17)), scales("f32", [3], 3), Given("u4", [3], [0, 8, 15]), axis=0)
    quantize("i4", Given("f32", [2, 6]), scales("f32", [2, 2], 4), Given("i4", [2, 2], [0, 1, -2, 7]), block=3)
    quantize("u4", Given("f32", [6, 2]), scales("f32", [3, 2], 6), Given("u4", [3, 2]), axis=-2, block=2)
    quantize("i8", Given("f32", [2, 7]), scales("f32", [2, 3], 6), Given("i8", [2, 3]), axis=1, block=3,
             compare=False)
    quantize("u8", Given("f32", [3, "M", 2]), scales("f32", [3, 2, 2], 12), axis=1, block=4, symbols={"M": 8})
    quantize("i8", Given("f16", [2, 6], span=(-9, 9)), scales("f16", [2], 2), axis=0)
    quantize("u8", Given("bf16", [4], [-1, 2.5, 3.5, 300]), Given("bf16", [], [1]), Given("u8", [], [1]))
    quantize("i8", Given("f64", [4], [0.5, 1.5, -0.5, 2.50001]), Given("f64", [], [1]))
    quantize("i8", Given("f32", [5], [0.3, 0.78, -1.07, 12, 12.8]), Given("f32", [], [0.1]))
    fine = [1.0625, 1.1875, -1.0625, 17, 19, 0.001953125, 0.0009765625, -0.0029296875, 448, 464, 465, -1e6]
    for saturate in (True, False):
        quantize("f8e4m3", Given("f32", [12], fine), Given("f32", [], [1]), saturate=saturate)
        quantize("f8e5m2", Given("f32", [6], [1.125, 1.375, 57344, 61440, -65536, 3e-6]), Given("f32", [], [1]),
                 saturate=saturate)
        quantize("f8e4m3", Given("f32", [2, 3], span=(-300, 300)), scales("f32", [2], 2), axis=0, saturate=saturate)
        quantize("f8e5m2", Given("f32", [3], [NAN, INF, -INF]), Given("f32", [], [1]), saturate=saturate,
                 compare=False)
    quantize("f8e4m3", Given("f16", [2, 4], span=(-9, 9)), scales("f16", [2, 2], 4), block=2)
    quantize("f4e2m1", Given("f32", [10], [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.3, 7, -100]), Given("f32", [], [1]))
    quantize("f4e2m1", Given("f32", [2, 4]), scales("f32", [2, 2], 4), block=2)


def dequantize(dtype, x, scale, zero=None, axis=1, block=0, compare=True, **options):
    given = [x, scale] + ([zero] if zero else [])

    def onnx(q, scale, zero=None):
        zeros = [] if zero is None else [zero.astype(numpy_type(x.dtype)).reshape(scale.shape)]
        return by_onnx("DequantizeLinear", [q.astype(numpy_type(x.dtype)), scale.astype(np.float32), *zeros],
                       axis=axis, block_size=block)
    case("dequantize", {"axis": axis, "block": block, "dtype": dtype}, given,
         lambda *v: formulas.dequantize(*v, axis=axis, block=block), out=[dtype], exact=True,
         onnx=onnx if compare else None, **options)


def dequantizations():
    dequantize("f32", Given("u8", [6], [0, 1, 127, 128, 254, 255]), Given("f32", [], [0.5]), Given("u8", [], [128]))
    dequantize("f32", Given("i8", [5], [-128, -1, 0, 1, 127]), Given("f32", [], [2]), Given("i8", [], [127]), axis=0)
    dequantize("f32", Given("i8", [2, 3, 2]), scales("f32", [3], 3), Given("i8", [3]))
    dequantize("f32", Given("u8", ["N", 3]), scales("f32", ["N"], 2), Given("u8", ["N"]), axis=0, symbols={"N": 2})
    dequantize("f32", Given("i8", [2, "M"]), scales("f32", ["M"], 3), axis=-1, symbols={"M": 3})
    dequantize("f32", Given("i4", [2, 5]), Given("f32", [1], [0.25]), Given("i4", [1], [-8]), compare=False)
    dequantize("f32", Given("u4", [3, 3]), scales("f32", [3], 3), Given("u4", [3], [15, 0, 8]), axis=0)
    dequantize("f32", Given("i4", [6, 2]), scales("f32", [2, 2], 4), Given("i4", [2, 2]), axis=0, block=3)
    dequantize("f32", Given("u4", [2, 7]), scales("f32", [2, 2], 4), Given("u4", [2, 2]), axis=1, block=4,
               compare=False)
    dequantize("f32", Given("i8", [2, "M", 3]), scales("f32", [2, 2, 3], 12), Given("i8", [2, 2, 3]), axis=-2, block=2,
               symbols={"M": 4})
    dequantize("f32", Given("i16", [4], [-32768, 32767, 0, 5]), Given("f32", [], [0.5]), Given("i16", [], [-3]))
    dequantize("f32", Given("u16", [4], [0, 65535, 7, 5]), Given("f32", [], [0.5]), Given("u16", [], [65535]))
    dequantize("f32", Given("i32", [5], [-2**31, 2**31 - 1, 2**24 + 1, 2**24 + 3, -5]), Given("f32", [], [0.5]))
    dequantize("f32", Given("i32", [2, 2], span=(-9999, 9999)), scales("f32", [2], 2), Given("i32", [2], [0, 7]))
    dequantize("f32", Given("f8e4m3", [2, 3]), scales("f32", [2], 2), axis=0)
    dequantize("f32", Given("f8e5m2", [5], [57344, -0.0000152587890625, NAN, INF, -1.75]), Given("f32", [], [2]))
    dequantize("f32", Given("f4e2m1", [9], [0, 0.5, 1, 1.5, 2, 3, 4, 6, -6]), Given("f32", [], [0.5]))
    dequantize("f32", Given("f4e2m1", [2, 4]), scales("f32", [2, 2], 4), block=2)
    for dtype in ("f16", "bf16"):  # results between two values of the type: to the even one
        dequantize(dtype, Given("i32", [5], [2049, 2051, 257, 259, -4099]), Given(dtype, [], [1]), compare=False)
        dequantize(dtype, Given("i8", [3, 4]), scales(dtype, [3], 3), Given("i8", [3]), axis=0)
        dequantize(dtype, Given("u4", [2, 4]), scales(dtype, [2, 2], 4), Given("u4", [2, 2]), block=2)
    dequantize("f16", Given("i32", [2], [65519, -65519]), Given("f16", [], [1]), compare=False)
    dequantize("f64", Given("i32", [2], [2**31 - 1, 2**24 + 1]), Given("f64", [], [0.5]), compare=False)


def quantized_dot(a, q, scale, zero=None, contract=([1], [0]), axis=1, block=0, dtype="f32", **options):
    attributes = {"a_contract": contract[0], "b_contract": contract[1], "dtype": dtype, "axis": axis, "block": block}

    def formula(x, q, scale, zero=None):
        zero = np.broadcast_to(zero, scale.shape) if zero is not None and block else zero
        w = rounded(formulas.dequantize(q, scale, zero, axis, block), a.dtype)
        return np.tensordot(x, w, contract)
    case("quantized_dot", attributes, [a, q, scale] + ([zero] if zero else []), formula, out=[dtype], exact=True,
         **options)


def f8_dot(a, b, contract, dtype="f32", **options):
    """Products and sums of such numbers are exact in float64, and in f32 where they are small."""
    case("dot", {"a_contract": contract[0], "b_contract": contract[1], "dtype": dtype}, [a, b],
         lambda x, y: np.tensordot(x, y, contract), out=[dtype], exact=True, **options)


def f8_dots():
    # The largest numbers, the least ones, and those between; a row of either sign.
    edges = [448, -448, 416, 0.001953125, -0.001953125, 0.015625, 240, -0.013671875, 1.125, -1.875, 0, -0.0]
    f8_dot(Given("f8e4m3", [1, 12], edges), Given("f8e4m3", [12, 1], [1] * 12), ([1], [0]))
    f8_dot(Given("f8e4m3", [3, 48]), Given("f8e4m3", [48, 5]), ([1], [0]))
    f8_dot(Given("f8e4m3", ["M", 33]), Given("f8e4m3", [4, 33]), ([1], [1]), symbols={"M": 3})
    f8_dot(Given("f8e4m3", [17, 2]), Given("f8e4m3", [17, 3]), ([0], [0]), dtype="f16")
    f8_dot(Given("f8e5m2", [2, 20]), Given("f8e5m2", [20, 3]), ([1], [0]))


def quantized_dots():
    quantized_dot(Given("f32", [2, 3]), Given("i8", [3, 4]), Given("f32", [], [0.5]))
    quantized_dot(Given("f32", [2, 3]), Given("u8", [3, 4]), scales("f32", [4], 4), Given("u8", [4]))
    quantized_dot(Given("f32", ["M", 3]), Given("i8", [4, 3]), scales("f32", [4], 4), Given("i8", [4]),
                  contract=([1], [1]), axis=0, symbols={"M": 2})
    quantized_dot(Given("f32", [3, 2]), Given("i8", [3, 2]), scales("f32", [3], 3), contract=([0], [0]), axis=0)
    quantized_dot(Given("f32", [2, "S", 3]), Given("i8", [3, 5]), scales("f32", [5], 5), contract=([2], [0]),
                  symbols={"S": 2})
    quantized_dot(Given("f32", [2, 2, 3]), Given("i8", [2, 3, 4]), scales("f32", [4], 4), contract=([1, 2], [0, 1]),
                  axis=2)
    quantized_dot(Given("f32", [2, 6]), Given("u4", [6, 3]), scales("f32", [2, 3], 6), Given("u4", [2, 3]), axis=0,
                  block=3)
    quantized_dot(Given("f32", ["M", 6]), Given("i4", [3, 6]), scales("f32", [3, 3], 9), contract=([1], [1]), axis=1,
                  block=2, symbols={"M": 1})
    quantized_dot(Given("f32", [3, 4]), Given("u4", [4, 2]), scales("f32", [2, 2], 4), Given("u4", [], [8]), axis=0,
                  block=2)
    quantized_dot(Given("f32", [2, 7]), Given("i8", [7, 3]), scales("f32", [2, 3], 6), axis=0, block=4)
    quantized_dot(Given("f32", [2, 3]), Given("i4", [3, 5]), Given("f32", [1], [2]), Given("i4", [], [-1]))
    quantized_dot(Given("f32", [2, 4]), Given("f8e4m3", [4, 3]), scales("f32", [3], 3))
    quantized_dot(Given("f32", [2, 4]), Given("f4e2m1", [4, 3]), scales("f32", [2, 3], 6), axis=0, block=2)
    quantized_dot(Given("f16", [2, 4]), Given("i8", [4, 3]), scales("f16", [3], 3), dtype="f16")
    quantized_dot(Given("f16", [2, 4]), Given("u4", [4, 3]), scales("f16", [2, 3], 6), Given("u4", [2, 3]), axis=0,
                  block=2, dtype="f32")
    quantized_dot(Given("bf16", [2, 4]), Given("u8", [4, 3]), scales("bf16", [3], 3), Given("u8", [3]), dtype="bf16")
    # The product of scale and step is rounded to the type of a before it is contracted; not so in f64.
    quantized_dot(Given("bf16", [1, 2], [1, 1]), Given("u8", [2, 1], [255, 251]), Given("f32", [], [1.5]), tol=2e-3)


def add():
    quantizations()
    dequantizations()
    quantized_dots()
    f8_dots()
