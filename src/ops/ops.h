// SPDX-License-Identifier: Apache-2.0
// Builders: each adds nodes to a graph and returns the result. Importers, composites and passes
// write graphs with them. All broadcast by NumPy's rule; none converts dtypes: a mismatch throws
// InvalidModel with both types.
#pragma once

#include "ops/primitives.h"

namespace ingot::ops {

// --- sources
Value constant(Graph& g, Tensor t);
/// A scalar of the given dtype; integers must be exact in a double.
Value scalar(Graph& g, DType t, double v);
Value scalar_i64(Graph& g, DType t, int64_t v);
Value i64_list(Graph& g, const std::vector<int64_t>& v);
Value dims_tensor(Graph& g, const Dims& d, DType t = DType::I64);
Value dim_scalar(Graph& g, const Dim& d, DType t = DType::I64);
Value iota(Graph& g, DType t, const Dims& dims, int64_t axis);
/// t[dims] filled with one value (a broadcast scalar).
Value full(Graph& g, DType t, const Dims& dims, double v);

// --- pointwise
Value map(Graph& g, Expr body, DType dtype, std::span<const Value> in);
/// One scalar function of expr.def; unary or binary. Result dtype: the operands', or bool for
/// tests.
Value unary(Graph& g, ExprOp op, Value a);
Value binary(Graph& g, ExprOp op, Value a, Value b);
/// A binary function with a constant of a's dtype.
Value binary(Graph& g, ExprOp op, Value a, double b);
Value select(Graph& g, Value condition, Value a, Value b);
Value cast(Graph& g, Value a, DType to, bool saturate = false);
/// Converts f16/bf16/fp8 to f32 and leaves other types alone: for numerically delicate expansions.
Value widen(Graph& g, Value a);
inline Value add(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Add, a, b);
}
inline Value sub(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Sub, a, b);
}
inline Value mul(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Mul, a, b);
}
inline Value div(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Div, a, b);
}
inline Value add(Graph& g, Value a, double b) {
    return binary(g, ExprOp::Add, a, b);
}
inline Value sub(Graph& g, Value a, double b) {
    return binary(g, ExprOp::Sub, a, b);
}
inline Value mul(Graph& g, Value a, double b) {
    return binary(g, ExprOp::Mul, a, b);
}
inline Value div(Graph& g, Value a, double b) {
    return binary(g, ExprOp::Div, a, b);
}
inline Value minimum(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Min, a, b);
}
inline Value maximum(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Max, a, b);
}
inline Value minimum(Graph& g, Value a, double b) {
    return binary(g, ExprOp::Min, a, b);
}
inline Value maximum(Graph& g, Value a, double b) {
    return binary(g, ExprOp::Max, a, b);
}
inline Value equal(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Eq, a, b);
}
inline Value less(Graph& g, Value a, Value b) {
    return binary(g, ExprOp::Lt, a, b);
}
inline Value exp(Graph& g, Value a) {
    return unary(g, ExprOp::Exp, a);
}
inline Value sqrt(Graph& g, Value a) {
    return unary(g, ExprOp::Sqrt, a);
}
inline Value logical_not(Graph& g, Value a) {
    return unary(g, ExprOp::Not, a);
}

// --- views; each returns x itself when it would change nothing
Value reshape(Graph& g, Value x, const Dims& dims);
Value permute(Graph& g, Value x, const std::vector<int64_t>& perm);
Value transpose_last(Graph& g, Value x); // swaps the last two axes
Value broadcast_to(Graph& g, Value x, const Dims& dims);
/// `size` elements from `start` along one axis.
Value slice(Graph& g, Value x, int64_t axis, const Dim& start, const Dim& size, int64_t step = 1);
Value reverse(Graph& g, Value x, int64_t axis);
Value unsqueeze(Graph& g, Value x, const std::vector<int64_t>& axes); // positions in the result
Value squeeze(Graph& g, Value x, const std::vector<int64_t>& axes);
Value flatten(Graph& g, Value x); // rank 1
Value window(Graph& g, Value x, Window w);
Value bitcast(Graph& g, Value x, DType to);

// --- movement
Value pad(Graph& g, Value x, const Dims& low, const Dims& high, double value = 0);
Value pad(Graph& g, Value x, const Dims& low, const Dims& high, Value value, std::string mode);
Value concat(Graph& g, std::span<const Value> in, int64_t axis);
Value gather(Graph& g, Value x, Value indices, int64_t axis);
/// gather with ONNX's rule that index -k means size - k.
Value gather_wrapped(Graph& g, Value x, Value indices, int64_t axis);
/// indices < 0 ? indices + size : indices, in the indices' dtype.
Value wrap_indices(Graph& g, Value indices, const Dim& size);
Value scatter(Graph& g, Value x, Value indices, Value updates, std::string fn);

