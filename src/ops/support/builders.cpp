// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "ir/value_reads.h"
#include "ops/ops.h"

#include <algorithm>
#include <numeric>

namespace ingot::ops {

namespace {

Expr unary_expr(ExprOp op, DType t) {
    Expr e;
    e.code.reserve(2);
    e.op(op, e.in(0, t));
    return e;
}

// The dtype in which to store a map of computed type `t` whose operand was stored as `stored`.
DType stored_type(DType computed, DType stored) {
    return computed == compute_type(stored) ? stored : computed;
}

void same_dtype(const Graph& g, ExprOp op, Value a, Value b) {
    require(g.type(a).dtype == g.type(b).dtype, ErrorCode::InvalidModel, name(op), " of ",
            g.type(a), " and ", g.type(b), ": the element types differ");
}

std::vector<int64_t> iota_list(int64_t from, int64_t to) {
    std::vector<int64_t> v(static_cast<size_t>(std::max<int64_t>(0, to - from)));
    std::iota(v.begin(), v.end(), from);
    return v;
}

} // namespace

Value constant(Graph& g, Tensor t) {
    return g.add1(constant_def, Constant{std::move(t)}, {});
}

Value scalar(Graph& g, DType t, double v) {
    return constant(g, is_float(t) ? Tensor::scalar(t, v)
                                   : Tensor::scalar_i64(t, static_cast<int64_t>(v)));
}

Value scalar_i64(Graph& g, DType t, int64_t v) {
    return constant(g, Tensor::scalar_i64(t, v));
}

Value i64_list(Graph& g, const std::vector<int64_t>& v) {
    return constant(g, Tensor::i64(v));
}

Value dims_tensor(Graph& g, const Dims& d, DType t) {
    return g.add1(dims_to_tensor_def, DimsToTensor{d, t, false}, {});
}

Value dim_scalar(Graph& g, const Dim& d, DType t) {
    if (d.is_const()) {
        return scalar_i64(g, t, d.value());
    }
    bool wide = is_integer(t) && bit_width(t) >= 32 && is_signed(t);
    Value v = g.add1(dims_to_tensor_def, DimsToTensor{{d}, wide ? t : DType::I64, true}, {});
    return wide ? v : cast(g, v, t);
}

Value iota(Graph& g, DType t, const Dims& dims, int64_t axis) {
    return g.add1(iota_def, Iota{t, dims, axis}, {});
}

Value full(Graph& g, DType t, const Dims& dims, double v) {
    return broadcast_to(g, scalar(g, t, v), dims);
}

Value map(Graph& g, Expr body, DType dtype, std::span<const Value> in) {
    return g.add(map_def, Map{std::move(body), dtype}, in)[0];
}

Value unary(Graph& g, ExprOp op, Value a) {
    DType t = g.type(a).dtype;
    Expr e = unary_expr(op, t);
    DType out = stored_type(e.type(), t);
    return map(g, std::move(e), out, std::array{a});
}

Value binary(Graph& g, ExprOp op, Value a, Value b) {
    same_dtype(g, op, a, b);
    DType t = g.type(a).dtype;
    Expr e;
    e.code.reserve(3);
    int x = e.in(0, t);
    int y = e.in(a == b ? 0 : 1, t);
    e.op(op, x, y);
    DType out = stored_type(e.type(), t);
    return a == b ? map(g, std::move(e), out, std::array{a})
                  : map(g, std::move(e), out, std::array{a, b});
}

Value binary(Graph& g, ExprOp op, Value a, double b) {
    DType t = g.type(a).dtype;
    Expr e;
    int x = e.in(0, t);
    int y = e.constant(t, b);
    e.op(op, x, y);
    DType out = stored_type(e.type(), t);
    return map(g, std::move(e), out, std::array{a});
}

Value select(Graph& g, Value condition, Value a, Value b) {
    require(g.type(condition).dtype == DType::Bool, ErrorCode::InvalidModel,
            "select needs a bool condition, got ", g.type(condition));
    require(g.type(a).dtype == g.type(b).dtype, ErrorCode::InvalidModel, "select between ",
            g.type(a), " and ", g.type(b), ": the element types differ");
    DType t = g.type(a).dtype;
    Expr e;
    int c = e.in(0, DType::Bool);
    int x = e.in(1, t);
    int y = e.in(2, t);
    if (x == y) {
        return a;
    }
    e.select(c, x, y);
    return map(g, std::move(e), t, std::array{condition, a, b});
}

Value cast(Graph& g, Value a, DType to, bool saturate) {
    DType from = g.type(a).dtype;
    if (from == to) {
        return a;
    }
    Expr e;
    int x = e.in(0, from);
    e.cast(x, to, saturate);
    return map(g, std::move(e), to, std::array{a});
}

Value widen(Graph& g, Value a) {
    DType t = g.type(a).dtype;
    return is_float(t) && t != DType::F64 ? cast(g, a, DType::F32) : a;
}

Value reshape(Graph& g, Value x, const Dims& dims) {
    return g.type(x).dims == dims ? x : g.add1(reshape_def, Reshape{dims}, {x});
}

Value permute(Graph& g, Value x, const std::vector<int64_t>& perm) {
    bool identity = static_cast<size_t>(g.type(x).rank()) == perm.size();
    for (size_t i = 0; i < perm.size(); ++i) {
        identity = identity && perm[i] == static_cast<int64_t>(i);
    }
    return identity ? x : g.add1(permute_def, Permute{perm}, {x});
}

Value transpose_last(Graph& g, Value x) {
    int64_t r = g.type(x).rank();
    require(r >= 2, ErrorCode::InvalidModel, "transposing the last axes needs rank 2, got ",
            g.type(x));
    std::vector<int64_t> perm = iota_list(0, r);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return permute(g, x, perm);
}

Value broadcast_to(Graph& g, Value x, const Dims& dims) {
    return g.type(x).dims == dims ? x : g.add1(broadcast_def, Broadcast{dims}, {x});
}

Value slice(Graph& g, Value x, int64_t axis, const Dim& start, const Dim& size, int64_t step) {
    const Dims& d = dims(g, x);
    axis = normalize_axis(axis, static_cast<int64_t>(d.size()));
    auto at = static_cast<size_t>(axis);
    if (start.is_const(0) && step == 1 && size == d[at]) {
        return x;
    }
    Slice s{Dims(d.size(), Dim(0)), d, std::vector<int64_t>(d.size(), 1)};
    s.starts[at] = start;
    s.sizes[at] = size;
    s.steps[at] = step;
    return g.add1(slice_def, std::move(s), {x});
}

Value reverse(Graph& g, Value x, int64_t axis) {
    const Dims& d = dims(g, x);
    axis = normalize_axis(axis, static_cast<int64_t>(d.size()));
    Dim size = d[static_cast<size_t>(axis)];
    return slice(g, x, axis, size - Dim(1), size, -1);
}

Value unsqueeze(Graph& g, Value x, const std::vector<int64_t>& axes) {
    Dims in = dims(g, x);
    auto rank = static_cast<int64_t>(in.size() + axes.size());
    std::vector<int64_t> at = normalize_axes(axes, rank);
    std::sort(at.begin(), at.end());
    for (int64_t a : at) {
        in.insert(in.begin() + a, Dim(1));
    }
    return reshape(g, x, in);
}

Value squeeze(Graph& g, Value x, const std::vector<int64_t>& axes) {
    const Dims in = dims(g, x);
    std::vector<int64_t> drop = normalize_axes(axes, static_cast<int64_t>(in.size()));
    Dims out;
    for (size_t i = 0; i < in.size(); ++i) {
        bool dropped = std::find(drop.begin(), drop.end(), static_cast<int64_t>(i)) != drop.end();
        require(!dropped || !in[i].is_const() || in[i].is_const(1), ErrorCode::InvalidModel,
                "cannot squeeze axis ", i, " of ", in, ": its size is ", in[i], ", expected 1");
        if (!dropped) {
            out.push_back(in[i]);
        }
    }
    return reshape(g, x, out);
}

Value flatten(Graph& g, Value x) {
    return reshape(g, x, {product(dims(g, x))});
}

Value window(Graph& g, Value x, Window w) {
    return g.add1(window_def, std::move(w), {x});
}

Value bitcast(Graph& g, Value x, DType to) {
    return g.type(x).dtype == to ? x : g.add1(bitcast_def, Bitcast{to}, {x});
}

Value pad(Graph& g, Value x, const Dims& low, const Dims& high, double value) {
    return pad(g, x, low, high, scalar(g, g.type(x).dtype, value), "constant");
}

Value pad(Graph& g, Value x, const Dims& low, const Dims& high, Value value, std::string mode) {
    auto zero = [](const Dim& d) { return d.is_const(0); };
    if (std::all_of(low.begin(), low.end(), zero) && std::all_of(high.begin(), high.end(), zero)) {
        return x;
    }
    return g.add1(pad_def, Pad{low, high, std::move(mode)}, {x, value});
}

Value concat(Graph& g, std::span<const Value> in, int64_t axis) {
    require(!in.empty(), ErrorCode::InvalidModel, "concat needs at least 1 input");
    axis = normalize_axis(axis, g.type(in[0]).rank());
    return in.size() == 1 ? in[0] : g.add(concat_def, Concat{axis}, in)[0];
}

Value gather(Graph& g, Value x, Value indices, int64_t axis) {
    return g.add1(gather_def, Gather{normalize_axis(axis, g.type(x).rank())}, {x, indices});
}

Value wrap_indices(Graph& g, Value indices, const Dim& size) {
    DType t = g.type(indices).dtype;
    Value negative = less(g, indices, scalar_i64(g, t, 0));
    return select(g, negative, add(g, indices, dim_scalar(g, size, t)), indices);
}

Value gather_wrapped(Graph& g, Value x, Value indices, int64_t axis) {
    axis = normalize_axis(axis, g.type(x).rank());
    const Dim size = dims(g, x)[static_cast<size_t>(axis)];
    const Tensor* known = g.constant(indices);
    bool negative = known == nullptr;
    for (int64_t i = 0; known != nullptr && i < known->count(); ++i) {
        negative = negative || known->get_i64(i) < 0;
    }
    return gather(g, x, negative ? wrap_indices(g, indices, size) : indices, axis);
}

Value scatter(Graph& g, Value x, Value indices, Value updates, std::string fn) {
    return g.add1(scatter_def, Scatter{std::move(fn)}, {x, indices, updates});
}

Value reduce(Graph& g, std::string fn, Value x, std::vector<int64_t> axes, bool keep) {
    const Dims in = dims(g, x);
    axes = normalize_axes(axes, static_cast<int64_t>(in.size()));
    std::sort(axes.begin(), axes.end());
    if (axes.empty()) {
        return x;
    }
    Value r = g.add1(reduce_def, Reduce{std::move(fn), axes}, {x});
    return keep ? unsqueeze(g, r, axes) : r;
}

Value reduce_mean(Graph& g, Value x, std::vector<int64_t> axes, bool keep) {
    const Dims in = dims(g, x);
    axes = normalize_axes(axes, static_cast<int64_t>(in.size()));
    Dim count = 1;
    for (int64_t a : axes) {
        count = count * in[static_cast<size_t>(a)];
    }
    DType t = g.type(x).dtype;
    Value sum = reduce(g, "sum", widen(g, x), axes, keep);
    Value n = dim_scalar(g, count, DType::I64);
    return cast(g, div(g, sum, cast(g, n, g.type(sum).dtype)), t);
}

Value arg_reduce(Graph& g, std::string fn, Value x, int64_t axis, bool last) {
    return g.add1(arg_reduce_def,
                  ArgReduce{std::move(fn), normalize_axis(axis, g.type(x).rank()), last}, {x});
}

Value scan(Graph& g, Scan s, Value x) {
    return g.add1(scan_def, std::move(s), {x});
}

Values sort(Graph& g, Value x, int64_t axis, bool descending) {
    return g.add(sort_def, Sort{normalize_axis(axis, g.type(x).rank()), descending}, std::array{x});
}

Value dot(Graph& g, Dot d, Value a, Value b) {
    return g.add1(dot_def, std::move(d), {a, b});
}

Value matmul(Graph& g, Value a, Value b) {
    return matmul(g, a, b, g.type(a).dtype);
}

Value matmul(Graph& g, Value a, Value b, DType dtype) {
    int64_t ra = g.type(a).rank();
    int64_t rb = g.type(b).rank();
    require(ra >= 1 && rb >= 1, ErrorCode::InvalidModel, "matmul of ", g.type(a), " and ",
            g.type(b), ": operands need rank 1 at least");
    if (rb <= 2) { // no batch on the right: the left axes stay in order
        return dot(g, Dot{{}, {}, {ra - 1}, {0}, dtype}, a, b);
    }
    Dims da = dims(g, a);
    Dims db = dims(g, b);
    Dims batch_a(da.begin(), da.end() - std::min<int64_t>(ra, 2));
    Dims batch_b(db.begin(), db.end() - 2);
    auto batch = broadcast(batch_a, batch_b);
    require(batch.has_value(), ErrorCode::InvalidModel, "matmul of ", g.type(a), " and ", g.type(b),
            ": the batch axes do not broadcast");
    auto n = static_cast<int64_t>(batch->size());
    Dims full_b = *batch;
    full_b.insert(full_b.end(), db.end() - 2, db.end());
    if (ra == 1) {
        Value bb = broadcast_to(g, b, full_b);
        return dot(g, Dot{{}, {}, {0}, {n}, dtype}, a, bb);
    }
    Dims full_a = *batch;
    full_a.insert(full_a.end(), da.end() - 2, da.end());
    Value aa = broadcast_to(g, a, full_a);
    Value bb = broadcast_to(g, b, full_b);
    return dot(g, Dot{iota_list(0, n), iota_list(0, n), {n + 1}, {n}, dtype}, aa, bb);
}

const Dims& dims(const Graph& g, Value v) {
    return g.type(v).dims;
}

std::optional<Dims> known_dims(const Graph& g, Value v) {
    HostRef h = g.host(v);
    if (h == nullptr || h->shape.size() > 1) {
        return std::nullopt;
    }
    ValueReads::note(g, v);
    return h->dims();
}

Dims dims_from(Graph& g, Value v, bool is_signed) {
    if (auto known = known_dims(g, v)) {
        return *known;
    }
    const Type t = g.type(v);
    require(t.rank() <= 1 && is_integer(t.dtype), ErrorCode::InvalidModel,
            "sizes must be an integer tensor of rank 0 or 1, got ", t);
    if (t.rank() == 1 && !t.dims[0].is_const()) {
        refuse(RefusalKind::Dynamic, "the number of sizes in ", t,
               " is not known, so the rank of a result is not");
    }
    int64_t n = t.rank() == 0 ? 1 : t.dims[0].value();
    HostRef partly = g.host(v);
    if (partly != nullptr) {
        ValueReads::note(g, v);
    }
    Dims symbols;
    for (int64_t i = 0; i < n; ++i) {
        symbols.push_back(g.fresh_symbol(is_signed));
    }
    Value list = reshape(g, cast(g, v, DType::I64), {Dim(n)});
    g.add(tensor_to_dims_def, TensorToDims{symbols}, std::array{list});
    Dims out = symbols;
    for (int64_t i = 0; partly != nullptr && i < n; ++i) {
        const auto& e = partly->elements[static_cast<size_t>(i)];
        if (e && e->denominator == 1) {
            out[static_cast<size_t>(i)] = e->numerator;
        }
    }
    return out;
}

} // namespace ingot::ops
