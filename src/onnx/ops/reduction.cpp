// SPDX-License-Identifier: Apache-2.0
// The Reduce family, ArgMax and ArgMin. Axes known only at run time are reduced by scattering every
// element to its position in the result.
#include "onnx/ops/support/inputs.h"

#include <limits>

namespace ingot::onnx {

namespace {

// The axes to reduce.
struct Over {
    std::vector<int64_t> axes; // when known
    Value value;               // i64 list, when not
    int64_t count = 0;
    bool keep = true;
};

Over reduced_axes(NodeContext& c) {
    Axes a = read_axes(c, "axes", 1);
    Over o;
    o.keep = c.i("keepdims", 1) != 0;
    o.value = a.value;
    o.count = a.count;
    if (a.known) {
        o.axes = normalize_axes(*a.known, c.rank(0));
    }
    if (o.count == 0 && c.i("noop_with_empty_axes", 0) == 0) {
        for (int64_t i = 0; i < c.rank(0); ++i) {
            o.axes.push_back(i);
        }
    }
    return o;
}

// The neutral element of fn, as a scalar.
Value neutral_scalar(ingot::Graph& g, const std::string& fn, DType t) {
    if (fn == "sum" || fn == "prod") {
        return ops::scalar(g, t, fn == "sum" ? 0 : 1);
    }
    if (is_float(t)) {
        double inf = std::numeric_limits<double>::infinity();
        return ops::scalar(g, t, fn == "min" ? inf : -inf);
    }
    int bits = bit_width(t) - (is_signed(t) ? 1 : 0);
    auto all_ones = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    int64_t lowest = is_signed(t) ? -all_ones - 1 : 0;
    return ops::scalar_i64(g, t, fn == "min" ? all_ones : lowest);
}

// Sizes of the result with the reduced axes as 1, and in the form that the model requests.
struct RunTimeShape {
    Value index; // i64 of x's shape: the index in the result that each element is added to
    Dims kept;   // rank of x
    Dims out;
};

RunTimeShape run_time_shape(ingot::Graph& g, const Dims& in, const Over& o) {
    auto rank = static_cast<int64_t>(in.size());
    Value flags = axis_flags(g, o.value, rank);
    Value sizes = ops::dims_tensor(g, in);
    Value one = ops::scalar_i64(g, DType::I64, 1);
    Value zero = ops::scalar_i64(g, DType::I64, 0);
    Value kept = ops::select(g, flags, one, sizes);
    Value strides = ops::scan(g, Scan{"prod", 0, true, true}, kept);
    Value weights = ops::select(g, flags, zero, strides);
    Value index = ops::full(g, DType::I64, in, 0);
    for (int64_t i = 0; i < rank; ++i) {
        Value at = coordinate(g, in, static_cast<size_t>(i));
        index = ops::add(g, index, ops::mul(g, at, element(g, weights, i)));
    }
    RunTimeShape s{index, ops::dims_from(g, kept), {}};
    s.out = s.kept;
    if (!o.keep) {
        Value left = unflagged(g, flags, rank - o.count);
        s.out = o.count == rank ? Dims{} : ops::dims_from(g, ops::gather(g, sizes, left, 0));
    }
    return s;
}

Value reduce_run_time(ingot::Graph& g, const std::string& fn, Value x, const RunTimeShape& s) {
    std::string how = fn == "sum" ? "add" : fn == "prod" ? "mul" : fn;
    DType t = g.type(x).dtype;
    DType wide = t == DType::Bool ? DType::U8 : compute_type(t);
    Value start = ops::broadcast_to(g, neutral_scalar(g, fn, wide), {product(s.kept)});
    Value flat = ops::flatten(g, ops::cast(g, x, wide));
    Value y = ops::scatter(g, start, ops::flatten(g, s.index), flat, how);
    return ops::cast(g, ops::reshape(g, y, s.out), t);
}

// Reduces by several functions over the same axes.
class Reducer {
public:
    Reducer(ingot::Graph& g, Value x, Over o) : g_(g), over_(std::move(o)) {
        const Dims dims = ops::dims(g, x);
        if (over_.value.valid()) {
            shape_ = run_time_shape(g, dims, over_);
            total_ = product(dims);
        }
    }

    Value operator()(const std::string& fn, Value x) const {
        return over_.value.valid() ? reduce_run_time(g_, fn, x, shape_)
                                   : ops::reduce(g_, fn, x, over_.axes, over_.keep);
    }

    /// The results broadcast back over the reduced axes.
    Value keep(const std::string& fn, Value x) const {
        if (!over_.value.valid()) {
            return ops::reduce(g_, fn, x, over_.axes, true);
        }
        RunTimeShape s = shape_;
        s.out = s.kept;
        return reduce_run_time(g_, fn, x, s);
    }

    /// A value with kept axes, reshaped to the form that the model requests.
    Value drop(Value kept) const {
        if (over_.value.valid()) {
            return ops::reshape(g_, kept, shape_.out);
        }
        return over_.keep ? kept : ops::squeeze(g_, kept, over_.axes);
    }

