#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small models of tests/data/contrib, with ONNX Runtime's results on the CPU.

  make_contrib.py [OUT_DIR] [--only TEXT]

OUT_DIR/CASE/model.onnx, input_I.pb and output_I.pb (TensorProto). The cases are operators of
com.microsoft and corners of standard operators that the ONNX backend suite does not reach. Where
ONNX Runtime has no CPU kernel, numpy computes the definition of the operator. Needs
numpy, onnx and onnxruntime; the same numbers come out on every run.
"""
import argparse
import math
import pathlib
import shutil

import numpy as np
import onnxruntime as ort
from onnx import numpy_helper

from contrib_attention import more_attention
from contrib_case import CASES, Case, f32, heads, values, whole
from contrib_experts import experts
from contrib_mixers import mixers
from contrib_quantized import blocks, quantized, quantized_recurrent
from contrib_tensors import tensors


def activations():
    x = values(1, 2, 3, 8, low=-4, high=4)
    b = values(2, 8)
    Case("Gelu", "Gelu", {"x": x})
    Case("FastGelu", "FastGelu", {"x": x})
    Case("FastGelu_bias", "FastGelu", {"x": x, "b": b})
    Case("BiasGelu", "BiasGelu", {"x": x, "b": b})
    Case("QuickGelu", "QuickGelu", {"x": x}, alpha=1.702)
    Case("QuickGelu_silu", "QuickGelu", {"x": x}, alpha=1.0)


def convolutions():
    x, w, b = values(1, 2, 4, 7, 6), values(2, 6, 4, 3, 3), values(3, 6)
    pads = [1, 1, 1, 1]
    for activation, params in [("Relu", None), ("Sigmoid", None), ("Tanh", None),
                               ("LeakyRelu", [0.2]), ("Clip", [-1.0, 2.0]),
                               ("HardSigmoid", [0.3, 0.4])]:
        extra = {"activation_params": params} if params else {}
        Case(f"FusedConv_{activation}", "FusedConv", {"x": x, "w": w, "b": b}, pads=pads,
             activation=activation, **extra)
    Case("FusedConv_sum", "FusedConv", {"x": x, "w": w, "b": b, "z": values(4, 2, 6, 7, 6)},
         pads=pads, activation="Relu")
    Case("FusedConv_strided", "FusedConv", {"x": x, "w": values(5, 6, 2, 3, 3), "b": b}, pads=pads,
         strides=[2, 1], group=2, activation="Relu", dynamic=("x",))
    Case("Conv_same_upper", "Conv", {"x": x, "w": w}, domain="", auto_pad="SAME_UPPER",
         strides=[2, 2], dynamic=("x",))
    Case("Conv_same_lower", "Conv", {"x": x, "w": w, "b": b}, domain="", auto_pad="SAME_LOWER",
         strides=[2, 3])
    Case("Conv_pointwise_strided", "Conv", {"x": x, "w": values(6, 5, 4, 1, 1)}, domain="",
         strides=[2, 2], dynamic=("x",))
    Case("Conv_rows", "Conv", {"x": x, "w": values(7, 4, 1, 3, 1), "b": values(8, 4)}, domain="",
         group=4, pads=[2, 0, 1, 0], dilations=[2, 1])
    Case("Conv_1d", "Conv", {"x": values(9, 2, 4, 11), "w": values(10, 6, 2, 5)}, domain="",
         group=2, pads=[3, 1], strides=[2], dilations=[2])
    Case("Conv_3d", "Conv", {"x": values(11, 1, 2, 5, 6, 4), "w": values(12, 3, 2, 2, 3, 1)},
         domain="", pads=[1, 0, 0, 0, 1, 2], strides=[1, 2, 1])
    for n, extra in enumerate([{}, {"strides": [2, 2], "pads": [1, 1, 1, 1]},
                               {"strides": [3, 2], "output_padding": [1, 1], "dilations": [1, 2]},
                               {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
                               {"auto_pad": "SAME_LOWER", "strides": [3, 3]},
                               {"strides": [3, 3], "dynamic": ("x",)},
                               {"output_shape": [10, 12], "strides": [2, 2]}]):
        Case(f"ConvTranspose_{n}", "ConvTranspose",
             {"x": values(13, 2, 4, 5, 6), "w": values(14, 4, 3, 3, 3), "b": values(15, 6)},
             domain="", group=2, **extra)


def pooling():
    x = values(1, 2, 3, 11, 9)
    for n, extra in enumerate([
            dict(kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
            dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1),
            dict(kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1, dynamic=("x",)),
            dict(kernel_shape=[3, 3], strides=[3, 2], auto_pad="SAME_UPPER"),
            dict(kernel_shape=[2, 3], strides=[2, 2], auto_pad="SAME_LOWER", dynamic=("x",)),
            dict(kernel_shape=[3, 2], dilations=[2, 3], pads=[2, 1, 1, 1])]):
        Case(f"MaxPool_{n}", "MaxPool", {"x": x}, outputs=2, domain="", **extra)
        Case(f"MaxPool_column_{n}", "MaxPool", {"x": x}, outputs=2, domain="", storage_order=1,
             **extra)
        Case(f"AveragePool_{n}", "AveragePool", {"x": x}, domain="", **extra)
        if "ceil_mode" not in extra:
            Case(f"LpPool_{n}", "LpPool", {"x": x}, domain="", p=3, **extra)
        Case(f"AveragePool_padded_{n}", "AveragePool", {"x": x}, domain="", count_include_pad=1,
             **extra)
    Case("MaxPool_u8", "MaxPool", {"x": whole(2, 0, 256, 1, 2, 6, 6)}, domain="",
         kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    Case("MaxPool_i8", "MaxPool", {"x": whole(3, -128, 128, 1, 2, 6, 6, dtype=np.int8)}, domain="",
         kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    Case("MaxPool_3d", "MaxPool", {"x": values(4, 1, 2, 5, 6, 4)}, outputs=2, domain="",
         kernel_shape=[2, 3, 2], strides=[2, 2, 1])
    Case("GlobalLpPool", "GlobalLpPool", {"x": x}, domain="", p=3)
    rois = f32([[0, 0, 0, 6, 5], [1, 2, 1, 8, 10], [0, 4, 4, 4, 4], [1, 5.4, 3.6, 20, 30]])
    Case("MaxRoiPool", "MaxRoiPool", {"x": x, "rois": rois}, domain="", pooled_shape=[3, 2],
         spatial_scale=0.5)
    boxes = f32([[0.4, 0.3, 7.2, 6.9], [1.5, 2.5, 8.0, 10.0], [3, 3, 3.2, 3.1], [-3, 5, 9, 20]])
    index = np.array([0, 1, 1, 0], np.int64)
    for mode in ("avg", "max"):
        for transform in ("half_pixel", "output_half_pixel"):
            for ratio in (0, 2):
                Case(f"RoiAlign_{mode}_{transform}_{ratio}", "RoiAlign",
                     {"x": x, "rois": boxes, "index": index}, domain="", mode=mode, output_height=3,
                     output_width=2, sampling_ratio=ratio, spatial_scale=0.7,
                     coordinate_transformation_mode=transform)


def norms():
    x, skip = values(1, 2, 5, 8), values(2, 2, 5, 8)
    gamma, beta, bias = values(3, 8), values(4, 8), values(5, 8)
    Case("SkipLayerNormalization", "SkipLayerNormalization",
         {"x": x, "skip": skip, "gamma": gamma, "beta": beta, "bias": bias},
         outputs=[True, False, False, True], epsilon=1e-5)
    Case("SkipLayerNormalization_plain", "SkipLayerNormalization",
         {"x": x, "skip": skip, "gamma": gamma})
    Case("SkipLayerNormalization_broadcast", "SkipLayerNormalization",
         {"x": x, "skip": values(6, 5, 8), "gamma": gamma, "beta": beta})
    Case("SkipSimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization",
         {"x": x, "skip": skip, "gamma": gamma, "bias": bias},
         outputs=[True, False, False, True])
    Case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization",
         {"x": x, "scale": gamma}, domain="", axis=-1, epsilon=1e-5, stash_type=1)
    Case("LayerNormalization_outputs", "LayerNormalization", {"x": x, "scale": gamma, "b": beta},
         outputs=3, domain="", axis=-1)
    Case("LayerNormalization_by_rows", "LayerNormalization",
         {"x": x, "scale": values(21, 5, 8), "b": values(22, 5, 1)}, domain="", axis=-1, dynamic=("x",))
    Case("LayerNormalization_half", "LayerNormalization",
         {"x": x.astype(np.float16), "scale": gamma.astype(np.float16)}, domain="", axis=-1)
    ids = whole(7, 0, 10, 2, 5, dtype=np.int32)
    segments = whole(8, 0, 2, 2, 5, dtype=np.int32)
    tables = {"word": values(9, 10, 8), "position": values(10, 6, 8), "segment": values(11, 2, 8)}
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
    Case("EmbedLayerNormalization", "EmbedLayerNormalization",
         {"ids": ids, "segments": segments, **tables, "gamma": gamma, "beta": beta, "mask": mask},
         outputs=3)
    Case("EmbedLayerNormalization_places", "EmbedLayerNormalization",
         {"ids": ids, "segments": None, "word": tables["word"], "position": tables["position"],
          "segment": None, "gamma": gamma, "beta": beta, "mask": None,
          "places": whole(12, 0, 6, 2, 5, dtype=np.int32)}, outputs=2)
    image = values(13, 2, 4, 3, 5)
    Case("LRN_even", "LRN", {"x": values(14, 1, 7, 3, 2)}, domain="", size=3, alpha=0.5, beta=0.6,
         bias=1.5)
    Case("GroupNormalization", "GroupNormalization",
         {"x": image, "scale": values(15, 4), "bias": values(16, 4)}, domain="", num_groups=2)
    Case("InstanceNormalization", "InstanceNormalization",
         {"x": image, "scale": values(15, 4), "bias": values(16, 4)}, domain="", dynamic=("x",))
    Case("BatchNormalization_1d", "BatchNormalization",
         {"x": values(17, 3, 4), "scale": values(15, 4), "b": values(16, 4), "mean": values(18, 4),
          "var": values(19, 4, low=0.5)}, domain="")
    Case("Softmax_11", "Softmax", {"x": values(20, 2, 3, 4, 5)}, domain="", opset=11, axis=2,
         dynamic=("x",))
    Case("LogSoftmax_11", "LogSoftmax", {"x": values(20, 2, 3, 4)}, domain="", opset=11, axis=1)
    Case("Hardmax_11", "Hardmax", {"x": values(20, 2, 3, 4)}, domain="", opset=11, axis=1)


def softmax_of(x, axes):
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def gelu_of(x):
    return (x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))).astype(np.float32)


def conv_nhwc(x, w, b):
    """Kernel 3x2, no pads, strides 2 and 1."""
    rows, columns = (x.shape[1] - 3) // 2 + 1, x.shape[2] - 1
    y = np.zeros((x.shape[0], rows, columns, w.shape[0]), np.float32)
    for i in range(rows):
        for j in range(columns):
            part = x[:, 2 * i:2 * i + 3, j:j + 2, :]
            y[:, i, j, :] = np.einsum("nhwc,ohwc->no", part, w) + b
    return y


def without_kernels():
    x, bias = values(20, 2, 3, 4, 6), values(21, 4, 6)
    Case("BiasSoftmax", "BiasSoftmax", {"x": x, "b": bias}, axis=3, is_inner_broadcast=0,
         oracle=lambda x, b: softmax_of(x + b, 3))
    Case("BiasSoftmax_inner", "BiasSoftmax", {"x": x, "b": values(22, 2, 1, 1, 6)}, axis=2,
         is_inner_broadcast=1, oracle=lambda x, b: softmax_of(x + b, (2, 3)))
    Case("BiasAdd", "BiasAdd", {"x": x, "b": values(23, 6), "s": values(24, 2, 3, 4, 6)},
         oracle=lambda x, b, s: x + b + s)
    Case("BiasSplitGelu", "BiasSplitGelu", {"x": values(25, 2, 3, 8), "b": values(26, 8)},
         oracle=lambda x, b: (x + b)[..., :4] * gelu_of((x + b)[..., 4:]))
    Case("NhwcConv", "NhwcConv",
         {"x": values(27, 2, 7, 5, 3), "w": values(28, 4, 3, 2, 3), "b": values(29, 4)},
         strides=[2, 1], dynamic=("x",), oracle=conv_nhwc)


def matmuls():
    a, b, c = values(1, 4, 6), values(2, 6, 5), values(3, 5)
    Case("FusedGemm", "FusedGemm", {"a": a, "b": b, "c": c}, activation="LeakyRelu",
         activation_alpha=0.2, alpha=0.5, beta=2.0)
    Case("FusedGemm_trans", "FusedGemm", {"a": a.T.copy(), "b": b.T.copy()}, activation="Relu",
         transA=1, transB=1)
    Case("FusedMatMul", "FusedMatMul", {"a": values(4, 2, 3, 4, 6), "b": values(5, 3, 5, 6)},
         alpha=0.3, transB=1)
    Case("FusedMatMul_transA", "FusedMatMul", {"a": values(4, 2, 6, 4), "b": values(5, 2, 6, 5)},
         transA=1)
    Case("FusedMatMul_batch", "FusedMatMul", {"a": values(4, 4, 2, 6), "b": values(5, 6, 2, 5)},
         transBatchA=1, transBatchB=1)
    for bits in (4, 8):
        for k, block in ((32, 16), (40, 16), (70, 32)):
            blocks = -(-k // block)
            feeds = {"a": values(6, 2, 3, k), "b": whole(7, 0, 256, 5, blocks, block * bits // 8),
                     "scales": values(8, 5, blocks, low=0.05, high=0.3)}
            attributes = dict(K=k, N=5, bits=bits, block_size=block)
            fixed = ("b", "scales", "zero", "zero_float", "group", "bias")
            Case(f"MatMulNBits_{bits}_{k}", "MatMulNBits", feeds, constants=fixed, **attributes)
            zero = whole(9, 0, 256, 5, -(-blocks * bits // 8))
            Case(f"MatMulNBits_{bits}_{k}_zero", "MatMulNBits", {**feeds, "zero": zero},
                 constants=fixed, **attributes)
    Case("MatMulNBits_float_zero", "MatMulNBits",
         {"a": values(6, 3, 40), "b": whole(7, 0, 256, 5, 3, 8),
          "scales": values(8, 5, 3, low=0.05, high=0.3), "zero_float": values(10, 5, 3, low=5, high=9),
          "group": None, "bias": values(11, 5)}, constants=("b", "scales", "zero_float", "bias"),
         K=40, N=5, bits=4, block_size=16)


def attention():
    x, w, b = heads(1, 2, 5, 8), heads(2, 8, 24), heads(3, 24)
    base = {"x": x, "w": w, "b": b}
    raw = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
    Case("Attention", "Attention", base, num_heads=2)
    Case("Attention_causal", "Attention", base, num_heads=2, unidirectional=1, scale=0.3)
    Case("Attention_mask_raw", "Attention", {**base, "mask": raw}, num_heads=2)
    Case("Attention_mask_ends", "Attention", {**base, "mask": np.array([4, 2], np.int32)},
         num_heads=2)
    Case("Attention_mask_starts", "Attention", {**base, "mask": np.array([5, 4, 1, 2], np.int32)},
         num_heads=2)
    Case("Attention_mask_3d", "Attention",
         {**base, "mask": whole(4, 0, 2, 2, 5, 5, dtype=np.int32) | np.eye(5, dtype=np.int32)},
         num_heads=2)
    Case("Attention_bias", "Attention", {**base, "mask": None, "past": None, "bias": heads(5, 1, 2, 5, 5)},
         num_heads=2)
    Case("Attention_past", "Attention", {**base, "mask": None, "past": heads(6, 2, 2, 2, 3, 4)},
         outputs=2, num_heads=2, unidirectional=1)
    Case("Attention_sizes", "Attention", {"x": x, "w": heads(7, 8, 28), "b": heads(8, 28)},
         num_heads=2, qkv_hidden_sizes=[8, 8, 12])

    q, k, v = heads(11, 2, 4, 8), heads(12, 2, 6, 8), heads(13, 2, 6, 12)
    Case("MultiHeadAttention", "MultiHeadAttention", {"q": q, "k": k, "v": v}, num_heads=2)
    Case("MultiHeadAttention_bias", "MultiHeadAttention",
         {"q": q, "k": k, "v": v, "b": heads(14, 28)}, num_heads=2, scale=0.4)
    padding = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]], np.int32)
    Case("MultiHeadAttention_padding", "MultiHeadAttention",
         {"q": q, "k": k, "v": v, "b": None, "mask": padding, "bias": heads(15, 2, 1, 4, 6)},
         num_heads=2)
    Case("MultiHeadAttention_lengths", "MultiHeadAttention",
         {"q": q, "k": k, "v": v, "b": None, "mask": np.array([5, 2], np.int32)}, num_heads=2)
    past = {"pk": heads(16, 2, 2, 3, 4), "pv": heads(17, 2, 2, 3, 4)}
    new = {"q": heads(18, 2, 2, 8), "k": heads(19, 2, 2, 8), "v": heads(20, 2, 2, 8)}
    Case("MultiHeadAttention_past", "MultiHeadAttention",
         {**new, "b": None, "mask": None, "bias": None, **past}, outputs=3, num_heads=2,
         unidirectional=1)
    Case("MultiHeadAttention_cross", "MultiHeadAttention",
         {"q": q, "k": heads(21, 2, 2, 6, 4), "v": heads(22, 2, 2, 6, 4)}, num_heads=2)

    angles = np.outer(np.arange(16), 0.7 ** np.arange(4)).astype(np.float32)
    cos, sin = np.cos(angles), np.sin(angles)
    for interleaved in (0, 1):
        Case(f"RotaryEmbedding_{interleaved}", "RotaryEmbedding",
             {"x": heads(23, 2, 3, 16), "p": np.array([2], np.int64), "cos": cos, "sin": sin},
             interleaved=interleaved)
        Case(f"RotaryEmbedding_4d_{interleaved}", "RotaryEmbedding",
             {"x": heads(24, 2, 2, 3, 8), "p": whole(25, 0, 16, 2, 3, dtype=np.int64), "cos": cos,
              "sin": sin}, interleaved=interleaved)
    Case("RotaryEmbedding_partial", "RotaryEmbedding",
         {"x": heads(26, 2, 3, 24), "p": np.array([1], np.int64), "cos": cos, "sin": sin},
         num_heads=2, rotary_embedding_dim=8)
    angles = np.outer(np.arange(16), 0.7 ** np.arange(8)).astype(np.float32)
    group_query(np.cos(angles), np.sin(angles))


def group_query(cos, sin):
    def case(name, batch, steps, past, lengths, packed=False, extra=None, **attributes):
        hidden = 16
        q, k, v = (heads(30 + i, batch, steps, h * hidden) for i, h in enumerate((4, 2, 2)))
        feeds = {"q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k,
                 "v": None if packed else v,
                 "pk": None if past is None else heads(33, batch, 2, past, hidden),
                 "pv": None if past is None else heads(34, batch, 2, past, hidden),
                 "lengths": np.array(lengths, np.int32),
                 "total": np.array(max(lengths) + 1, np.int32)}
        for b in range(batch if past else 0):  # what lies behind the past is nobody's
            for key in ("pk", "pv"):
                feeds[key][b, :, lengths[b] + 1 - steps:] = 0
        if attributes.get("do_rotary"):
            feeds.update({"cos": cos, "sin": sin})
        if extra:
            for key in ("cos", "sin", "places", "bias", "sink"):
                feeds.setdefault(key, extra.get(key))
        Case(f"GroupQueryAttention_{name}", "GroupQueryAttention", feeds, outputs=3, num_heads=4,
             kv_num_heads=2, **attributes)

    case("prompt", 2, 5, None, [4, 4])
    case("prompt_past0", 2, 5, 0, [4, 4], do_rotary=1)
    case("prompt_buffer", 2, 5, 8, [4, 4], do_rotary=1)
    case("packed", 1, 4, None, [3], packed=True, do_rotary=1, rotary_interleaved=1)
    case("decode", 2, 1, 4, [4, 4], do_rotary=1)
    case("decode_ragged", 2, 1, 5, [4, 2], do_rotary=1)
    case("decode_buffer", 2, 1, 9, [4, 4], do_rotary=1)
    case("chunk", 1, 3, 4, [6], do_rotary=1)
    case("window", 1, 6, None, [5], local_window_size=3)
    case("window_decode", 1, 1, 6, [6], local_window_size=3)
    case("softcap", 1, 4, None, [3], softcap=2.0, scale=0.9)
    case("smooth", 1, 4, None, [3], smooth_softmax=1)
    case("sink", 1, 4, None, [3], extra={"sink": heads(35, 4)})
    case("bias", 1, 4, None, [3], extra={"bias": heads(36, 1, 4, 4, 4)})


def resampling():
    x = values(1, 1, 2, 5, 7)
    for mode in ("nearest", "linear", "cubic"):
        for transform in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            sizes = np.array([1, 2, 9, 4], np.int64)
            Case(f"Resize_{mode}_{transform}", "Resize",
                 {"x": x, "roi": None, "scales": None, "sizes": sizes}, domain="", opset=19,
                 mode=mode, coordinate_transformation_mode=transform, constants=("sizes",),
                 dynamic=("x",))
    Case("Resize_10_down", "Resize", {"x": x, "scales": f32([1, 1, 0.6, 0.5])}, domain="", opset=10,
         mode="nearest", constants=("scales",))
    Case("Resize_10_up", "Resize", {"x": x, "scales": f32([1, 1, 2, 3])}, domain="", opset=10,
         mode="linear", constants=("scales",), dynamic=("x",))
    Case("Upsample_9", "Upsample", {"x": x, "scales": f32([1, 1, 2, 3])}, domain="", opset=9,
         mode="nearest", constants=("scales",), dynamic=("x",))
    Case("Upsample_7", "Upsample", {"x": x}, domain="", opset=7, mode="linear",
         scales=[1.0, 1.0, 2.0, 1.5])
    Case("Resize_runtime_sizes", "Resize",
         {"x": x, "roi": None, "scales": None, "sizes": np.array([1, 2, 8, 9], np.int64)}, domain="",
         opset=19, mode="linear")
    Case("Resize_runtime_scales", "Resize", {"x": x, "roi": None, "scales": f32([1, 1, 2, 1.5])},
         domain="", opset=19, mode="nearest", nearest_mode="floor",
         coordinate_transformation_mode="asymmetric")
    Case("Resize_u8", "Resize", {"x": whole(2, 0, 256, 1, 1, 4, 4), "roi": None,
                                 "scales": f32([1, 1, 2, 2])}, domain="", opset=19, mode="nearest",
         constants=("scales",))
    grid = values(3, 2, 4, 3, 2, low=-1.4, high=1.4)
    image = values(4, 2, 3, 5, 6)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                Case(f"GridSample_{mode}_{padding}_{align}", "GridSample", {"x": image, "grid": grid},
                     domain="", mode=mode, padding_mode=padding, align_corners=align)
    Case("GridSample_3d", "GridSample",
         {"x": values(5, 1, 2, 3, 4, 5), "grid": values(6, 1, 2, 3, 2, 3, low=-1.3, high=1.3)},
         domain="")


def recurrent():
    sizes = {"RNN": 1, "GRU": 3, "LSTM": 4}
    lengths = np.array([6, 3, 1], np.int32)
    for op, gates in sizes.items():
        for direction in ("forward", "reverse", "bidirectional"):
            d = 2 if direction == "bidirectional" else 1
            base = {"x": values(1, 6, 3, 4), "w": heads(2, d, gates * 5, 4),
                    "r": heads(3, d, gates * 5, 5), "b": heads(4, d, 2 * gates * 5)}
            state = {"h": heads(5, d, 3, 5), **({"c": heads(6, d, 3, 5)} if op == "LSTM" else {})}
            outputs = 3 if op == "LSTM" else 2
            common = dict(domain="", hidden_size=5, direction=direction)
            Case(f"{op}_{direction}", op, base, outputs=outputs, **common)
            Case(f"{op}_{direction}_lengths", op, {**base, "lengths": lengths, **state},
                 outputs=outputs, dynamic=("x", "lengths"), **common)
            if op == "GRU":
                Case(f"{op}_{direction}_reset", op, base, outputs=2, linear_before_reset=1, **common)
            Case(f"{op}_{direction}_clip", op, base, outputs=outputs, clip=0.4, **common)
    quantized_recurrent()
    d = {"x": values(1, 6, 3, 4), "w": heads(2, 1, 20, 4), "r": heads(3, 1, 20, 5),
         "b": heads(4, 1, 40), "lengths": None, "h": None, "c": None, "p": heads(7, 1, 15)}
    Case("LSTM_peephole", "LSTM", d, outputs=3, domain="", hidden_size=5)
    Case("LSTM_input_forget", "LSTM", d, outputs=3, domain="", hidden_size=5, input_forget=1)
    Case("LSTM_single", "LSTM", {**d, "x": values(8, 1, 3, 4)}, outputs=3, domain="", hidden_size=5)
    Case("LSTM_activations", "LSTM", d, outputs=3, domain="", hidden_size=5,
         activations=["HardSigmoid", "LeakyRelu", "Softsign"], activation_alpha=[0.3, 0.2],
         activation_beta=[0.4])
    Case("RNN_activations", "RNN", {"x": values(1, 6, 3, 4), "w": heads(2, 2, 5, 4),
                                    "r": heads(3, 2, 5, 5)}, outputs=2, domain="", hidden_size=5,
         direction="bidirectional", activations=["Relu", "Affine"], activation_alpha=[0.7],
         activation_beta=[0.1])


def others():
    Case("Einsum_three", "Einsum", {"a": values(1, 2, 3), "b": values(2, 3, 4), "c": values(3, 4)},
         domain="", equation="ij,jk,k->i")
    Case("Einsum_attention", "Einsum", {"a": values(1, 2, 3, 2, 4), "b": values(2, 2, 5, 2, 4)},
         domain="", equation="bqhd,bkhd->bhqk", dynamic=("a", "b"))
    Case("Einsum_broadcast", "Einsum", {"a": values(1, 1, 3, 4), "b": values(2, 5, 4, 2)},
         domain="", equation="...ij,...jk")
    Case("Einsum_diagonal", "Einsum", {"a": values(1, 4, 3, 4)}, domain="", equation="iji->j")
    Case("Gemm_broadcast", "Gemm", {"a": values(1, 3, 4), "b": values(2, 5, 4), "c": values(3, 3, 1)},
         domain="", transB=1, alpha=0.5, beta=2.0, dynamic=("a",))
    Case("DepthToSpace_crd", "DepthToSpace", {"x": values(1, 1, 8, 2, 3)}, domain="", blocksize=2,
         mode="CRD", dynamic=("x",))
    Case("DeformConv", "DeformConv",
         {"x": values(1, 1, 4, 6, 5), "w": values(2, 4, 2, 3, 3),
          "o": values(3, 1, 36, 6, 5), "b": values(4, 4), "m": values(5, 1, 18, 6, 5, low=0, high=1)},
         domain="", pads=[1, 1, 1, 1], group=2, offset_group=2, opset=22)
    boxes = values(6, 2, 12, 4, low=0, high=1)
    Case("NonMaxSuppression", "NonMaxSuppression",
         {"b": boxes, "s": values(7, 2, 2, 12, low=0, high=1), "n": np.array([4], np.int64),
          "iou": f32([0.3]), "score": f32([0.2])}, domain="", center_point_box=1)


def write(case, out):
    folder = out / case.name
    folder.mkdir(parents=True)
    model = case.model()
    data = model.SerializeToString()
    feeds = case.feeds()
    if case.oracle is not None:
        results = case.expected()
    else:
        one_thread = ort.SessionOptions()
        one_thread.intra_op_num_threads = 1
        session = ort.InferenceSession(data, one_thread, providers=["CPUExecutionProvider"])
        results = session.run(None, feeds)
    (folder / "model.onnx").write_bytes(data)
    for i, (key, value) in enumerate(feeds.items()):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value, key).SerializeToString())
    for i, value in enumerate(results):
        tensor = numpy_helper.from_array(np.asarray(value), f"y{i}")
        (folder / f"output_{i}.pb").write_bytes(tensor.SerializeToString())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", default=str(pathlib.Path(__file__).parent / "contrib"))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    for group in (activations, convolutions, pooling, norms, without_kernels, matmuls, attention, quantized,
                  resampling, recurrent, others, more_attention, mixers, tensors, experts):
        group()
    for name, case in CASES.items():
        if options.only not in name:
            continue
        shutil.rmtree(out / name, ignore_errors=True)
        try:
            write(case, out)
        except Exception as error:  # ONNX Runtime cannot run it: then there is no oracle
            shutil.rmtree(out / name, ignore_errors=True)
            print(f"{name}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
