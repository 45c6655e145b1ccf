# SPDX-License-Identifier: Apache-2.0
"""Cases of make_contrib.py: operators of com.microsoft on plain tensors and images."""
import struct
from functools import partial

import ml_dtypes
import numpy as np

from contrib_case import Case, f32, i8, u8, values, whole

F8 = ml_dtypes.float8_e4m3fn
FP4 = [0, 5.208333333e-03, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25]
BNB4 = [FP4 + [-v for v in FP4],
        [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
         -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
         0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]]


def i32(x):
    return np.array(x, np.int32)


def i64(x):
    return np.array(x, np.int64)


# --- images

def group_norm(groups, activation, last, epsilon=1e-5):
    """In f64; skip is [N,C] or lies as x does."""
    def f(x, gamma, beta, skip=None, bias=None, **_):
        t, v = x.dtype, x.astype(np.float64)
        to_last = lambda a: a if last or a.ndim != x.ndim else np.moveaxis(a, 1, -1)
        v = to_last(v)
        if skip is not None:
            s = to_last(skip.astype(np.float64))
            v = v + (s if s.ndim == v.ndim else s.reshape(s.shape[0], *[1] * (v.ndim - 2), -1))
        v = v + (0 if bias is None else bias.astype(np.float64))
        n, c = v.shape[0], v.shape[-1]
        parts = v.reshape(n, -1, groups, c // groups)
        mean, var = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
        y = ((parts - mean) / np.sqrt(var + epsilon)).reshape(v.shape) * gamma + beta
        y = y / (1 + np.exp(-y)) if activation else y
        back = lambda a: (a if last else np.moveaxis(a, -1, 1)).astype(t)
        return back(y) if skip is None else (back(y), back(v))
    return f


def norms_of_images():
    def case(name, x, skip=None, bias=None, dynamic=(), parameters=np.float32, outputs=2, **attributes):
        c = x.shape[-1 if attributes.get("channels_last", 1) else 1]
        feeds = {"x": x, "gamma": values(2, c, dtype=parameters), "beta": values(3, c, dtype=parameters)}
        if skip is not None:
            feeds.update({"skip": skip, "bias": bias})
        oracle = group_norm(attributes["groups"], attributes["activation"], attributes.get("channels_last", 1),
                            attributes.get("epsilon", 1e-5))
        op = "GroupNorm" if skip is None else "SkipGroupNorm"
        only = oracle if skip is None or outputs == 2 else lambda **kw: oracle(**kw)[0]
        Case(f"{op}_{name}", op, feeds, outputs=1 if skip is None else outputs, oracle=only, dynamic=dynamic,
             constants=("gamma", "beta"), **attributes)

    half = np.float16
    case("silu", values(1, 2, 3, 5, 8), groups=4, activation=1)
    case("none", values(1, 2, 3, 5, 6), groups=3, activation=0, epsilon=0.1, channels_last=1)
    case("first", values(1, 2, 6, 3, 5), groups=2, activation=1, channels_last=0, dynamic=("x:0", "x:2", "x:3"))
    case("half", values(1, 2, 3, 5, 8, dtype=half), groups=4, activation=1)
    case("halves", values(1, 1, 3, 4, 8, dtype=half), groups=2, activation=0, parameters=half)
    case("dynamic", values(1, 2, 3, 5, 8), groups=4, activation=1, dynamic=("x:0", "x:1", "x:2"))
    x = values(1, 2, 3, 5, 8)
    case("whole", x, values(4, 2, 3, 5, 8), values(5, 8), groups=4, activation=1)
    case("pixel", x, values(4, 2, 1, 1, 8), groups=4, activation=0)
    case("rows", x, values(4, 2, 8), values(5, 8), groups=2, activation=1, dynamic=("x:1", "x:2"))
    case("one_result", x, values(4, 2, 8), groups=2, activation=1, outputs=1)
    case("half", x.astype(half), values(4, 2, 8, dtype=half), values(5, 8, dtype=half), groups=4, activation=1)
    case("first", values(1, 2, 6, 3, 5), values(4, 2, 6, 3, 5), values(5, 6), groups=2, activation=1,
         channels_last=0)
    case("first_rows", values(1, 2, 6, 3, 5), values(4, 2, 6), groups=2, activation=1, channels_last=0)


def pools_of_images():
    for dtype, low, high in ((np.uint8, 0, 256), (np.int8, -128, 128)):
        x = whole(1, low, high, 2, 7, 6, 5, dtype=dtype)
        name = f"NhwcMaxPool_{dtype.__name__}"
        Case(name, "NhwcMaxPool", {"x": x}, kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1], dynamic=("x",))
        Case(f"{name}_dilated", "NhwcMaxPool", {"x": x}, kernel_shape=[2, 2], dilations=[3, 2])
        Case(f"{name}_ceil", "NhwcMaxPool", {"x": x}, kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1)
    Case("NhwcMaxPool_same", "NhwcMaxPool", {"x": x}, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    Case("NhwcMaxPool_1d", "NhwcMaxPool", {"x": whole(1, 0, 256, 2, 9, 3)}, kernel_shape=[3], strides=[2])
    base = dict(kernel_shape=[2, 3], pads=[1, 1, 0, 1], strides=[1, 2])
    Case("MaxpoolWithMask", "MaxpoolWithMask", {"x": values(2, 2, 3, 4, 5), "mask": whole(3, 0, 3, 1, 1, 4, 5, dtype=np.int32)},
         **base)
    Case("MaxpoolWithMask_dynamic", "MaxpoolWithMask",
         {"x": values(2, 2, 3, 4, 5), "mask": whole(4, 0, 3, 1, 1, 4, 5, dtype=np.int32)}, dynamic=("x", "mask"), **base)
    Case("MaxpoolWithMask_1d", "MaxpoolWithMask",
         {"x": values(2, 2, 3, 9), "mask": i32([[[0, 1, 1, 1, 1, 1, 1, 0, 0]]])}, kernel_shape=[3], auto_pad="SAME_LOWER")
    boxes = f32([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.9, 0.7, 0.3, -0.2], [-0.4, 0.3, 1.3, 0.31]])
    image = {"x": values(5, 2, 3, 7, 6), "boxes": boxes, "index": i32([0, 1, 1, 0])}
    for mode in ("bilinear", "nearest"):
        Case(f"CropAndResize_{mode}", "CropAndResize", {**image, "size": i32([4, 5])}, mode=mode, constants=("size",))
        Case(f"CropAndResize_{mode}_dynamic", "CropAndResize", {**image, "size": i32([3, 1])}, mode=mode,
             extrapolation_value=-2.5, dynamic=("x", "boxes", "index"))
    Case("CropAndResize_one", "CropAndResize", {**image, "size": i32([1, 3])}, constants=("size",))