// --- reductions
Value reduce(Graph& g, std::string fn, Value x, std::vector<int64_t> axes, bool keep = false);
inline Value reduce_sum(Graph& g, Value x, std::vector<int64_t> axes, bool keep = false) {
    return reduce(g, "sum", x, std::move(axes), keep);
}
inline Value reduce_max(Graph& g, Value x, std::vector<int64_t> axes, bool keep = false) {
    return reduce(g, "max", x, std::move(axes), keep);
}
/// Sum divided by the (possibly symbolic) count, in x's dtype.
Value reduce_mean(Graph& g, Value x, std::vector<int64_t> axes, bool keep = false);
Value arg_reduce(Graph& g, std::string fn, Value x, int64_t axis, bool last = false);
Value scan(Graph& g, Scan s, Value x);
Values sort(Graph& g, Value x, int64_t axis, bool descending);

// --- contraction
Value dot(Graph& g, Dot d, Value a, Value b);
/// NumPy's matmul with batch broadcasting and rank-1 operands; dtype as a's.
Value matmul(Graph& g, Value a, Value b);
Value matmul(Graph& g, Value a, Value b, DType dtype);

// --- sizes
const Dims& dims(const Graph& g, Value v);
/// The elements of an integer tensor of rank 0 or 1 as sizes, when they are known symbolically.
std::optional<Dims> known_dims(const Graph& g, Value v);
/// The same, but binds fresh symbols at run time for unknown elements. `is_signed`: the elements
/// may be negative.
Dims dims_from(Graph& g, Value v, bool is_signed = false);

// --- composites (one file each in src/ops) ------------------------------------------------------

/// (x [N,C,spatial...], w [O,C/groups,kernel...]) -> [N,O,spatial...], no bias, in x's dtype or
/// `dtype` (i32 for 8-bit integers). Pads are never negative.
struct Conv {
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    Dims low;
    Dims high;
    int64_t groups = 1;
    DType dtype = DType::F32;
    static void fields(auto& s, auto&& f) {
        f("strides", s.strides), f("dilations", s.dilations), f("low", s.low), f("high", s.high),
            f("groups", s.groups), f("dtype", s.dtype);
    }
};
Value conv(Graph& g, Conv a, Value x, Value w);

/// (x [N,C,spatial...], w [C,O/groups,kernel...]) -> the transpose of conv's data flow. `low` and
/// `high` are removed from the full result (negative: zeros are added); out = (in-1)*stride +
/// dilation*(k-1) + 1 - low - high.
struct ConvTranspose {
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    Dims low;
    Dims high;
    int64_t groups = 1;
    static void fields(auto& s, auto&& f) {
        f("strides", s.strides), f("dilations", s.dilations), f("low", s.low), f("high", s.high),
            f("groups", s.groups);
    }
};
Value conv_transpose(Graph& g, ConvTranspose a, Value x, Value w);

/// x [N,C,spatial...] -> [N,C,positions...]. fn: "max" (ignores padding) or "average" (over the
/// elements inside; with count_padding also over low/high padding). `extra` is padding at the high
/// end for ceil mode; it is never counted.
struct Pool {
    std::string fn = "max";
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    Dims low;
    Dims high;
    Dims extra;
    bool count_padding = false;
    static void fields(auto& s, auto&& f) {
        f("fn", s.fn), f("sizes", s.sizes), f("strides", s.strides), f("dilations", s.dilations),
            f("low", s.low), f("high", s.high), f("extra", s.extra),
            f("count_padding", s.count_padding);
    }
};
Value pool(Graph& g, Pool a, Value x);

/// Softmax or log-softmax along one axis; computes in f32 for small floats.
struct Softmax {
    int64_t axis = -1;
    bool log = false;
    static void fields(auto& s, auto&& f) { f("axis", s.axis), f("log", s.log); }
};
Value softmax(Graph& g, Value x, int64_t axis, bool log = false);

/// (x, scale, [bias]) -> normalised over axes axis..rank-1 in f32, then scaled; scale and bias
/// broadcast against those axes, in the builder against x. rms: no mean is subtracted.
struct LayerNorm {
    int64_t axis = -1;
    double epsilon = 1e-5;
    bool rms = false;
    static void fields(auto& s, auto&& f) {
        f("axis", s.axis), f("epsilon", s.epsilon), f("rms", s.rms);
    }
};
Value layer_norm(Graph& g, LayerNorm a, Value x, Value scale, Value bias = {});

/// (x [N,C,...], scale [C], bias [C]) normalised over each of `groups` groups of channels in f32;
/// instance normalisation has groups == C.
struct GroupNorm {
    int64_t groups = 1;
    double epsilon = 1e-5;
    static void fields(auto& s, auto&& f) { f("groups", s.groups), f("epsilon", s.epsilon); }
};
Value group_norm(Graph& g, GroupNorm a, Value x, Value scale, Value bias);

/// x * Phi(x), by erf, or by tanh: 0.5x(1 + tanh(sqrt(2/pi)(x + 0.044715x^3))).
struct Gelu {
    bool tanh = false;
    static void fields(auto& s, auto&& f) { f("tanh", s.tanh); }
};
Value gelu(Graph& g, Value x, bool tanh = false);

