// SPDX-License-Identifier: Apache-2.0
// bias_as_depth: a bias of attention that is a sum of products, each of which varies along one axis
// of the keys' positions (decomposed relative positions: SAM, ViTDet, MViT), becomes more elements
// of queries and keys. Position (y, x) of a key gets ones at y and at x behind its own elements,
// and a query its biases for all y and all x, so that their product adds both. The bias of queries
// by keys is neither written nor read.
#include "base/integers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "passes/match.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

constexpr int64_t most_depth = 256; // of kernels on matrix instructions
constexpr int64_t depth_unit = 16;  // which these multiply at a time
constexpr int longest_chain = 16;

/// A bias that varies along one axis of the keys' positions.
struct Part {
    Value value;
    size_t axis = 0; // of the sum
};

/// A mask [B, H, rows, columns]: a sum over [leading..., positions...], with nothing added to rows
/// and columns before and behind it.
struct Bias {
    Dims dims;                    // B, H and rows of the sum, or 1 where these repeat it
    std::array<Dim, 2> low, high; // rows and columns without a bias
    Dims sum;                     // the sum's shape
    size_t leading = 0;           // its axes before those of positions
    std::vector<Part> parts;
};

/// Whether views and conversions of a product give v: a finite number wherever queries are.
bool is_product(const Graph& g, Value v) {
    const Node* n = g.producer(v);
    for (int i = 0; i < longest_chain && n != nullptr && !n->is(dot_def); ++i) {
        bool moves = n->is(reshape_def) || n->is(permute_def) || n->is(slice_def) ||
                     n->is(broadcast_def) || passes::converts_floats(g, *n);
        n = moves ? g.producer(n->inputs[0]) : nullptr;
    }
    return n != nullptr && n->is(dot_def);
}

/// Whether the node pads its last two axes alone, with zeros.
bool pads_rows_and_columns(const Graph& g, const Node& n) {
    const Tensor* value = n.inputs.size() == 2 ? g.constant(n.inputs[1]) : nullptr;
    const auto& a = n.as<Pad>();
    bool zeros = a.mode == "constant" && value != nullptr && value->get_f64(0) == 0;
    auto nothing = [](const Dim& d) { return d.is_const(0); };
    return zeros && a.low.size() >= 2 && std::all_of(a.low.begin(), a.low.end() - 2, nothing) &&
           std::all_of(a.high.begin(), a.high.end() - 2, nothing);
}

/// The number of last axes of `dims` that together have `columns` elements; 0: there are none.
size_t axes_of(const Dims& dims, const Dim& columns) {
    Dim all = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        all = all * dims[i];
        if (all == columns) {
            return dims.size() - i;
        }
    }
    return 0;
}

class Parser {
public:
    explicit Parser(const Graph& g) : g_(g) {}

    std::optional<Bias> parse(Value mask) const {
        Bias b;
        b.low = b.high = {Dim(0), Dim(0)};
        const Node* n = g_.producer(mask);
        while (n != nullptr && is_frame(*n)) {
            if (n->is(pad_def)) {
                const auto& a = n->as<Pad>();
                for (size_t i = 0; i < 2; ++i) {
                    b.low[i] = b.low[i] + a.low[a.low.size() - 2 + i];
                    b.high[i] = b.high[i] + a.high[a.high.size() - 2 + i];
                }
            }
            n = g_.producer(n->inputs[0]);
        }
        if (n == nullptr || !n->is(reshape_def) || n->as<Reshape>().dims.size() > 4) {
            return std::nullopt;
        }
        b.dims = n->as<Reshape>().dims;
        b.dims.insert(b.dims.begin(), 4 - b.dims.size(), Dim(1));
        b.sum = g_.type(n->inputs[0]).dims;
        size_t positions = axes_of(b.sum, b.dims[3]);
        b.leading = b.sum.size() - positions;
        bool split = positions > 1 && collect(b, n->inputs[0], 0);
        return split && !b.parts.empty() ? std::optional(b) : std::nullopt;
    }

private:
    /// Whether the node is a step between the mask and the sum's shape.
    bool is_frame(const Node& n) const {
        if (n.is(pad_def)) {
            return pads_rows_and_columns(g_, n);
        }
        if (!n.is(reshape_def)) {
            return passes::converts_floats(g_, n);
        }
        const Dims& from = g_.type(n.inputs[0]).dims;
        const Dims& to = n.as<Reshape>().dims;
        return from.size() >= 2 && to.size() >= 2 &&
               std::equal(to.end() - 2, to.end(), from.end() - 2);
    }

    /// Appends the parts of v, whose axes are the last ones of the sum.
    bool collect(Bias& b, Value v, int depth) const {
        const Node* n = g_.producer(v);
        if (n == nullptr || depth == longest_chain) {
            return false;
        }
        if (passes::is_addition(*n) || passes::converts_floats(g_, *n)) {
            return std::all_of(n->inputs.begin(), n->inputs.end(),
                               [&](Value x) { return collect(b, x, depth + 1); });
        }
        const Dims& dims = g_.type(v).dims;
        size_t missing = b.sum.size() - dims.size();
        std::vector<size_t> varies;
        for (size_t i = b.leading; i < b.sum.size(); ++i) {
            if (i >= missing && !dims[i - missing].is_const(1)) {
                varies.push_back(i);
            }
        }
        if (varies.size() != 1 || !b.sum[varies[0]].is_const() || !is_product(g_, v)) {
            return false;
        }
        b.parts.push_back({v, varies[0]});
        return true;
    }