def quantised_convolutions():
    x = whole(1, 0, 256, 2, 7, 6, 4)
    w = whole(2, -60, 60, 6, 4, 3, 2, dtype=np.int8)
    feeds = {"x": x, "xs": f32(0.02), "xz": u8(117), "w": w, "ws": values(3, 6, low=0.005, high=0.02),
             "wz": np.zeros(6, np.int8), "ys": f32(0.3), "yz": u8(121)}
    Case("QLinearConv_last", "QLinearConv", feeds, channels_last=1, pads=[1, 0, 1, 1], strides=[2, 1],
         constants=("w", "ws", "wz"), dynamic=("x",))
    Case("QLinearConv_last_bias", "QLinearConv",
         {**feeds, "w": w[:, :2].copy(), "ws": f32(0.01), "wz": i8(0), "b": whole(4, -999, 999, 6, dtype=np.int32)},
         channels_last=1, group=2, dilations=[1, 2], constants=("w", "b"))
    Case("QLinearConv_ms_first", "QLinearConv", {**feeds, "x": np.moveaxis(x, -1, 1).copy()}, pads=[1, 1, 1, 1])
    for n, extra in enumerate([{}, {"strides": [2, 2], "dynamic": ("x",)},
                               {"strides": [3, 2], "output_padding": [1, 1], "group": 2}]):
        feeds = {"x": values(5, 2, 4, 5, 6), "w": values(6, 4, 3, 3, 3), "pads": i64([1, 0, 2, 1]),
                 "b": values(7, 3 * extra.get("group", 1))}
        Case(f"ConvTransposeWithDynamicPads_{n}", "ConvTransposeWithDynamicPads", feeds, **extra)
    Case("ConvTransposeWithDynamicPads_known", "ConvTransposeWithDynamicPads", feeds, group=2, constants=("pads",))


