# SPDX-License-Identifier: Apache-2.0
"""Convolution, its transpose and pooling."""
import numpy as np

from . import formulas
from .case import FLOATS, Given, by_onnx, case


def steps(rank, strides, dilations, low, high):
    return {"strides": strides or [1] * rank, "dilations": dilations or [1] * rank,
            "low": low or [0] * rank, "high": high or [0] * rank}


def conv(x, w, strides=None, dilations=None, low=None, high=None, groups=1, dtype="f32", **options):
    a = {**steps(len(x.dims) - 2, strides, dilations, low, high), "groups": groups}

    def onnx(x, w):
        return by_onnx("Conv", [x.astype(float), w.astype(float)], strides=a["strides"], dilations=a["dilations"],
                       pads=a["low"] + a["high"], group=groups, kernel_shape=list(w.shape[2:]))
    case("conv", {**a, "dtype": dtype}, [x, w], lambda x, w: formulas.conv(x, w, **a), out=[dtype], exact=True,
         onnx=onnx, **options)


def conv_transpose(x, w, strides=None, dilations=None, low=None, high=None, groups=1, compare=True, **options):
    a = {**steps(len(x.dims) - 2, strides, dilations, low, high), "groups": groups}

    def onnx(x, w):
        # Group by group: the evaluator of ONNX 1.23 cuts the kernel of groups in wrong places. A negative pad at
        # the end is ONNX's output padding.
        parts = [by_onnx("ConvTranspose", [xs, ws], strides=a["strides"], dilations=a["dilations"],
                         pads=a["low"] + [max(h, 0) for h in a["high"]], kernel_shape=list(w.shape[2:]),
                         output_padding=[max(-h, 0) for h in a["high"]])[0]
                 for xs, ws in zip(np.split(x, groups, 1), np.split(w, groups, 0))]
        return [np.concatenate(parts, 1)]
    case("conv_transpose", a, [x, w], lambda x, w: formulas.conv_transpose(x, w, **a), exact=True,
         onnx=onnx if compare else None, **options)


def pool(x, fn, sizes, strides=None, dilations=None, low=None, high=None, extra=None, count_padding=False,
         exact=True, compare=True, **options):
    rank = len(x.dims) - 2
    a = {"fn": fn, "sizes": sizes, **steps(rank, strides, dilations, low, high), "extra": extra or [0] * rank,
         "count_padding": count_padding}

    def onnx(x):
        more = {"count_include_pad": int(count_padding)} if fn == "average" else {}
        return by_onnx("AveragePool" if fn == "average" else "MaxPool", [x.astype(float)], kernel_shape=sizes,
                       strides=a["strides"], dilations=a["dilations"], pads=a["low"] + a["high"],
                       ceil_mode=int(extra is not None), **more)
    # Where all strides and dilations of MaxPool are 1, the evaluator of ONNX 1.23 takes pads in another order.
    misread = fn == "max" and {1} == set(a["strides"] + a["dilations"]) and {0} != set(a["low"] + a["high"])
    case("pool", a, [x], lambda x: formulas.pool(x, **a), exact=exact,
         onnx=onnx if compare and not misread else None, **options)


