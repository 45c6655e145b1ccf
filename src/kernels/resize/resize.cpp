// SPDX-License-Identifier: Apache-2.0
// Family resize: a small kernel makes tables of neighbours and weights for each resized axis; then
// one thread makes a vector of the result. All axes at once where few elements make a result, else
// one after another. Operands of any strides; the length of the table is that of the axes.
#include "ops/resize.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/copy/movement.h"
#include "kernels/pointwise/index_text.h"
#include "kernels/reduce/reduce_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ingot::kernels {

namespace {

constexpr size_t most_axes = 3;
constexpr int64_t most_together = 64; // elements per result

/// `struct Axes` of resize_taps.cuh.
struct AxisArg {
    double in, out, scale, full, from, extent;
    int32_t size, positions, taps, at;
};
struct AxesArg {
    AxisArg axis[most_axes];
    double cubic;
};

struct Resizing {
    ops::Resize attrs;
    bool nearest = false;
    AxesArg arg{};
    int64_t entries = 0; // of the tables

    size_t axes() const { return attrs.axes.size(); }
    /// The literal number of taps; 0 where it is an argument.
    int64_t fixed_taps() const {
        return nearest ? 1 : attrs.antialias ? 0 : attrs.mode == "linear" ? 2 : 4;
    }
};

int index_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

int64_t tap_count(const Resizing& r, double given, int64_t in, int64_t out) {
    if (r.fixed_taps() > 0) {
        return r.fixed_taps();
    }
    int64_t reach = r.attrs.mode == "linear" ? 1 : 2;
    if (given > 0) {
        return 2 *
               static_cast<int64_t>(std::ceil(static_cast<double>(reach) / std::min(given, 1.0)));
    }
    return 2 * std::max(div_up(reach * in, out), reach);
}

Resizing resizing_of(const Problem& p) {
    Resizing r;
    r.attrs = p.group.first().as<ops::Resize>();
    r.nearest = r.attrs.mode == "nearest";
    r.arg.cubic = r.attrs.cubic;
    size_t n = r.axes();
    for (size_t i = 0; i < n; ++i) {
        auto d = static_cast<size_t>(r.attrs.axes[i]);
        int64_t in = p.in[0].view.shape[d];
        int64_t out = p.out[0].view.shape[d];
        AxisArg& a = r.arg.axis[i];
        double given = r.attrs.scales.empty() ? 0 : r.attrs.scales[i];
        a.in = static_cast<double>(in);
        a.out = static_cast<double>(out);
        a.scale = given > 0 ? given : a.out / a.in;
        a.full = given > 0 ? a.in * given : a.out;
        if (r.attrs.roi.size() == 2 * n) {
            a.from = r.attrs.roi[i];
            a.extent = r.attrs.roi[n + i] - a.from;
        }
        int64_t taps = out > 0 ? tap_count(r, given, in, out) : 1;
        require(in < INT32_MAX && (r.entries + out * taps) < INT32_MAX, ErrorCode::Unsupported,
                "resize of an axis of ", in, " elements to ", out, " with ", taps, " neighbours");
        a.size = static_cast<int32_t>(in);
        a.positions = static_cast<int32_t>(out);
        a.taps = static_cast<int32_t>(taps);
        a.at = static_cast<int32_t>(r.entries);
        r.entries += out * taps;
    }
    return r;
}

Launch taps_launch(const Resizing& r, bool wide, int64_t weights) {
    Launch l;
    Defines d;
    d.add("COORDINATES",
          index_of(r.attrs.coordinates,
                   {"half_pixel", "asymmetric", "tf_half_pixel_for_nn", "pytorch_half_pixel",
                    "align_corners", "half_pixel_symmetric", "tf_crop_and_resize"}));
    d.add("MODE", index_of(r.attrs.mode, {"nearest", "linear", "cubic"}));
    d.add("NEAREST",
          index_of(r.attrs.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    d.add("ANTIALIAS", r.attrs.antialias ? 1 : 0).add("EXCLUDE", r.attrs.exclude_outside ? 1 : 0);
    d.add("C", wide ? "double" : "float");
    l.program = {{"types", "math"}, d.text(), "resize_taps", {}};
    l.entry = "resize_taps";
    int64_t most = 0;
    for (size_t i = 0; i < r.axes(); ++i) {
        most = std::max<int64_t>(most, r.arg.axis[i].positions);
    }
    l.grid = {div_up(most, 256), static_cast<int64_t>(r.axes()), 1};
    l.args.scratch(0).scratch(weights).value(r.arg);
    return l;
}

/// One launch over some of the axes, from one operand to another.
struct Stage {
    const Resizing& r;
    std::vector<size_t> axes; // entries; the first is summed innermost
    Operand from, to;
    int64_t weights = 0; // offset of the table in scratch memory
    bool last = true;    // converts to the result's dtype
    bool wide = false;   // computes in f64

    std::string_view compute() const { return wide ? "double" : "float"; }
    /// The index in `axes` that resizes an axis of the view; -1 for none.
    int resizes(size_t axis) const {
        for (size_t i = 0; i < axes.size(); ++i) {
            if (static_cast<size_t>(r.attrs.axes[axes[i]]) == axis) {
                return static_cast<int>(i);
            }
        }
        return -1;
    }
};

int stage_vector(const Stage& s, size_t innermost) {
    const View& x = s.from.view;
    const View& y = s.to.view;
    if (s.resizes(innermost) >= 0 || x.strides[innermost] != 1 || y.strides[innermost] != 1) {
        return 1;
    }
    std::vector<int64_t> multiples{x.offset, y.offset, y.shape[innermost]};
    for (size_t d = 0; d < y.shape.size(); ++d) {
        if (d != innermost) {
            multiples.push_back(x.strides[d]);
            multiples.push_back(y.strides[d]);
        }
    }
    int64_t widest = std::max(bytes_of(s.from.dtype), bytes_of(s.to.dtype));
    return vector_width(s.from, multiples, static_cast<int>(std::min<int64_t>(16 / widest, 8)));
}

/// The sum over the taps of axis `k` of the stage and those inside it, added to `sum``k`.
std::string sum_text(const Stage& s, int k, const std::string& at, int v) {
    std::string_view c = s.compute();
    if (k < 0) {
        return str("{\nPack<T, V> q = *(const Pack<T, V>*)(x + ", at,
                   ");\n#pragma unroll\nfor (int v = 0; v < V; ++v) sum[v] = (", c,
                   ")widen(q.v[v]);\n}\n");
    }
    int64_t taps = s.r.fixed_taps();
    std::string j = str("j", k);
    std::string next = str("at", k);
    std::string sum = str("sum", k);
    // Each level keeps its own sum, and passes it on in `sum`.
    return str("{\n", c, " ", sum, "[V];\n#pragma unroll\nfor (int v = 0; v < V; ++v) ", sum,
               "[v] = 0;\n", taps > 0 ? "#pragma unroll\n" : "#pragma unroll 1\n", "for (i32 ", j,
               " = 0; ", j, " < ", taps > 0 ? str(taps) : str("taps", k), "; ++", j,
               ") {\nconst i64 ", next, " = ", at, " + (i64)place", k, "[", j, "] * r", k, ";\n",
               sum_text(s, k - 1, next, v), "const ", c, " w = weight", k, "[", j,
               "];\n#pragma unroll\nfor (int v = 0; v < V; ++v) ", sum, "[v] += sum[v] * w;\n}\n",
               "#pragma unroll\nfor (int v = 0; v < V; ++v) sum[v] = ", sum, "[v];\n}\n");
}

/// Converts a sum to the stored element: whole numbers round and saturate.
std::string stored_text(const Stage& s) {
    if (!s.last) {
        return "o.v[v] = sum[v];\n";
    }
    Expr e;
    int x = e.in(0, s.wide ? DType::F64 : DType::F32);
    if (is_integer(s.to.dtype)) {
        x = e.op(ExprOp::Round, x);
    }
    if (is_integer(s.to.dtype) && !is_signed(s.to.dtype)) { // a cast wraps below 0
        x = e.op(ExprOp::Max, x, e.constant(s.wide ? DType::F64 : DType::F32, 0));
    }
    e.cast(x, s.to.dtype, !is_float(s.to.dtype));
    std::string input = "sum[v]";
    ExprText t = expr_text(e, std::span(&input, 1));
    return str(t.statements, "o.v[v] = narrow<O>(", t.result, ");\n");
}

std::string value_text(const Stage& s, int v, bool crop) {
    std::string outside = crop ? "outside" : "false";
    if (s.r.nearest) {
        return str("Pack<T, V> o;\nif (", outside, ") {\n#pragma unroll\nfor (int v = 0; v < ", v,
                   "; ++v) o.v[v] = narrow<T>((Stored<T>::Compute)fill);\n} else o = "
                   "*(const Pack<T, V>*)(x + at);\n");
    }
    std::string_view c = s.compute();
    int top = static_cast<int>(s.axes.size()) - 1;
    return str(c, " sum[V];\nif (", outside, ") {\n#pragma unroll\nfor (int v = 0; v < ", v,
               "; ++v) sum[v] = (", c, ")fill;\n} else ", sum_text(s, top, "at", v),
               "Pack<O, V> o;\n#pragma unroll\nfor (int v = 0; v < ", v, "; ++v) {\n",
               stored_text(s), "}\n");
}

/// Statements that find the first element, the position of the result, and each axis' tables. Adds
/// the parameters that they use.
std::string place_text(const Stage& s, const std::vector<size_t>& order, int v, bool crop,
                       Signature& parameters) {
    std::string body = "i64 at = 0, to = 0;\nbool outside = false;\n";
    for (size_t k = 0; k < order.size(); ++k) {
        std::string x = str("(i64)x", k, k + 1 == order.size() && v > 1 ? str(" * ", v) : "");
        parameters.i64(str("t", k), s.to.view.strides[order[k]]);
        append(body, str("to += ", x, " * t", k, ";\n"));
        int i = s.resizes(order[k]);
        int64_t stride = s.from.view.strides[order[k]];
        if (i < 0) {
            parameters.i64(str("f", k), stride);
            append(body, str("at += ", x, " * f", k, ";\n"));
            continue;
        }
        const AxisArg& a = s.r.arg.axis[s.axes[static_cast<size_t>(i)]];
        parameters.i64(str("r", i), stride).i32(str("table", i), a.at).i32(str("taps", i), a.taps);
        append(body, str("const i32* place", i, " = places + table", i, " + (i32)x", k, " * taps",
                         i, ";\nconst ", s.compute(), "* weight", i, " = weights + table", i,
                         " + (i32)x", k, " * taps", i, ";\n(void)weight", i, ";\n"));
        append(body, crop ? str("outside = outside || place", i, "[0] < 0;\n") : std::string());
        append(body, s.r.nearest ? str("at += (i64)place", i, "[0] * r", i, ";\n") : "");
    }
    return body;
}

Launch stage_launch(const Stage& s) {
    const View& y = s.to.view;
    std::vector<size_t> order;
    for (int axis : plan::stride_order(y)) {
        order.push_back(static_cast<size_t>(axis));
    }
    int v = stage_vector(s, order.back());
    Shape sizes;
    for (size_t d : order) {
        sizes.push_back(y.shape[d]);
    }
    sizes.back() /= v;
    int64_t n = y.count() / v;
    bool many = n >= int64_t{1} << 30;
    IndexText index(sizes, many);
    Signature parameters(many);
    parameters.pointer("O*", "y", s.to).pointer("const T*", "x", s.from);
    parameters.scratch("const i32*", "places", 0);
    parameters.scratch(str("const ", s.compute(), "*"), "weights", s.weights);
    parameters.f64("fill", s.r.attrs.extrapolation).size("n", n);
    index.add(parameters);
    bool crop = s.r.attrs.coordinates == "tf_crop_and_resize";
    std::string body = place_text(s, order, v, crop, parameters);
    std::string type(c_type(s.r.nearest ? raw_dtype(s.from.dtype) : s.from.dtype));
    bool convert = s.r.nearest && crop; // the fill has a value
    type = convert ? std::string(c_type(s.from.dtype)) : type;
    Launch l =
        std::move(parameters)
            .launch("resize", str("grid_wait();\nconst ", index.type(), " i = (", index.type(), ")",
                                  block_number, " * 256u + threadIdx.x;\nif (i >= n) return;\n",
                                  index.split("i"), body, value_text(s, v, crop),
                                  "end_main_loop();\n*(Pack<O, V>*)(y + to) = o;\n"));
    std::string result(s.r.nearest ? type : s.last ? str(c_type(s.to.dtype)) : str(s.compute()));
    l.program.defines = str("typedef ", type, " T;\ntypedef ", result, " O;\n");
    l.program.kernel->constants = {{"V", str(v)}};
    l.grid = {blocks_for(n), 1, 1};
    return l;
}

void add_stages(const Problem& p, const Resizing& r, int64_t weights, Emitted& out) {
    bool wide = p.in[0].dtype == DType::F64;
    int64_t together = 1;
    for (size_t i = 0; i < r.axes(); ++i) {
        together *= r.arg.axis[i].taps;
    }
    Stage s{r, {}, p.in[0], p.out[0], weights, true, wide};
    if (together <= most_together || r.axes() == 1) {
        for (size_t i = 0; i < r.axes(); ++i) {
            s.axes.push_back(i);
        }
        out.launches.push_back(stage_launch(s));
        return;
    }
    DType between = wide ? DType::F64 : DType::F32;
    for (size_t i = 0; i < r.axes(); ++i) {
        s.axes = {i};
        s.last = i + 1 == r.axes();
        s.to = p.out[0];
        if (!s.last) {
            Shape shape = s.from.view.shape;
            auto d = static_cast<size_t>(r.attrs.axes[i]);
            shape[d] = p.out[0].view.shape[d];
            s.to = {between, in_scratch, plan::dense(shape, plan::stride_order(p.out[0].view))};
            s.to.view.offset = out.scratch / bytes_of(between);
            out.scratch += div_up(s.to.view.count() * bytes_of(between), 256) * 256;
        }
        out.launches.push_back(stage_launch(s));
        s.from = s.to;
    }
}

Emitted emit(const Problem& p, const Tactic&) {
    Emitted out;
    if (p.out[0].view.count() == 0) {
        return out;
    }
    require(p.in[0].view.count() > 0, ErrorCode::InvalidArgument, "resize of ", p.in[0].view.shape,
            ": there are no elements to make others of");
    Resizing r = resizing_of(p);
    bool wide = p.in[0].dtype == DType::F64;
    int64_t weights = div_up(r.entries * 4, 256) * 256;
    out.scratch = weights + (r.nearest ? 0 : div_up(r.entries * (wide ? 8 : 4), 256) * 256);
    out.launches.push_back(taps_launch(r, wide, weights));
    add_stages(p, r, weights, out);
    return out;
}

struct Tables : NoParameters {
    static constexpr std::string_view pattern = "tables";
};

std::vector<Tactic> tactics(const Problem& p) {
    double bytes = static_cast<double>(p.in[0].view.count() + p.out[0].view.count()) *
                   static_cast<double>(bytes_of(p.in[0].dtype));
    return {make_tactic(Tables{}, 4 + bytes / (p.arch.dram_gbs * 1000))};
}

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (group.nodes.size() > 1 || n.inputs.size() != 1) {
        return "scales or the region are known at run time only, or a map follows";
    }
    const auto& a = n.as<ops::Resize>();
    std::vector<int64_t> axes = a.axes;
    std::sort(axes.begin(), axes.end());
    if (axes.empty() || axes.size() > most_axes ||
        std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
        return str("there are ", axes.size(), " axes, or one twice");
    }
    if (!ops::repeats(a, group.graph.type(n.inputs[0])).empty()) {
        return "elements are repeated, which a broadcast does";
    }
    DType t = group.graph.type(n.inputs[0]).dtype;
    bool crops_whole = a.coordinates == "tf_crop_and_resize" && !is_float(t);
    return is_packed(t) || t == DType::Bool || crops_whole ? std::optional(str("elements are ", t))
                                                           : std::nullopt;
}

/// The result in the order of x.
void layout(LayoutArgs& args) {
    if (auto order = plan::memory_order(args.in[0])) {
        args.order[0] = *order;
    }
}

const Family rows[] = {{.name = "resize",
                        .refuse = refuse,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true}};

} // namespace

extern const FamilyTable resize_families;
const FamilyTable resize_families = rows;

} // namespace ingot::kernels