# --- tensors

def standard():
    """Operators that ONNX has too."""
    x = values(1, 2, 3, 4)
    for mode in ("constant", "reflect", "edge", "wrap"):
        Case(f"Pad_ms_{mode}", "Pad", {"x": x, "pads": i64([[0, 1, 2, 1, 0, 1]])}, mode=mode, constants=("pads",))
    Case("Pad_ms_value", "Pad", {"x": x, "pads": i64([0, -1, 2, 1, 0, -1]), "value": f32([3])}, constants=("pads",))
    Case("Pad_ms_dynamic", "Pad", {"x": x, "pads": i64([[0, 1, -2, 1, 0, 1]]), "value": f32(3)}, dynamic=("x",))
    for upper in (0, 1):
        Case(f"Trilu_ms_{upper}", "Trilu", {"x": x}, upper=upper, dynamic=("x",))
        Case(f"Trilu_ms_{upper}_k", "Trilu", {"x": x, "k": i64(-1)}, upper=upper)
    for name, start, limit, delta, t in (("f32", 0, 5, None, np.float32), ("i32", 1, 10, 3, np.int32),
                                         ("i64", 10, 1, -3, np.int64), ("i16", 5, 3, 1, np.int16),
                                         ("f64", 0.5, 2, 0.25, np.float64), ("i64_default", -2, 3, None, np.int64)):
        feeds = {"start": np.array(start, t), "limit": np.array([limit], t), "delta": None if delta is None else np.array(delta, t)}
        Case(f"Range_ms_{name}", "Range", feeds)
        Case(f"Range_ms_{name}_known", "Range", feeds, constants=tuple(feeds))
    for axis in (0, 2, -1, -3):
        Case(f"ExpandDims_{axis}".replace("-", "m"), "ExpandDims", {"x": values(1, 2, 3), "axis": i32(axis)},
             constants=("axis",), dynamic=("x",))
    Case("ExpandDims_run_time", "ExpandDims", {"x": values(1, 2, 3), "axis": i32(-2)})
    Case("GatherND_ms_pairs", "GatherND", {"x": x, "at": i32([[0, -1], [1, 1]])}, dynamic=("x",))
    Case("GatherND_ms_rows", "GatherND", {"x": x, "at": i64([[[1]], [[0]]])})
    Case("Unique_ms", "Unique", {"x": f32([2, 1, 1, 3, 4, 3])}, outputs=3, dynamic=("x",))
    Case("Unique_ms_nan", "Unique", {"x": f32([2, np.nan, 1, np.nan, 0, 2])}, outputs=3)


def determinants():
    def spread(seed, *shape):
        return (values(seed, *shape) + 3 * np.eye(shape[-1])[::-1]).astype(np.float32)

    Case("Inverse_2", "Inverse", {"x": f32([[1, 2], [3, 5]])})
    Case("Inverse_batch", "Inverse", {"x": spread(1, 2, 3, 5, 5)}, dynamic=("x",))
    Case("Inverse_half", "Inverse", {"x": spread(2, 3, 3).astype(np.float16)})
    a, b = values(3, 5, 7), values(4, 3, 7)
    for metric in ("euclidean", "sqeuclidean"):
        Case(f"CDist_{metric}", "CDist", {"a": a, "b": b}, metric=metric, dynamic=("a", "b"))
    # Far from the origin and near to each other: ONNX Runtime's sums of squares cancel.
    Case("CDist_near", "CDist", {"a": values(5, 4, 9, low=998, high=1002), "b": values(6, 2, 9, low=998, high=1002)},
         metric="euclidean", oracle=lambda a, b: np.sqrt(((a[:, None].astype(np.float64) - b) ** 2).sum(-1)).astype(np.float32))


def complex_of(x):
    return x[..., 0].astype(np.float64) + 1j * x[..., 1]


def parts_of(z, t):
    return np.stack([z.real, z.imag], -1).astype(t)


