// SPDX-License-Identifier: Apache-2.0
// Sizes as tensors, and operators that only change the shape: Shape, Size, Reshape, Flatten,
// Squeeze, Unsqueeze, Transpose, Identity, Expand, Tile.
#include "base/error.h"
#include "ir/value_reads.h"
#include "onnx/ops/support/inputs.h"
#include "ops/refusal.h"

#include <algorithm>

namespace ingot::onnx {

namespace {

Values identity(NodeContext& c) {
    return {c.in(0)};
}

Values shape(NodeContext& c) {
    const Dims all = c.type(0).dims;
    auto rank = static_cast<int64_t>(all.size());
    auto clamped = [rank](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
    int64_t start = clamped(c.i("start", 0));
    int64_t end = std::max(start, clamped(c.i("end", rank)));
    return {ops::dims_tensor(c.g, Dims(all.begin() + start, all.begin() + end))};
}

Values size(NodeContext& c) {
    return {ops::dim_scalar(c.g, product(c.type(0).dims))};
}

// --- Reshape -----------------------------------------------------------------------------------

// The size that makes the products of `have` and `want` equal. Common sizes cancel first, so that a
// size of 0 works too.
Dim missing_size(Dims have, const Dims& want) {
    Dim others = 1;
    for (const Dim& d : want) {
        auto it = std::find(have.begin(), have.end(), d);
        if (it == have.end()) {
            others = others * d;
        } else {
            have.erase(it);
        }
    }
    require(!others.is_const(0), ErrorCode::InvalidModel,
            "a size of -1 stands beside a size of 0, so it could be anything");
    return floor_div(product(have), others);
}

// The final shape at run time: zeros copied, -1 computed.
Value resolved_shape(ingot::Graph& g, const Dims& in, Value shape, int64_t rank, bool allow_zero) {
    Dims copied = in;
    copied.resize(static_cast<size_t>(rank), Dim(1));
    Value s = shape;
    if (!allow_zero) {
        Value zero = ops::binary(g, ExprOp::Eq, shape, 0.0);
        s = ops::select(g, zero, ops::dims_tensor(g, copied), shape);
    }
    Value open = ops::binary(g, ExprOp::Eq, s, -1.0);
    Value one = ops::scalar_i64(g, DType::I64, 1);
    Value others = ops::reduce(g, "prod", ops::select(g, open, one, s), {0});
    Value total = ops::dim_scalar(g, product(in));
    return ops::select(g, open, ops::div(g, total, others), s);
}

// The entry of the shape for one axis, if known during import: a size or -1.
std::optional<Dim> known_size(const HostRef& host, size_t i, const Dims& in, bool allow_zero) {
    const std::optional<HostElement> e = host == nullptr ? std::nullopt : host->elements[i];
    if (!e || e->denominator != 1) {
        return std::nullopt;
    }
    const Dim& d = e->numerator;
    if (d.is_const(0) && !allow_zero) {
        require(i < in.size(), ErrorCode::InvalidModel, "size ", i, " of the shape is copied from ",
                in, ", which has no such axis");
        return in[i];
    }
    require(!d.is_const() || d.value() >= -1, ErrorCode::InvalidModel, "size ", i,
            " of the shape is ", d, ", expected -1 or more");
    std::set<std::string, std::less<>> symbols;
    d.collect_symbols(symbols);
    bool may_be_negative = std::any_of(symbols.begin(), symbols.end(),
                                       [](const std::string& s) { return s.starts_with('~'); });
    return may_be_negative ? std::nullopt : std::optional(d);
}

Values reshape(NodeContext& c) {
    const Dims in = c.type(0).dims;
    int64_t rank = list_length(c, 1);
    bool allow_zero = c.i("allowzero", 0) != 0;
    HostRef host = c.g.host(c.in(1));
    ValueReads::note(c.g, c.in(1));
    Dims sizes(static_cast<size_t>(rank), Dim(-1));
    std::vector<int64_t> unknown;
    Dims known;
    std::optional<size_t> open;
    for (size_t i = 0; i < sizes.size(); ++i) {
        auto d = known_size(host, i, in, allow_zero);
        if (!d) {
            unknown.push_back(static_cast<int64_t>(i));
        } else if (d->is_const(-1)) {
            c.ensure(!open, "the shape has -1 more than once");
            open = i;
        } else {
            sizes[i] = *d;
            known.push_back(*d);
        }
    }
    if (open && unknown.empty()) {
        sizes[*open] = missing_size(in, known);
    } else if (!unknown.empty()) {
        if (open) {
            unknown.push_back(static_cast<int64_t>(*open));
        }
        Value list = ops::reshape(c.g, to_i64(c.g, c.in(1)), {Dim(rank)});
        Value resolved = resolved_shape(c.g, in, list, rank, allow_zero);
        Dims bound =
            ops::dims_from(c.g, ops::gather(c.g, resolved, ops::i64_list(c.g, unknown), 0));
        for (size_t i = 0; i < unknown.size(); ++i) {
            sizes[static_cast<size_t>(unknown[i])] = bound[i];
        }
    }
    return {ops::reshape(c.g, c.in(0), sizes)};
}

Values flatten(NodeContext& c) {
    const Dims in = c.type(0).dims;
    auto rank = static_cast<int64_t>(in.size());
    int64_t axis = c.i("axis", 1);
    c.ensure(axis >= -rank && axis <= rank, "attribute 'axis' is ", axis, ", expected ", -rank,
             " to ", rank);
    auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    return {ops::reshape(c.g, c.in(0), {product_of(in, 0, at), product_of(in, at, in.size())})};
}

// --- axes of size 1 ----------------------------------------------------------------------------

// x, unless one of these sizes is 1 in a run: then the run fails, because the node would remove an
// axis that the graph has.
Value checked_not_one(NodeContext& c, Value x, const Dims& sizes) {
    Value found;
    for (const Dim& d : sizes) {
        Value one = ops::binary(c.g, ExprOp::Eq, ops::dim_scalar(c.g, d), 1.0);
        found = found.valid() ? ops::binary(c.g, ExprOp::Or, found, one) : one;
    }
    const Type type = c.g.type(x);
    auto body = [&](std::string_view name) {
        ingot::Graph b = c.g.sibling(std::string(name));
        Value same = b.add_input("x", type);
        b.add_output("y", name == "kept"
                              ? same
                              : ops::refusal(b, type,
                                             str("no axes are given and ", sizes, " of ", c.type(0),
                                                 " holds a 1 in this run, which changes the rank "
                                                 "of the result: give axes, or build for this "
                                                 "shape alone (min = max)")));
        return std::make_shared<const ingot::Graph>(std::move(b));
    };
    return c.g.add1(if_def, If{body("squeezed"), body("kept"), {}}, {found, x});
}

Values squeeze(NodeContext& c) {
    const Dims in = c.type(0).dims;
    auto rank = static_cast<int64_t>(in.size());
    Axes axes = read_axes(c, "axes", 1);
    if (!axes.given) {
        std::vector<int64_t> ones;
        Dims open;
        for (size_t i = 0; i < in.size(); ++i) {
            if (in[i].is_const(1)) {
                ones.push_back(static_cast<int64_t>(i));
            } else if (!in[i].is_const() && in[i].bounds().low < 2) {
                open.push_back(in[i]);
            }
        }
        Value x = ops::squeeze(c.g, c.in(0), ones);
        return {open.empty() ? x : checked_not_one(c, x, open)};
    }
    if (axes.known) {
        return {ops::squeeze(c.g, c.in(0), *axes.known)};
    }
    c.ensure(axes.count <= rank, axes.count, " axes are given for ", c.type(0));
    Value kept = unflagged(c.g, axis_flags(c.g, axes.value, rank), rank - axes.count);
    Value sizes = ops::gather(c.g, ops::dims_tensor(c.g, in), kept, 0);
    return {ops::reshape(c.g, c.in(0), ops::dims_from(c.g, sizes))};
}

Values unsqueeze(NodeContext& c) {
    const Dims in = c.type(0).dims;
    Axes axes = read_axes(c, "axes", 1);
    c.ensure(axes.given, "required axes are missing");
    if (axes.known) {
        return {ops::unsqueeze(c.g, c.in(0), *axes.known)};
    }
    auto rank = static_cast<int64_t>(in.size()) + axes.count;
    if (in.empty()) {
        return {ops::reshape(c.g, c.in(0), Dims(static_cast<size_t>(rank), Dim(1)))};
    }
    // New axes have size 1; the others get the old sizes, in order.
    Value flags = axis_flags(c.g, axes.value, rank);
    Value old = ops::cast(c.g, ops::logical_not(c.g, flags), DType::I64);
    Value before = ops::scan(c.g, Scan{"sum", 0, true, false}, old);
    Value last = ops::binary(c.g, ExprOp::Min, before, static_cast<double>(in.size() - 1));
    Value sizes = ops::gather(c.g, ops::dims_tensor(c.g, in), last, 0);
    Value one = ops::scalar_i64(c.g, DType::I64, 1);
    Dims bound = ops::dims_from(c.g, ops::select(c.g, flags, one, sizes));
    return {ops::reshape(c.g, c.in(0), bound)};
}

Values transpose(NodeContext& c) {
    std::vector<int64_t> perm = c.ints("perm");
    if (!c.has_attribute("perm")) {
        for (int64_t i = c.rank(0); i-- > 0;) {
            perm.push_back(i);
        }
    }
    c.ensure(static_cast<int64_t>(perm.size()) == c.rank(0), "attribute 'perm' is ", perm,
             ", expected a permutation of ", c.rank(0), " axes");
    return {ops::permute(c.g, c.in(0), normalize_axes(perm, c.rank(0)))};
}

// --- repetition --------------------------------------------------------------------------------

Values expand(NodeContext& c) {
    int64_t rank = list_length(c, 1);
    Dims wanted = sizes_input(c, 1, rank);
    auto dims = broadcast(c.type(0).dims, wanted);
    c.ensure(dims.has_value(), "cannot expand ", c.type(0), " to ", wanted);
    return {ops::broadcast_to(c.g, c.in(0), *dims)};
}

Values tile(NodeContext& c) {
    const Dims in = c.type(0).dims;
    if (in.empty()) {
        return {c.in(0)};
    }
    Dims repeats = sizes_input(c, 1, c.rank(0));
    Dims apart;
    Dims repeated;
    Dims out;
    for (size_t i = 0; i < in.size(); ++i) {
        out.push_back(repeats[i] * in[i]);
        if (!repeats[i].is_const(1)) {
            apart.emplace_back(1);
            repeated.push_back(repeats[i]);
        }
        apart.push_back(in[i]);
        repeated.push_back(in[i]);
    }
    Value x = ops::broadcast_to(c.g, ops::reshape(c.g, c.in(0), apart), repeated);
    return {ops::reshape(c.g, x, out)};
}

const ImporterRow rows[] = {
    {"", "Identity", 1, identity, no_shapes},
    {"", "Shape", 1, shape, no_shapes},
    {"", "Size", 1, size, no_shapes},
    {"", "Reshape", 5, reshape, shape_inputs({1})},
    {"", "Flatten", 1, flatten, no_shapes},
    {"", "Squeeze", 1, squeeze, shape_inputs({1}).and_results()},
    {"", "Unsqueeze", 1, unsqueeze, shape_inputs({1})},
    {"com.microsoft", "ExpandDims", 1, unsqueeze, shape_inputs({1})},
    {"", "Expand", 8, expand, shape_inputs({1}).and_results()},
    {"", "Tile", 6, tile, shape_inputs({1}).and_results()},
    {"", "Transpose", 1, transpose, no_shapes},
};

} // namespace

extern const ImporterTable shape_importers;
const ImporterTable shape_importers = rows;

} // namespace ingot::onnx