    /// The number of elements per result, as a scalar, for axes known only at run time.
    Value count(DType t) const {
        Value results = ops::dim_scalar(g_, product(shape_.kept));
        Value n = ops::div(g_, ops::dim_scalar(g_, total_), results);
        return ops::cast(g_, n, t);
    }

private:
    ingot::Graph& g_;
    Over over_;
    RunTimeShape shape_;
    Dim total_;
};

Values reduce(NodeContext& c, const std::string& fn) {
    return {Reducer(c.g, c.in(0), reduced_axes(c))(fn, c.in(0))};
}

Values reduce_sum(NodeContext& c) {
    return reduce(c, "sum");
}

Values reduce_prod(NodeContext& c) {
    return reduce(c, "prod");
}

Values reduce_max(NodeContext& c) {
    return reduce(c, "max");
}

Values reduce_min(NodeContext& c) {
    return reduce(c, "min");
}

Values reduce_mean(NodeContext& c) {
    Over o = reduced_axes(c);
    if (!o.value.valid()) {
        return {ops::reduce_mean(c.g, c.in(0), o.axes, o.keep)};
    }
    Reducer r(c.g, c.in(0), o);
    Value x = ops::widen(c.g, c.in(0));
    Value sum = r("sum", x);
    return {ops::cast(c.g, ops::div(c.g, sum, r.count(c.g.type(x).dtype)), c.dtype(0))};
}

Values reduce_l1(NodeContext& c) {
    Value x = ops::unary(c.g, ExprOp::Abs, ops::widen(c.g, c.in(0)));
    Reducer r(c.g, x, reduced_axes(c));
    return {ops::cast(c.g, r("sum", x), c.dtype(0))};
}

Value sum_of_squares(NodeContext& c) {
    Value x = ops::widen(c.g, c.in(0));
    Value square = ops::mul(c.g, x, x);
    return Reducer(c.g, square, reduced_axes(c))("sum", square);
}

Values reduce_sum_square(NodeContext& c) {
    return {ops::cast(c.g, sum_of_squares(c), c.dtype(0))};
}

// Applies a float function to integers through f64.
Value by_float(ingot::Graph& g, ExprOp op, Value x) {
    bool fp = is_float(g.type(x).dtype);
    return ops::unary(g, op, fp ? x : ops::cast(g, x, DType::F64));
}

Values reduce_l2(NodeContext& c) {
    return {ops::cast(c.g, by_float(c.g, ExprOp::Sqrt, sum_of_squares(c)), c.dtype(0))};
}

Values reduce_log_sum(NodeContext& c) {
    Value x = ops::widen(c.g, c.in(0));
    Value sum = Reducer(c.g, x, reduced_axes(c))("sum", x);
    return {ops::cast(c.g, by_float(c.g, ExprOp::Log, sum), c.dtype(0))};
}

// max + log(sum(exp(x - max))), with 0 in place of an infinite maximum.
Values reduce_log_sum_exp(NodeContext& c) {
    ingot::Graph& g = c.g;
    DType t = c.dtype(0);
    Value x = is_float(t) ? ops::widen(g, c.in(0)) : ops::cast(g, c.in(0), DType::F64);
    Reducer r(g, x, reduced_axes(c));
    Value top = r.keep("max", x);
    Value zero = ops::scalar(g, g.type(x).dtype, 0);
    top = ops::select(g, ops::unary(g, ExprOp::IsInf, top), zero, top);
    Value sum = r("sum", ops::exp(g, ops::sub(g, x, top)));
    Value y = ops::add(g, ops::unary(g, ExprOp::Log, sum), r.drop(top));
    return {ops::cast(g, y, t)};
}

template <bool maximum>
Values arg(NodeContext& c) {
    int64_t axis = normalize_axis(c.i("axis", 0), c.rank(0));
    bool last = c.i("select_last_index", 0) != 0;
    Value at = ops::arg_reduce(c.g, maximum ? "max" : "min", c.in(0), axis, last);
    return {c.i("keepdims", 1) != 0 ? ops::unsqueeze(c.g, at, {axis}) : at};
}

const ImporterRow rows[] = {
    {"", "ReduceSum", 1, reduce_sum, shape_results},
    {"", "ReduceProd", 1, reduce_prod, shape_results},
    {"", "ReduceMax", 1, reduce_max, shape_results},
    {"", "ReduceMin", 1, reduce_min, shape_results},
    {"", "ReduceMean", 1, reduce_mean, shape_results},
    {"", "ReduceL1", 1, reduce_l1, shape_results},
    {"", "ReduceL2", 1, reduce_l2, shape_results},
    {"", "ReduceSumSquare", 1, reduce_sum_square, shape_results},
    {"", "ReduceLogSum", 1, reduce_log_sum, shape_results},
    {"", "ReduceLogSumExp", 1, reduce_log_sum_exp, shape_results},
    {"", "ArgMax", 1, arg<true>, no_shapes},
    {"", "ArgMin", 1, arg<false>, no_shapes},
};

} // namespace

extern const ImporterTable reduction_importers;
const ImporterTable reduction_importers = rows;

} // namespace ingot::onnx