def transforms():
    def rfft(count):
        return lambda x: parts_of(np.fft.rfftn(x.astype(np.float64), axes=range(x.ndim - count, x.ndim)), x.dtype)

    def irfft(count):
        def f(x):
            z = complex_of(x)
            axes = range(z.ndim - count, z.ndim)
            sizes = [*z.shape[z.ndim - count:-1], 2 * (z.shape[-1] - 1)]
            return np.fft.irfftn(z, s=sizes, axes=axes).astype(x.dtype)
        return f

    Case("Rfft_1", "Rfft", {"x": values(1, 2, 3, 8)}, oracle=rfft(1))
    Case("Rfft_2", "Rfft", {"x": values(1, 2, 5, 6)}, oracle=rfft(2), signal_ndim=2, onesided=1, normalized=0)
    Case("Rfft_dynamic", "Rfft", {"x": values(1, 2, 3, 7)}, oracle=rfft(2), signal_ndim=2, dynamic=("x",))
    Case("Rfft_half", "Rfft", {"x": values(1, 2, 8, dtype=np.float16)}, oracle=rfft(1))
    Case("Irfft_1", "Irfft", {"x": values(2, 2, 3, 5, 2)}, oracle=irfft(1), signal_ndim=1)
    Case("Irfft_2", "Irfft", {"x": values(2, 2, 3, 4, 2)}, oracle=irfft(2), signal_ndim=2)
    Case("Irfft_dynamic", "Irfft", {"x": values(2, 2, 3, 4, 2)}, oracle=irfft(2), signal_ndim=2, dynamic=("x",))
    Case("Irfft_half", "Irfft", {"x": values(2, 2, 5, 2, dtype=np.float16)}, oracle=irfft(1), signal_ndim=1)
    a, b = values(3, 2, 3, 4, 2), values(4, 3, 1, 2)
    for op, turned in (("ComplexMul", lambda z: z), ("ComplexMulConj", np.conj)):
        oracle = lambda a, b, turned=turned: parts_of(complex_of(a) * turned(complex_of(b)), a.dtype)
        Case(op, op, {"a": a, "b": b}, oracle=oracle)
        Case(f"{op}_swapped", op, {"a": b, "b": a}, oracle=oracle, dynamic=("a", "b"))
        Case(f"{op}_half", op, {"a": a.astype(np.float16), "b": b.astype(np.float16)}, oracle=oracle)