def convolutions():
    conv(Given("f32", [1, 2, 7]), Given("f32", [3, 2, 3]))
    conv(Given("f32", [2, 1, 9]), Given("f32", [2, 1, 2]), strides=[2], dilations=[3], low=[1], high=[2])
    conv(Given("f32", ["N", 3, "H", 5]), Given("f32", [2, 3, 3, 2]), strides=[2, 1], dilations=[1, 2], low=[1, 2],
         high=[0, 1], symbols={"N": 2, "H": 5})
    conv(Given("f32", [1, 4, 3, 4]), Given("f32", [6, 2, 2, 3]), groups=2, low=[1, 0], high=[0, 1])
    conv(Given("f32", ["N", 3, 4, 3]), Given("f32", [3, 1, 3, 3]), groups=3, low=[1, 1], high=[1, 1],
         symbols={"N": 1})
    conv(Given("f32", [1, 2, 3, 3]), Given("f32", [4, 1, 2, 1]), groups=2, strides=[1, 2])
    conv(Given("f32", [2, 3, 5, 4]), Given("f32", [2, 3, 1, 1]), strides=[3, 2])
    conv(Given("f32", [1, 2, 4, 3]), Given("f32", [2, 2, 1, 1]), low=[1, 0], high=[0, 2], dilations=[3, 5])
    conv(Given("f64", [1, 2, 3, 2, 4]), Given("f64", [2, 1, 2, 1, 3]), groups=2, low=[1, 0, 1], high=[0, 1, 1],
         dtype="f64")
    conv(Given("f16", [1, 3, 5, 4]), Given("f16", [2, 3, 3, 3]), low=[1, 1], high=[1, 1], dtype="f16")
    conv(Given("bf16", [1, 3, 3, 5]), Given("bf16", [3, 3, 2, 2]), strides=[1, 2], dtype="bf16")
    conv(Given("f16", [1, 2, 6]), Given("f16", [2, 2, 3]), dilations=[2], dtype="f32")
    conv(Given("u8", [1, 3, 4, 4], span=(0, 255)), Given("i8", [2, 3, 3, 3], span=(-128, 127)), low=[1, 1],
         high=[1, 1], dtype="i32")
    conv(Given("i8", [2, 4, 5], span=(-128, 127)), Given("i8", [4, 2, 2], span=(-128, 127)), groups=2, strides=[2],
         dtype="i32")
    conv(Given("f8e4m3", [1, 2, 3, 3]), Given("f8e4m3", [2, 2, 2, 2]), dtype="f32")
    conv(Given("f8e4m3", ["N", 16, 4, 3]), Given("f8e4m3", [2, 16, 2, 2]), strides=[2, 1], low=[1, 0], high=[0, 1],
         dtype="f32", symbols={"N": 1})
    conv(Given("f8e4m3", [2, 6, 5]), Given("f8e4m3", [4, 3, 2]), groups=2, dilations=[2], dtype="f32")


def transposed_convolutions():
    conv_transpose(Given("f32", [1, 2, 4]), Given("f32", [2, 3, 3]))
    conv_transpose(Given("f32", [2, 2, 3]), Given("f32", [2, 1, 2]), strides=[3], low=[1], high=[0])
    conv_transpose(Given("f32", ["N", 2, 3, "W"]), Given("f32", [2, 3, 3, 2]), strides=[2, 1], dilations=[1, 3],
                   low=[1, 0], high=[0, 1], symbols={"N": 2, "W": 2})
    conv_transpose(Given("f32", [1, 4, 2, 3]), Given("f32", [4, 1, 2, 2]), groups=2, strides=[1, 2], low=[0, 1],
                   high=[0, 0])
    conv_transpose(Given("f32", [1, 4, 3]), Given("f32", [4, 3, 4]), groups=2, strides=[2], low=[1], high=[1])
    conv_transpose(Given("f32", [1, 3, 2, 2]), Given("f32", [3, 1, 3, 3]), groups=3, strides=[2, 2], low=[1, 1],
                   high=[0, -1])
    # As many taps as steps, forwards and cut or grown.
    conv_transpose(Given("f32", [1, 2, 2, 3]), Given("f32", [2, 3, 2, 2]), strides=[2, 2])
    conv_transpose(Given("f32", ["N", 4, 3, 2]), Given("f32", [4, 2, 2, 3]), groups=2, strides=[2, 3], low=[1, 2],
                   high=[0, 1], symbols={"N": 2})
    conv_transpose(Given("f32", [1, 1, 2, 3]), Given("f32", [1, 2, 2, 1]), strides=[2, 1], low=[0, -1],
                   high=[-1, -2], compare=False)
    conv_transpose(Given("f32", [1, 2, 3]), Given("f32", [2, 1, 3]), strides=[2], low=[-2], high=[-1], compare=False)
    conv_transpose(Given("f64", [1, 2, 2, 1, 2]), Given("f64", [2, 1, 2, 3, 2]), strides=[1, 2, 2], low=[0, 1, 0],
                   high=[1, 0, 1])
    conv_transpose(Given("f16", [1, 3, 3, 2]), Given("f16", [3, 2, 3, 3]), strides=[2, 2], low=[1, 1], high=[1, 1])
    conv_transpose(Given("bf16", [1, 2, 4]), Given("bf16", [2, 2, 2]), strides=[2])


