// SPDX-License-Identifier: Apache-2.0
// The primitives: attributes and semantics. Everything else expands into these. Shapes are in Dims,
// so every size may be symbolic. No primitive converts dtypes implicitly.
#pragma once

#include "ir/graph.h"

namespace ingot {

// --- sources ---------------------------------------------------------------------------------

/// () -> i64 or i32 [n], or a scalar: sizes as a tensor.
struct DimsToTensor {
    Dims values;
    DType dtype = DType::I64;
    bool scalar = false;
    static void fields(auto& s, auto&& f) {
        f("values", s.values), f("dtype", s.dtype), f("scalar", s.scalar);
    }
};
extern const OpDef dims_to_tensor_def;

/// x: i64[n] -> the same tensor; binds `symbols` (n fresh symbols) to its elements when it runs, so
/// that later types can use them. The inverse of dims_to_tensor: a host synchronisation on a GPU.
struct TensorToDims {
    Dims symbols;
    static void fields(auto& s, auto&& f) { f("symbols", s.symbols); }
};
extern const OpDef tensor_to_dims_def;

/// () -> dtype[dims]: the index along `axis` (integers or floats).
struct Iota {
    DType dtype = DType::I64;
    Dims dims;
    int64_t axis = 0;
    static void fields(auto& s, auto&& f) {
        f("dtype", s.dtype), f("dims", s.dims), f("axis", s.axis);
    }
};
extern const OpDef iota_def;

/// () -> dtype[dims] of pseudo-random numbers by Philox4x32-10 with key `seed` and the element's
/// index as counter: "uniform" in [a, b), "normal" with mean a and standard deviation b.
struct Random {
    std::string kind = "uniform";
    double a = 0;
    double b = 1;
    DType dtype = DType::F32;
    Dims dims;
    int64_t seed = 0;
    static void fields(auto& s, auto&& f) {
        f("kind", s.kind), f("a", s.a), f("b", s.b), f("dtype", s.dtype), f("dims", s.dims),
            f("seed", s.seed);
    }
};
extern const OpDef random_def;

// --- pointwise -------------------------------------------------------------------------------

/// Any number of inputs, broadcast by NumPy's rule -> dtype of the broadcast shape. The body's
/// result has compute_type(dtype) and is rounded where it is stored.
struct Map {
    Expr body;
    DType dtype = DType::F32;
    static void fields(auto& s, auto&& f) { f("body", s.body), f("dtype", s.dtype); }
};
extern const OpDef map_def;

// --- views: no data moves until a kernel needs it -----------------------------------------------

/// Row-major elements under other dims with the same product. When equality of the products cannot
/// be proven symbolically, the run checks it.
struct Reshape {
    Dims dims;
    static void fields(auto& s, auto&& f) { f("dims", s.dims); }
};
extern const OpDef reshape_def;

/// Result axis i is input axis perm[i].
struct Permute {
    std::vector<int64_t> perm;
    static void fields(auto& s, auto&& f) { f("perm", s.perm); }
};
extern const OpDef permute_def;

/// NumPy's broadcast_to: rank may grow on the left; sizes are equal or 1. A symbolic size that is 1
/// at run time also repeats.
struct Broadcast {
    Dims dims;
    static void fields(auto& s, auto&& f) { f("dims", s.dims); }
};
extern const OpDef broadcast_def;

/// Per axis: size[i] elements from start[i] in steps of step[i] (not 0; negative runs backwards).
struct Slice {
    Dims starts;
    Dims sizes;
    std::vector<int64_t> steps;
    static void fields(auto& s, auto&& f) {
        f("starts", s.starts), f("sizes", s.sizes), f("steps", s.steps);
    }
};
extern const OpDef slice_def;

/// Sliding windows over `axes`: each such axis of size d becomes
/// (d - dilation*(size-1) - 1) / stride + 1 positions, and one axis of `size` is appended per
/// entry, in order. x[N,C,H,W] with axes 2,3 gives [N,C,OH,OW,KH,KW].
struct Window {
    std::vector<int64_t> axes;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    static void fields(auto& s, auto&& f) {
        f("axes", s.axes), f("sizes", s.sizes), f("strides", s.strides),
            f("dilations", s.dilations);
    }
};
extern const OpDef window_def;

/// The same bits as another dtype. With different widths the last axis grows or shrinks by the
/// ratio (u8[4] -> u4[8], low nibble first); its bits must divide evenly.
struct Bitcast {
    DType dtype = DType::U8;
    static void fields(auto& s, auto&& f) { f("dtype", s.dtype); }
};
extern const OpDef bitcast_def;

// --- movement --------------------------------------------------------------------------------

/// (x, value: scalar of x's dtype) -> padded. Modes: "constant", "reflect", "edge", "wrap". Pads
/// are never negative (slice first). Only "constant" reads `value`.
struct Pad {
    Dims low;
    Dims high;
    std::string mode = "constant";
    static void fields(auto& s, auto&& f) { f("low", s.low), f("high", s.high), f("mode", s.mode); }
};
extern const OpDef pad_def;

struct Concat {
    int64_t axis = 0;
    static void fields(auto& s, auto&& f) { f("axis", s.axis); }
};
extern const OpDef concat_def;

/// (x, indices: i64 or i32 of any rank) -> x.shape[:axis] + indices.shape + x.shape[axis+1:].
/// Indices are in [0, size): the caller maps negative ones; others are a run-time error.
struct Gather {
    int64_t axis = 0;
    static void fields(auto& s, auto&& f) { f("axis", s.axis); }
};
extern const OpDef gather_def;

/// (x: [n, rest...], indices: i64 or i32 [m], updates: [m, rest...]) -> x with row indices[i]
/// combined with updates[i], in order of i. fn: "none" (last one wins), "add", "mul", "min", "max".
/// Indices as for gather.
struct Scatter {
    std::string fn = "none";
    static void fields(auto& s, auto&& f) { f("fn", s.fn); }
};
extern const OpDef scatter_def;

// --- reductions ------------------------------------------------------------------------------

/// x -> x without `axes` (ascending). fn: "sum", "prod", "min", "max" (bool: min is all, max is
/// any). Floats accumulate in at least f32. Over no elements: 0, 1, the largest, the smallest
/// value.
struct Reduce {
    std::string fn = "sum";
    std::vector<int64_t> axes;
    static void fields(auto& s, auto&& f) { f("fn", s.fn), f("axes", s.axes); }
};
extern const OpDef reduce_def;

/// x -> i64 without `axis`: the index of the largest ("max") or smallest ("min") element; among
/// equal ones the first, or the last. NaN counts as the extreme.
struct ArgReduce {
    std::string fn = "max";
    int64_t axis = 0;
    bool last = false;
    static void fields(auto& s, auto&& f) { f("fn", s.fn), f("axis", s.axis), f("last", s.last); }
};
extern const OpDef arg_reduce_def;

/// Running fn ("sum", "prod", "min", "max") along an axis; same shape.
struct Scan {
    std::string fn = "sum";
    int64_t axis = 0;
    bool exclusive = false;
    bool reverse = false;
    static void fields(auto& s, auto&& f) {
        f("fn", s.fn), f("axis", s.axis), f("exclusive", s.exclusive), f("reverse", s.reverse);
    }
};
extern const OpDef scan_def;

/// x -> (sorted, i64 indices) along an axis; stable; NaN sorts as the largest.
struct Sort {
    int64_t axis = 0;
    bool descending = false;
    static void fields(auto& s, auto&& f) { f("axis", s.axis), f("descending", s.descending); }
};
extern const OpDef sort_def;

// --- contraction -----------------------------------------------------------------------------

/// (a, b) -> [batch..., free of a..., free of b...] in dtype. Batch and contracted axes are paired
/// in order. Both operands have one dtype, or both are integers of up to 8 bits. Floats accumulate
/// in f32 (f64 for f64), integers in i32 (64 bits for wider operands). `exact`: no backend rounds
/// operands of f32, whatever its options allow for products.
struct Dot {
    std::vector<int64_t> a_batch;
    std::vector<int64_t> b_batch;
    std::vector<int64_t> a_contract;
    std::vector<int64_t> b_contract;
    DType dtype = DType::F32;
    bool exact = false;
    static void fields(auto& s, auto&& f) {
        f("a_batch", s.a_batch), f("b_batch", s.b_batch), f("a_contract", s.a_contract),
            f("b_contract", s.b_contract), f("dtype", s.dtype), f("exact", s.exact);
    }
};
extern const OpDef dot_def;

// --- dynamic sizes and control ---------------------------------------------------------------

/// x -> i64 [rank, count]: indices of nonzero elements in row-major order. `count` is a fresh
/// symbol.
struct NonZero {
    Dim count;
    static void fields(auto& s, auto&& f) { f("count", s.count); }
};
extern const OpDef nonzero_def;

/// (boxes [B,S,4], scores [B,C,S], max_output: i64 scalar, iou: f32 scalar, score: f32 scalar) ->
/// i64 [count, 3] of (batch, class, box), as ONNX NonMaxSuppression orders them.
struct Nms {
    bool center_point_box = false;
    Dim count;
    static void fields(auto& s, auto&& f) {
        f("center_point_box", s.center_point_box), f("count", s.count);
    }
};
extern const OpDef nms_def;

/// (condition: bool scalar, captures...) -> results of the branch. Both bodies take the captures
/// and return the same dtypes and ranks; `results` are the types seen outside, with fresh symbols
/// where the branches' sizes differ.
struct If {
    GraphRef then_body;
    GraphRef else_body;
    Dims symbols; // all fresh symbols of the result types
    static void fields(auto& s, auto&& f) {
        f("then", s.then_body), f("else", s.else_body), f("symbols", s.symbols);
    }
};
extern const OpDef if_def;

/// (trips: i64 scalar, condition: bool scalar, carried..., captures...) -> (carried..., scanned...)
/// body: (iteration: i64 scalar, condition, carried..., captures...) ->
///       (condition, carried..., scanned...)
/// Scanned results are stacked along a new axis 0 of size `count`, a fresh symbol, or the trip
/// count where that is known. Stops after `trips` iterations or when the condition is false. Sizes
/// of carried values that change between iterations are fresh symbols in the body and outside:
/// `carried` holds the types of the carried results.
struct Loop {
    GraphRef body;
    int64_t carried = 0;
    Dim count;
    Dims symbols; // fresh symbols of carried results, in order of first mention
    static void fields(auto& s, auto&& f) {
        f("body", s.body), f("carried", s.carried), f("count", s.count), f("symbols", s.symbols);
    }
};
extern const OpDef loop_def;

/// (inputs...) -> results of the body: a group of nodes that one kernel runs. Lowering creates it
/// for one backend; `kernel` names the family. Evaluates as its body does.
struct Fused {
    std::string kernel;
    GraphRef body;
    static void fields(auto& s, auto&& f) { f("kernel", s.kernel), f("body", s.body); }
};
extern const OpDef fused_def;

} // namespace ingot