def small_integers():
    a, b = whole(1, 0, 256, 2, 3, 4), whole(2, 0, 256, 3, 1)
    oracle = lambda a, b, az=0, bz=0: (a.astype(np.int32) - np.int32(az)) * (b.astype(np.int32) - np.int32(bz))
    Case("MulInteger", "MulInteger", {"a": a, "az": u8(120), "b": b, "bz": u8(7)}, oracle=oracle, dynamic=("a", "b"))
    Case("MulInteger_signed", "MulInteger", {"a": a.astype(np.int8), "az": None, "b": b.astype(np.int8)}, oracle=oracle)
    Case("MulInteger_second", "MulInteger", {"a": a, "az": None, "b": b, "bz": u8(7)}, oracle=oracle)
    Case("ReduceSumInteger", "ReduceSumInteger", {"x": a}, axes=[-1, 0], keepdims=1,
         oracle=lambda x: x.sum((0, 2), dtype=np.uint32, keepdims=True), dynamic=("x",))
    Case("ReduceSumInteger_signed", "ReduceSumInteger", {"x": a.astype(np.int8)}, axes=[1], keepdims=0,
         oracle=lambda x: x.sum(1, dtype=np.int32))
    x, y = whole(3, -30000, 30000, 2, 3, 5, dtype=np.int16), whole(4, -30000, 30000, 5, 4, dtype=np.int16)
    Case("MatMulInteger16", "MatMulInteger16", {"a": x // 8, "b": y // 8}, dynamic=("a",))
    Case("MatMulInteger16_unsigned", "MatMulInteger16", {"a": x.astype(np.uint16) // 8, "b": y.astype(np.uint16) // 8},
         oracle=lambda a, b: a.astype(np.uint32) @ b.astype(np.uint32))
    for t in ("int32", "uint32", "int64", "uint64", "float32", "float64"):
        keys = values(5, 2, 3, low=0 if t.startswith("u") else -9e4, high=9e4).astype(t)
        Case(f"MurmurHash3_{t}", "MurmurHash3", {"x": keys}, seed=77, positive=0)
    Case("MurmurHash3_positive", "MurmurHash3", {"x": i32(5)}, dynamic=("x",))


def slices():
    x = values(1, 2, 7, 3)
    for name, extra in (("last", {"size": 2}), ("step", {"dim": 1, "size": 3, "step": 2}), ("first", {"dim": -3, "size": 2})):
        Case(f"UnfoldTensor_{name}", "UnfoldTensor", {"x": x}, dynamic=("x",) if name == "step" else (), **extra)
    Case("TorchEmbedding", "TorchEmbedding", {"w": values(2, 5, 4), "ids": i64([[3, 0], [4, 4]]), "pad": i64(0), "scale": np.array(True)},
         oracle=lambda w, ids, **_: w[ids], dynamic=("ids",))
    good, bad = values(3, 2, 3), f32([1, np.inf, 2])
    nan = np.array([np.nan], np.float16)
    for name, inputs, extra, want in (
            ("yes", (good, good), {}, True), ("inf", (good, bad), {}, False), ("nan", (nan, good), {}, False),
            ("nan_only", (good, bad), {"isnan_only": 1}, True), ("inf_only", (nan, good), {"isinf_only": 1}, True),
            ("none", (np.zeros((0, 2), np.float32),), {}, True)):
        Case(f"IsAllFinite_{name}", "IsAllFinite", {f"x{i}": v for i, v in enumerate(inputs)},
             oracle=lambda want=want, **_: np.array(want), dynamic=("x0",), **extra)
    Case("SampleOp", "SampleOp", {"x": good}, dynamic=("x",))


def sequences():
    ids, scores = i64([[1, 2, 1, 3, 1, 2], [4, 4, 4, 0, 4, 4]]), values(1, 2, 6)
    for n in (1, 2, 3, 6, 8):
        Case(f"NGramRepeatBlock_{n}", "NGramRepeatBlock", {"ids": ids, "scores": scores}, ngram_size=n,
             dynamic=("ids", "scores") if n in (3, 8) else ())
    source = i64([2, 3, 4, 2, 5, 3, 4, 6])
    for name, current, start, predicted, extra in (
            ("none", [7, 5, 3], 0, None, {}), ("twice", [9, 3, 4], 0, None, {"max_ngram_size": 1, "min_ngram_size": 1}),
            ("longer", [5, 3, 4], 0, None, {"min_ngram_size": 2}), ("end", [4, 6], 0, None, {}), ("short", [3], 0, None, {}),
            ("merged", [1, 2], 4, [5, 3, 7, 8, 9], {}), ("equal", [1, 2], 6, [4, 6, 2], {"max_ngram_size": 2}),
            ("nothing", [1], 8, [2], {}), ("missing", [1, 8], 0, None, {})):
        feeds = {"source": source, "current": i64(current), "start": i64([start]),
                 "predicted": None if predicted is None else i64(predicted)}
        Case(f"BifurcationDetector_{name}", "BifurcationDetector", feeds, outputs=2,
             **{"min_ngram_size": 1, "max_ngram_size": 3, **extra},
             dynamic=("source", "current", "predicted") if name in ("merged", "short") else ())
    Case("DynamicTimeWarping", "DynamicTimeWarping", {"x": values(2, 6, 9)})
    Case("DynamicTimeWarping_ties", "DynamicTimeWarping", {"x": whole(3, 0, 2, 1, 8, 5).astype(np.float32)}, dynamic=("x",))
    Case("DynamicTimeWarping_row", "DynamicTimeWarping", {"x": values(2, 1, 4)})


# --- products

def f8_of(x):
    return x.astype(F8)


def eights():
    a, b = values(1, 5, 16), values(2, 6, 16)

    def gemm(dtype, alpha=1.0, beta=0.0, activation=None, transA=0, transB=0):
        def f(a, b, c=None, sa=1, sb=1, sy=1):
            a, b = a.astype(np.float64) * sa, b.astype(np.float64) * sb
            y = alpha * (a.T if transA else a) @ (b.T if transB else b)
            y = y + (beta * c.astype(np.float64) if c is not None else 0)
            if activation == "RELU":
                y = np.maximum(y, 0)
            if activation == "GELU":
                y = y * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
            return (y * sy).astype(dtype)
        return f

    scales = {"sa": f32([0.5]), "sb": f32([0.25]), "sy": f32([2])}
    Case("GemmFloat8", "GemmFloat8", {"a": f8_of(a), "b": f8_of(b), "c": None, **scales}, transB=1,
         oracle=gemm(np.float32, transB=1), constants=("b",))
    Case("GemmFloat8_bias", "GemmFloat8", {"a": f8_of(a), "b": f8_of(b), "c": values(3, 5, 6, dtype=np.float16), **scales},
         transB=1, dtype=10, alpha=0.5, beta=2.0, activation="RELU", dynamic=("a", "c"),
         oracle=gemm(np.float16, 0.5, 2.0, "RELU", transB=1))
    Case("GemmFloat8_f8", "GemmFloat8", {"a": f8_of(a), "b": f8_of(b), "c": None, "sa": f32([0.5]), "sb": f32([0.25])},
         transB=1, dtype=17, oracle=gemm(F8, transB=1))
    Case("GemmFloat8_plain", "GemmFloat8", {"a": a.T.copy(), "b": b.T.copy(), "c": values(3, 5, 6)}, transA=1, alpha=0.3,
         beta=1.0, activation="GELU", oracle=gemm(np.float32, 0.3, 1.0, "GELU", 1))
    a, w, s = values(4, 2, 3, 40, dtype=np.float16), f8_of(values(5, 6, 40)), values(6, 6, 3, low=0.1, high=1)

    def product(a, w, s, sa=None, bias=0):
        v = a.astype(np.float64)
        v = v if sa is None else f8_of((a.astype(np.float32) / sa)).astype(np.float64) * sa
        full = w.astype(np.float64) * np.repeat(s, 16, 1)[:, :40]
        return (v @ full.T + bias).astype(np.float16)

    fixed = ("w", "s", "bias")
    Case("MatMulBlockQuantizedFp8Weight", "MatMulBlockQuantizedFp8Weight", {"a": a, "w": w, "s": s}, block_size=16,
         oracle=product, constants=fixed, dynamic=("a",))
    Case("MatMulBlockQuantizedFp8Weight_both", "MatMulBlockQuantizedFp8Weight",
         {"a": a, "w": w, "s": s, "sa": f32(0.02), "bias": values(7, 6, dtype=np.float16)}, block_size=16, oracle=product,
         constants=fixed)


def blobs():
    for kind in (0, 1):
        k, n = 70, 5
        data = whole(1, 0, 256, n, 3, 16)
        blob = b"".join(struct.pack("<f", 0.1 + 0.01 * (3 * i + j)) + bytes([i + 3] if kind else []) + data[i, j].tobytes()
                        for i in range(n) for j in range(3))
        feeds = {"a": values(2, 2, 3, k), "blob": np.frombuffer(blob, np.uint8), "shape": i64([k, n])}
        Case(f"MatMulFpQ4_{kind}", "MatMulFpQ4", feeds, blk_quant_type=kind, constants=("blob", "shape"), dynamic=("a",))


def weights_in_blocks():
    """MatMulNBits and GatherBlockQuantized beyond make_contrib.py and contrib_quantized.py."""
    k, n, block = 40, 5, 16
    base = {"a": values(1, 2, 3, k), "b": whole(2, 0, 256, n, 3, block // 4), "s": values(3, n, 3, low=0.05, high=0.3)}
    zero = whole(4, 0, 256, n, 1)
    fixed = ("b", "s", "z", "g", "bias")
    two = dict(K=k, N=n, bits=2, block_size=block, constants=fixed)
    Case("MatMulNBits_2", "MatMulNBits", base, dynamic=("a",), **two)
    Case("MatMulNBits_2_zero", "MatMulNBits", {**base, "z": zero}, **two)
    Case("MatMulNBits_2_run_time", "MatMulNBits", {**base, "z": zero}, **{**two, "constants": ()})
    order = i32((np.arange(k) * 7) % k // block)
    four = {**base, "b": whole(2, 0, 256, n, 3, block // 2)}

    def by_groups(a, b, s, z, g, bias):
        q = np.stack([b & 15, b >> 4], -1).reshape(n, -1)[:, :k].astype(np.float64)
        zeros = np.stack([z & 15, z >> 4], -1).reshape(n, -1)
        return (a @ ((q - zeros[:, g]) * s[:, g]).T + bias).astype(np.float32)

    for name, g in (("groups", order), ("groups_in_order", i32(np.arange(k) // block))):
        # ONNX Runtime reads no packed zero points beside groups.
        feeds = {**four, "z": whole(5, 0, 256, n, 2), "g": g, "bias": values(6, n)}
        Case(f"MatMulNBits_4_{name}", "MatMulNBits", feeds, K=k, N=n, block_size=block, constants=fixed, oracle=by_groups)
    Case("MatMulNBits_4_groups_middle", "MatMulNBits", {**four, "z": None, "g": order}, K=k, N=n, block_size=block, constants=fixed)
    Case("MatMulNBits_4_groups_float", "MatMulNBits", {**four, "z": values(5, n, 3, low=5, high=9), "g": order}, K=k, N=n,
         block_size=block)
    left_out = {**base, "b": np.zeros((0, 3, block // 2), np.uint8)}
    for name, extra in (("", {}), ("_bias", {"z": None, "g": None, "bias": values(6, n)})):
        Case(f"MatMulNBits_left_out{name}", "MatMulNBits", {**left_out, **extra}, K=k, N=n, block_size=block, constants=fixed,
             dynamic=("a",))
    ids = i64([[3, -8], [7, -1]])  # two of them out of range
    for bits in (2, 4, 8):
        feeds = {"data": whole(7, 0, 256, 7, 40 * bits // 8), "ids": ids, "s": values(8, 7, 3, low=0.01, high=0.1),
                 "z": whole(9, 0, 256, 7, -(-3 * bits // 8))}
        Case(f"GatherBlockQuantized_{bits}_outside", "GatherBlockQuantized", feeds, bits=bits, block_size=16,
             constants=("data", "s", "z"), dynamic=("ids",))
    Case("GatherBlockQuantized_2", "GatherBlockQuantized", {**feeds, "data": whole(7, 0, 256, 7, 10), "z": None}, bits=2,
         block_size=16, constants=("data", "s"))
    floats = {"data": f8_of(values(10, 7, 40)), "ids": ids}

    def looked_up(data, ids, s):
        block = 40 if s.shape[1] == 1 else 16
        full = data.astype(np.float32) * np.repeat(np.broadcast_to(s, (7, s.shape[1])), block, 1)[:, :40]
        rows = full[np.clip(np.where(ids < 0, ids + 7, ids), 0, 6)]
        return np.where(((ids >= -7) & (ids < 7))[..., None], rows, 0).astype(s.dtype)

    def of_table(kind, a, b, most):
        codes = np.stack([b >> 4, b & 15], -1).reshape(-1)
        w = f32(BNB4[kind])[codes] * np.repeat(most, 32)[:120]
        return (a.astype(np.float64) @ w.reshape(5, 24)).astype(np.float32)

    for name, block, shape in (("rows", 0, (7, 1)), ("one", 0, (1, 1)), ("blocks", 16, (7, 3)), ("shared", 16, (1, 3))):
        Case(f"GatherBlockQuantized_f8_{name}", "GatherBlockQuantized", {**floats, "s": values(11, *shape, low=0.1, high=1)},
             block_size=block, oracle=looked_up, constants=("data", "s"))
    for kind in (0, 1):
        # ONNX Runtime's CPU kernel reads transB=0 as 1.
        feeds = {"a": values(12, 3, 5), "b": whole(13, 0, 256, 60), "most": values(14, 4, low=0.1, high=2)}
        Case(f"MatMulBnb4_{kind}_plain", "MatMulBnb4", feeds, K=24, N=5, block_size=32, quant_type=kind, transB=0,
             constants=("b", "most"), oracle=partial(of_table, kind))


def audited():
    """Corners of fused and quantised operators."""
    x, w = values(1, 2, 7, 5, 4), values(2, 6, 2, 3, 2)

    def conv(x, w, b, z=0):
        y = np.zeros((2, 3, 4, 6))
        for i, j in np.ndindex(3, 4):
            part = x[:, 2 * i:2 * i + 3, j:j + 2].astype(np.float64)
            for g in range(2):
                y[:, i, j, 3 * g:3 * g + 3] = np.einsum("nhwc,ochw->no", part[..., 2 * g:2 * g + 2], w[3 * g:3 * g + 3])
        return np.maximum(y + b + z, 0).astype(np.float32)

    feeds = {"x": x, "w": w, "b": values(3, 6)}
    common = dict(group=2, strides=[2, 1], activation="Relu", oracle=conv, dynamic=("x",))
    Case("NhwcFusedConv", "NhwcFusedConv", feeds, **common)
    Case("NhwcFusedConv_sum", "NhwcFusedConv", {**feeds, "z": values(4, 2, 3, 4, 6)}, **common)
    Case("FusedGemm_Selu", "FusedGemm", {"a": values(5, 3, 4), "b": values(6, 4, 5)}, activation="Selu", activation_alpha=1.5,
         activation_gamma=1.1)
    a, b = whole(7, 0, 256, 2, 3, 8), whole(8, 0, 256, 2, 8, 5)
    product = {"a": a, "b": b, "as": f32(0.02), "bs": values(9, 2, 1, 5, low=0.01, high=0.03)}
    Case("MatMulIntegerToFloat_batch", "MatMulIntegerToFloat", {**product, "az": u8(120), "bz": whole(10, 0, 256, 2, 1, 5)})
    Case("MatMulIntegerToFloat_rows", "MatMulIntegerToFloat", {**product, "as": values(11, 3, 1, low=0.01, high=0.03)})

    def halves(a, b, sa, sb, c):
        return ((a.astype(np.int64) @ b) * (sa.astype(np.float64) * sb) + c).astype(np.float16)

    Case("MatMulIntegerToFloat_half", "MatMulIntegerToFloat",
         {"a": a, "b": b[0], "sa": np.array(0.004, np.float16), "sb": values(12, 5, low=0.001, high=0.003, dtype=np.float16),
          "az": None, "bz": None, "c": values(13, 5, dtype=np.float16)}, oracle=halves)
    Case("DynamicQuantizeMatMul_batch", "DynamicQuantizeMatMul",
         {"a": values(14, 2, 3, 8), "b": b, "bs": product["bs"], "bz": whole(10, 0, 256, 2, 1, 5)})


def packed_rows():
    """Formats of GGML by number: elements and bytes of a block, and where its scales in f16 lie."""
    for name, kind, size, width, scales in (("f32", 0, 1, 4, ()), ("f16", 1, 1, 2, ()), ("bf16", 30, 1, 2, ()), ("q4_0", 2, 32, 18, (0,)),
                                            ("q5_0", 6, 32, 22, (0,)), ("q8_0", 8, 32, 34, (0,)), ("q5_k", 13, 256, 176, (0, 2)),
                                            ("q6_k", 14, 256, 210, (208,)), ("iq4_nl", 20, 32, 18, (0,)), ("iq4_xs", 23, 256, 136, (0,))):
        blocks = 8 if size == 1 else 1 if size == 256 else 2
        data = whole(kind + 1, 0, 256, 3, blocks, width)
        if size == 1:
            dtype = {4: np.float32, 2: np.float16 if kind == 1 else ml_dtypes.bfloat16}[width]
            data = values(kind + 1, 3, 8).astype(dtype).view(np.uint8)
        for at in scales:
            data[..., at:at + 2] = values(at, 3, blocks, low=0.01, high=0.1, dtype=np.float16)[..., None].view(np.uint8)
        Case(f"GatherPacked_{name}", "GatherPacked", {"data": data.reshape(3, -1), "ids": i32([[2, -1], [0, 7]])},
             packed_type=kind, K=blocks * size, output_dtype=10 if name == "q8_0" else 1, constants=("data",),
             dynamic=("ids",) if name in ("q5_k", "f16") else ())


def tensors():
    norms_of_images()
    pools_of_images()
    quantised_convolutions()
    standard()
    determinants()
    transforms()
    small_integers()
    slices()
    sequences()
    eights()
    blobs()
    weights_in_blocks()
    audited()
    packed_rows()