def pools():
    pool(Given("f32", [1, 2, 7]), "max", [3])
    pool(Given("f32", [2, 1, 5, 6]), "max", [2, 3], strides=[2, 1], low=[1, 0], high=[0, 2])
    pool(Given("f32", ["N", 2, "H", 5]), "max", [3, 2], strides=[1, 2], dilations=[2, 3], low=[1, 1], high=[2, 0],
         symbols={"N": 1, "H": 6})
    pool(Given("f32", [1, 1, 6, 5]), "max", [3, 2], strides=[2, 2], low=[0, 0], high=[0, 0], extra=[1, 1])
    pool(Given("f32", [1, 1, 3, 2], [-3, -1, -2, -5, -4, -6]), "max", [2, 2], low=[1, 1], high=[1, 1])
    pool(Given("f32", [1, 1, 4], [1, float("inf"), float("-inf"), 2]), "max", [2])
    pool(Given("f64", [1, 1, 3, 2, 3]), "max", [2, 2, 2], low=[1, 0, 0], high=[0, 0, 1])
    for dtype in ("f16", "bf16", "i8", "u8", "i32", "i64"):
        pool(Given(dtype, [1, 2, 5], span=(-9, 9) if dtype in FLOATS else None), "max", [3], strides=[2], low=[1],
             high=[1])
    pool(Given("i8", [1, 1, 4], [-128, -127, -3, -128]), "max", [2], low=[1], high=[1])
    pool(Given("f32", [1, 2, 6]), "average", [4], strides=[2])
    pool(Given("f32", [2, 2, 5, 4]), "average", [3, 2], strides=[2, 1], low=[1, 1], high=[1, 0], exact=False)
    pool(Given("f32", [1, 2, 5, 4]), "average", [3, 2], strides=[2, 1], low=[1, 1], high=[1, 0], count_padding=True,
         exact=False)
    pool(Given("f32", ["N", 1, "H", 5]), "average", [2, 3], strides=[2, 2], low=[1, 0], high=[0, 1], extra=[1, 0],
         exact=False, compare=False, symbols={"N": 2, "H": 6})
    pool(Given("f32", ["N", 1, "H", 5]), "average", [2, 3], strides=[2, 2], low=[1, 0], high=[0, 1], extra=[1, 0],
         count_padding=True, exact=False, compare=False, symbols={"N": 2, "H": 6})
    pool(Given("f32", [1, 1, 6, 5]), "average", [3, 2], strides=[2, 2], extra=[1, 1], exact=False)
    pool(Given("f32", [1, 1, 6]), "average", [3], strides=[2], low=[1], high=[1], extra=[1], count_padding=True,
         exact=False)
    pool(Given("f32", [1, 1, 7]), "average", [3], dilations=[2], low=[2], high=[1], exact=False)
    pool(Given("f64", [1, 1, 3, 2, 3]), "average", [2, 1, 3], low=[1, 0, 1], high=[1, 0, 1], exact=False, tol=1e-9)
    pool(Given("f16", [1, 2, 4, 4]), "average", [2, 2], strides=[2, 2])
    pool(Given("f16", [1, 1, 4], [60000, 60000, 65504, 60000]), "average", [2])
    pool(Given("bf16", [1, 2, 5]), "average", [2], low=[1], high=[1])


def add():
    convolutions()
    transposed_convolutions()
    pools()