    const Graph& g_;
};

/// v as floats of that type, by views of what was widened where there is such a value.
Value narrowed(Rewriter& r, Value v, DType t) {
    const Node* n = r.from().producer(v);
    if (r.from().type(v).dtype == t || n == nullptr) {
        return ops::cast(r.out(), r.mapped(v), t);
    }
    if (n->is(reshape_def) || n->is(permute_def)) {
        return r.out().add(*n->def, n->attrs, std::array{narrowed(r, n->inputs[0], t)})[0];
    }
    return passes::converts_floats(r.from(), *n) ? narrowed(r, n->inputs[0], t)
                                                 : ops::cast(r.out(), r.mapped(v), t);
}

/// The biases of one part by query, [B, H, S, positions along the part's axis].
Value of_queries(Rewriter& r, const Bias& b, const Part& part, const Type& q) {
    Graph& g = r.out();
    Value v = narrowed(r, part.value, q.dtype);
    Dims dims = g.type(v).dims;
    dims.insert(dims.begin(), b.sum.size() - dims.size(), Dim(1));
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(b.leading), dims.end());
    dims.push_back(b.sum[part.axis]);
    v = ops::reshape(g, v, dims);
    std::copy_n(b.sum.begin(), b.leading, dims.begin());
    v = ops::broadcast_to(g, v, dims);
    v = ops::reshape(g, v, {b.dims[0], b.dims[1], b.dims[2], dims.back()});
    v = ops::pad(g, v, {0, 0, b.low[0], 0}, {0, 0, b.high[0], 0});
    return ops::broadcast_to(g, v, {q.dims[0], q.dims[1], q.dims[2], dims.back()});
}

/// [T, columns]: for each part ones where a key's position lies along its axis, zeros behind.
Tensor of_keys(const Bias& b, DType t, int64_t keys, int64_t columns) {
    Tensor out = Tensor::zeros(t, {keys, columns});
    int64_t first = b.low[1].value(), column = 0;
    for (const Part& part : b.parts) {
        int64_t size = b.sum[part.axis].value(), inner = 1;
        for (size_t i = part.axis + 1; i < b.sum.size(); ++i) {
            inner *= b.sum[i].value();
        }
        for (int64_t key = first; key < first + b.dims[3].value(); ++key) {
            int64_t position = (key - first) / inner % size;
            out.set_f64(key * columns + column + position, 1);
        }
        column += size;
    }
    return out;
}

/// Whether all sizes that count are known, and more biases than elements of wider operands.
bool pays(const Bias& b, const Dims& q, const Dim& keys, int64_t depth) {
    bool known = q[2].is_const() && keys.is_const() && b.low[1].is_const() &&
                 b.dims[3] + b.low[1] + b.high[1] == keys;
    for (size_t i = b.leading; i < b.sum.size(); ++i) {
        known = known && b.sum[i].is_const();
    }
    return known && depth <= most_depth &&
           q[2].value() * keys.value() >= depth * (q[2].value() + keys.value());
}

std::optional<Values> widen(Rewriter& r, const Node& n, std::span<const Value> in) {
    if (!n.is(ops::attention_def) || in.size() != 4) {
        return std::nullopt;
    }
    const Type q = r.out().type(in[0]);
    const Type k = r.out().type(in[1]);
    auto a = n.as<ops::Attention>();
    if (!is_half(q.dtype) || a.softcap > 0 || !q.dims[3].is_const()) {
        return std::nullopt;
    }
    std::optional<Bias> b = Parser(r.from()).parse(n.inputs[3]);
    if (!b) {
        return std::nullopt;
    }
    int64_t added = 0;
    for (const Part& part : b->parts) {
        added += b->sum[part.axis].value();
    }
    int64_t depth = q.dims[3].value();
    int64_t wide = round_up(depth + added, depth_unit);
    if (!pays(*b, q.dims, k.dims[2], wide)) {
        return std::nullopt;
    }
    Graph& g = r.out();
    Values queries = {in[0]};
    for (const Part& part : b->parts) {
        queries.push_back(of_queries(r, *b, part, q));
    }
    Dims rest = q.dims;
    rest[3] = wide - depth - added;
    if (!rest[3].is_const(0)) {
        queries.push_back(ops::full(g, q.dtype, rest, 0));
    }
    Value ones = ops::constant(g, of_keys(*b, q.dtype, k.dims[2].value(), wide - depth));
    ones = ops::broadcast_to(g, ones, {k.dims[0], k.dims[1], k.dims[2], wide - depth});
    std::array keys = {ops::cast(g, ops::mul(g, in[1], a.scale), q.dtype), ones};
    a.scale = 1;
    return Values{ops::attention(g, a, ops::concat(g, queries, 3), ops::concat(g, keys, 3), in[2])};
}

} // namespace

Pass bias_as_depth(const KernelSet&) {
    return {
        .name = "bias_as_depth",
        .summary = "biases by axes of the keys' positions become elements of queries and keys",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, widen)); },
    };
}

} // namespace ingot::plan
