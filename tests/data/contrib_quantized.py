# SPDX-License-Identifier: Apache-2.0
"""Cases of make_contrib.py: quantised operators, and weights in blocks."""
import math

import numpy as np

from contrib_case import CASES, Case, f32, heads, i8, u8, values, whole


def quantized():
    a, b = whole(1, 0, 256, 2, 3, 4), whole(2, 0, 256, 3, 4)
    ab = {"a": a, "as": f32(0.03), "az": u8(120), "b": b, "bs": f32(0.05), "bz": u8(99)}
    for op in ("QLinearAdd", "QLinearMul"):
        Case(op, op, {**ab, "ys": f32(0.09), "yz": u8(130)})
        signed = {k: v.astype(np.int8) if v.dtype == np.uint8 else v for k, v in ab.items()}
        Case(f"{op}_signed", op, {**signed, "ys": f32(0.09), "yz": i8(3)})
    x = {"x": whole(3, 0, 256, 2, 3, 4, 6), "xs": f32(0.04), "xz": u8(110)}
    y = {"ys": f32(1 / 256), "yz": u8(0)}
    Case("QLinearSigmoid", "QLinearSigmoid", {**x, **y}, constants=("xs", "xz", "ys", "yz"))
    Case("QLinearLeakyRelu", "QLinearLeakyRelu", {**x, "ys": f32(0.03), "yz": u8(40)}, alpha=0.2,
         constants=("xs", "xz", "ys", "yz"))
    Case("QLinearSoftmax", "QLinearSoftmax", {**x, **y}, axis=-1, opset_=13,
         constants=("xs", "xz", "ys", "yz"))
    CASES["QLinearSoftmax"].attributes["opset"] = CASES["QLinearSoftmax"].attributes.pop("opset_")
    Case("QLinearGlobalAveragePool", "QLinearGlobalAveragePool",
         {**x, "ys": f32(0.02), "yz": u8(120)}, channels_last=0)
    Case("QLinearGlobalAveragePool_last", "QLinearGlobalAveragePool",
         {**x, "ys": f32(0.02), "yz": u8(120)}, channels_last=1)
    Case("QLinearAveragePool", "QLinearAveragePool", {**x, "ys": f32(0.03), "yz": u8(115)},
         kernel_shape=[2, 3], strides=[1, 2], pads=[1, 1, 0, 1])
    Case("QLinearAveragePool_last", "QLinearAveragePool", {**x, "ys": f32(0.03), "yz": u8(115)},
         kernel_shape=[2, 2], channels_last=1, count_include_pad=1, pads=[0, 1, 1, 0])
    Case("QLinearConcat", "QLinearConcat",
         {"ys": f32(0.05), "yz": u8(100), "a": whole(4, 0, 256, 2, 3), "as": f32(0.03),
          "az": u8(120), "b": whole(5, 0, 256, 2, 4), "bs": f32(0.06), "bz": u8(99)}, axis=1,
         constants=("ys", "yz", "as", "az", "bs", "bz"))
    Case("QLinearWhere", "QLinearWhere",
         {"condition": whole(31, 0, 2, 2, 3, 4).astype(bool), "a": a, "as": f32(0.03), "az": u8(120),
          "b": b, "bs": f32(0.05), "bz": u8(99), "ys": f32(0.07), "yz": u8(128)},
         constants=("as", "az", "bs", "bz", "ys", "yz"))
    Case("QGemm", "QGemm",
         {"a": whole(6, 0, 256, 3, 8), "as": f32(0.02), "az": u8(120),
          "b": whole(7, -128, 128, 5, 8, dtype=np.int8), "bs": values(8, 5, low=0.01, high=0.03),
          "bz": np.zeros(5, np.int8), "c": whole(9, -99, 99, 5, dtype=np.int32), "ys": f32(0.2),
          "yz": u8(128)}, transB=1)
    Case("QGemm_float", "QGemm",
         {"a": whole(6, 0, 256, 3, 8), "as": f32(0.02), "az": u8(120),
          "b": whole(7, 0, 256, 8, 5), "bs": f32(0.01), "bz": u8(99)}, alpha=0.5)
    Case("MatMulIntegerToFloat", "MatMulIntegerToFloat",
         {"a": whole(6, 0, 256, 3, 8), "b": whole(7, 0, 256, 8, 5), "as": f32(0.02),
          "bs": values(8, 5, low=0.01, high=0.03), "az": u8(120), "bz": whole(10, 0, 256, 5),
          "c": values(11, 5)})
    Case("DynamicQuantizeMatMul", "DynamicQuantizeMatMul",
         {"a": values(12, 3, 8), "b": whole(7, 0, 256, 8, 5), "bs": f32(0.02), "bz": u8(120),
          "c": values(11, 5)})
    Case("QAttention", "QAttention",
         {"x": whole(13, 0, 256, 2, 4, 8), "w": whole(14, 0, 256, 8, 24), "b": values(15, 24),
          "xs": f32(0.01), "ws": f32(0.01), "mask": np.array([4, 2], np.int32), "xz": u8(120),
          "wz": u8(130)}, num_heads=2, constants=("w",))
    products()
    blocks()
    for block, axis in ((0, 1), (2, 1), (3, 0)):
        data = values(16, 3, 6, low=-9, high=9)
        scale = {0: values(17, 6, low=0.1), 2: values(17, 3, 3, low=0.1),
                 3: values(17, 1, 6, low=0.1)}[block]
        zero = whole(18, 100, 150, *scale.shape)
        extra = {"axis": axis, **({"block_size": block} if block else {})}
        Case(f"QuantizeLinear_{block}", "QuantizeLinear", {"x": data, "s": scale, "z": zero},
             domain="", **extra)
        Case(f"DequantizeLinear_{block}", "DequantizeLinear",
             {"x": whole(19, 0, 256, 3, 6), "s": scale, "z": zero}, domain="", **extra)
    wide = np.array(30000, np.uint16)
    Case("QuantizeLinear_ms", "QuantizeLinear", {"x": data, "s": f32(0.002), "z": wide})
    Case("DequantizeLinear_ms", "DequantizeLinear",
         {"x": whole(30, 0, 65536, 3, 6, dtype=np.uint16), "s": f32(0.002), "z": wide})