/// (x, k = size) -> (values, i64 indices) of the k largest or smallest along an axis, sorted.
struct TopK {
    Dim k;
    int64_t axis = -1;
    bool largest = true;
    static void fields(auto& s, auto&& f) {
        f("k", s.k), f("axis", s.axis), f("largest", s.largest);
    }
};
Values topk(Graph& g, TopK a, Value x);

/// (x float, scale, [zero_point: dtype]) -> saturate(round(x / scale) + zero_point). Scale and zero
/// point are scalars, or per element of `axis`, or (block > 0) per block of `block` along it.
struct Quantize {
    int64_t axis = 1;
    int64_t block = 0;
    DType dtype = DType::I8;
    bool saturate = true;
    static void fields(auto& s, auto&& f) {
        f("axis", s.axis), f("block", s.block), f("dtype", s.dtype), f("saturate", s.saturate);
    }
};
Value quantize(Graph& g, Quantize a, Value x, Value scale, Value zero_point = {});

/// (x quantised or i32, scale, [zero_point]) -> (x - zero_point) * scale in dtype.
struct Dequantize {
    int64_t axis = 1;
    int64_t block = 0;
    DType dtype = DType::F32;
    static void fields(auto& s, auto&& f) {
        f("axis", s.axis), f("block", s.block), f("dtype", s.dtype);
    }
};
Value dequantize(Graph& g, Dequantize a, Value x, Value scale, Value zero_point = {});

/// (a float, q quantised, scale, [zero_point]) -> dot of a with q dequantised to a's dtype; no
/// batch axes. Scale and zero point follow dequantize's rules for `axis` and `block`; a scalar zero
/// point applies to all blocks.
struct QuantizedDot {
    std::vector<int64_t> a_contract, b_contract;
    DType dtype = DType::F32;
    int64_t axis = 1;
    int64_t block = 0;
    static void fields(auto& s, auto&& f) {
        f("a_contract", s.a_contract), f("b_contract", s.b_contract), f("dtype", s.dtype),
            f("axis", s.axis), f("block", s.block);
    }
};
Value quantized_dot(Graph& g, QuantizedDot a, Value x, Value q, Value scale, Value zero_point = {});

/// (q [B,H,S,D], k [B,G,T,D], v [B,G,T,E], [mask]) -> [B,H,S,E]; H is a multiple of G, and head h
/// reads group h / (H/G). mask is bool (false hides) or float (added), broadcast to [B,H,S,T].
/// Scores are q.k * scale, then softcap*tanh(./softcap) when softcap > 0, then masked, then softmax
/// in f32. causal: query s sees keys t <= s + offset.
struct Attention {
    double scale = 1;
    double softcap = 0;
    bool causal = false;
    Dim offset = 0;
    static void fields(auto& s, auto&& f) {
        f("scale", s.scale), f("softcap", s.softcap), f("causal", s.causal), f("offset", s.offset);
    }
};
Value attention(Graph& g, Attention a, Value q, Value k, Value v, Value mask = {});

/// (x [..., S, D], cos, sin) -> rotated pairs; cos and sin broadcast to [..., S, D/2]. Pairs are
/// (i, i + D/2), or (2i, 2i + 1) when interleaved.
struct Rope {
    bool interleaved = false;
    static void fields(auto& s, auto&& f) { f("interleaved", s.interleaved); }
};
Value rope(Graph& g, Rope a, Value x, Value cos, Value sin);

/// x resampled along `axes` to `sizes`. mode: "nearest", "linear" or "cubic" (parameter `cubic`);
/// coordinates: the names of ONNX Resize's coordinate transformations. `scales` holds one factor an
/// axis; 0 (or an empty list) means output size / input size. roi (tf_crop_and_resize): starts,
/// then ends; positions outside the input then get `extrapolation`. Scales, or scales and roi, that
/// are known only at run time are inputs (x, scales [axes], roi [2 * axes]) instead.
struct Resize {
    std::vector<int64_t> axes;
    Dims sizes;
    std::vector<double> scales;
    std::string mode = "nearest";
    std::string coordinates = "half_pixel";
    std::string nearest = "round_prefer_floor";
    std::vector<double> roi;
    double cubic = -0.75;
    double extrapolation = 0;
    bool antialias = false;
    bool exclude_outside = false;
    static void fields(auto& s, auto&& f) {
        f("axes", s.axes), f("sizes", s.sizes), f("scales", s.scales), f("mode", s.mode),
            f("coordinates", s.coordinates), f("nearest", s.nearest), f("roi", s.roi),
            f("cubic", s.cubic), f("extrapolation", s.extrapolation), f("antialias", s.antialias),
            f("exclude_outside", s.exclude_outside);
    }
};
Value resize(Graph& g, Resize a, Value x, Value scales = {}, Value roi = {});

extern const OpDef conv_def, conv_transpose_def, pool_def, softmax_def, layer_norm_def,
    group_norm_def, gelu_def, topk_def, quantize_def, dequantize_def, quantized_dot_def,
    attention_def, rope_def, resize_def;

} // namespace ingot::ops