def products():
    x = whole(20, 0, 256, 2, 4, 7, 6)
    w = whole(21, -128, 128, 6, 4, 3, 3, dtype=np.int8)
    common = {"x": x, "xs": f32(0.02), "xz": u8(117)}
    out = {"ys": f32(0.4), "yz": u8(121)}
    Case("QLinearConv", "QLinearConv", {**common, "w": w, "ws": f32(0.01), "wz": i8(0), **out},
         domain="", pads=[1, 1, 1, 1], constants=("w", "wz"))
    Case("QLinearConv_axis", "QLinearConv",
         {**common, "w": w, "ws": values(22, 6, low=0.005, high=0.02), "wz": np.zeros(6, np.int8),
          **out, "b": whole(23, -999, 999, 6, dtype=np.int32)}, domain="", strides=[2, 2],
         pads=[1, 0, 1, 2], constants=("w", "wz"), dynamic=("x",))
    Case("QLinearConv_zero", "QLinearConv",
         {**common, "w": whole(24, 0, 256, 4, 2, 3, 3), "ws": f32(0.01), "wz": u8(90), **out},
         domain="", group=2, pads=[1, 1, 1, 1], constants=("w",))
    Case("ConvInteger", "ConvInteger",
         {"x": x, "w": whole(24, 0, 256, 4, 4, 3, 3), "xz": u8(117), "wz": u8(90)}, domain="",
         pads=[1, 1, 1, 1], constants=("w",))
    Case("MatMulInteger", "MatMulInteger",
         {"a": whole(25, 0, 256, 2, 3, 8), "b": whole(26, -128, 128, 8, 5, dtype=np.int8),
          "az": u8(99), "bz": whole(27, -20, 20, 5, dtype=np.int8)}, domain="")
    Case("QLinearMatMul", "QLinearMatMul",
         {"a": whole(25, 0, 256, 2, 3, 8), "as": f32(0.02), "az": u8(99),
          "b": whole(26, -128, 128, 8, 5, dtype=np.int8), "bs": values(28, 5, low=0.01, high=0.03),
          "bz": np.zeros(5, np.int8), "ys": f32(0.3), "yz": u8(140)}, domain="")
    Case("DynamicQuantizeLinear", "DynamicQuantizeLinear", {"x": values(29, 3, 4)}, outputs=3,
         domain="")
    Case("DynamicQuantizeLinear_zero", "DynamicQuantizeLinear", {"x": f32(np.zeros((2, 3)))},
         outputs=3, domain="")


def quantized_recurrent():
    """By one thread, since ONNX Runtime quantises the states of each thread's sequences apart; with signed weights of
    7 bits, since its products of u8 and s8 saturate on CPUs without VNNI."""
    lengths = np.array([6, 3, 1], np.int32)
    for direction in ("forward", "reverse", "bidirectional"):
        d = 2 if direction == "bidirectional" else 1
        for columns in (False, True):
            shape = (d, 20) if columns else (d,)
            base = {"x": values(1, 6, 3, 4), "w": whole(2, -64, 64, d, 4, 20, dtype=np.int8),
                    "r": whole(3, -64, 64, d, 5, 20, dtype=np.int8), "b": heads(4, d, 40),
                    "lengths": None, "h": None, "c": None, "p": None,
                    "ws": values(8, *shape, low=0.002, high=0.01), "wz": np.zeros(shape, np.int8),
                    "rs": values(9, *shape, low=0.002, high=0.01), "rz": np.zeros(shape, np.int8)}
            fixed = ("w", "r", "b", "ws", "wz", "rs", "rz")
            name = f"DynamicQuantizeLSTM_{direction}{'_columns' if columns else ''}"
            common = dict(hidden_size=5, direction=direction, constants=fixed)
            Case(name, "DynamicQuantizeLSTM", base, outputs=3, **common)
            if columns:
                Case(f"{name}_lengths", "DynamicQuantizeLSTM",
                     {**base, "lengths": lengths, "h": heads(5, d, 3, 5), "c": heads(6, d, 3, 5),
                      "p": heads(7, d, 15)}, outputs=3, dynamic=("x", "lengths"), **common)
                Case(f"{name}_last", "DynamicQuantizeLSTM", {**base, "lengths": lengths},
                     outputs=[False, True, True], **common)
    # No sequence reaches the last two steps, whose large values must not widen the range.
    steps = values(1, 6, 3, 4)
    steps[4:] *= 1000
    Case("DynamicQuantizeLSTM_short", "DynamicQuantizeLSTM",
         {**base, "x": steps, "lengths": np.array([4, 2, 1], np.int32)}, outputs=3,
         dynamic=("x", "lengths"), **common)
    Case("DynamicQuantizeLSTM_unsigned", "DynamicQuantizeLSTM",
         {**base, "w": whole(2, 0, 256, 2, 4, 20), "r": whole(3, 0, 256, 2, 5, 20),
          "ws": values(8, 2, low=0.002, high=0.01), "wz": np.array([120, 99], np.uint8),
          "rs": values(9, 2, low=0.002, high=0.01), "rz": np.array([140, 101], np.uint8)},
         outputs=3, direction="bidirectional", hidden_size=5)


def blocks():
    """Models that onnxruntime.quantization makes of Gather, of MatMul by 4 bits of bitsandbytes,
    and of embeddings."""
    ids = np.array([[3, 0, 6], [1, 6, -2]], np.int64)
    for bits, width in ((4, 20), (8, 40)):
        for zeros in (False, True):
            scales = values(2, 7, 3, low=0.01, high=0.1)
            zero = whole(3, 0, 256, 7, 2 if bits == 4 else 3)
            Case(f"GatherBlockQuantized_{bits}{'_zeros' if zeros else ''}", "GatherBlockQuantized",
                 {"data": whole(1, 0, 256, 7, width), "ids": ids, "s": scales,
                  **({"z": zero} if zeros else {})}, constants=("data", "s", "z"), bits=bits,
                 gather_axis=0, quantize_axis=1, block_size=16)
    for kind in (0, 1):
        k, n = 24, 5
        Case(f"MatMulBnb4_{kind}", "MatMulBnb4",
             {"a": values(4, 3, k), "b": whole(5, 0, 256, k * n // 2),
              "most": values(6, math.ceil(k * n / 32), low=0.1, high=2)}, constants=("b", "most"),
             K=k, N=n, block_size=32, quant_type=kind)
    ids = np.array([[3, 0, 6], [1, 6, 2]], np.int32)
    tables = {"word": whole(7, 0, 256, 7, 8), "position": whole(8, 0, 256, 4, 8),
              "segment": whole(9, 0, 256, 2, 8), "gamma": whole(10, 0, 256, 8),
              "beta": whole(11, 0, 256, 8)}
    scales = {f"{k}_s": f32(0.01 + 0.003 * i) for i, k in enumerate(tables)}
    zeros = {f"{k}_z": u8(100 + 9 * i) for i, k in enumerate(tables)}
    mask = {"mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32)}
    Case("QEmbedLayerNormalization", "QEmbedLayerNormalization",
         {"ids": ids, "segments": (ids % 2).astype(np.int32), **tables, **mask, **scales, **zeros},
         outputs=2, constants=(*tables, *scales, *zeros), epsilon=1e-5)
