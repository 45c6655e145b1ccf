// SPDX-License-Identifier: Apache-2.0
#include "passes/affine_index.h"

#include "ops/primitives.h"

namespace ingot::passes {

namespace {

constexpr int max_depth = 12;

using Found = std::optional<AffineIndex>;

Dim assumed(const Dim& d, const SymbolMap& assume) {
    return d.substitute([&assume](std::string_view name) -> std::optional<Dim> {
        auto at = assume.find(name);
        return at == assume.end() ? std::nullopt : std::optional(at->second);
    });
}

Found constant_form(const Dim& value, size_t rank) {
    return AffineIndex{value, Dims(rank, Dim(0))};
}

bool is_constant(const AffineIndex& a) {
    for (const Dim& s : a.strides) {
        if (!s.is_const(0)) {
            return false;
        }
    }
    return true;
}

// The same elements as part of a larger shape: new leading axes and repeated axes have stride 0.
AffineIndex spread(const AffineIndex& a, size_t rank) {
    AffineIndex out{a.offset, Dims(rank - a.strides.size(), Dim(0))};
    out.strides.insert(out.strides.end(), a.strides.begin(), a.strides.end());
    return out;
}

AffineIndex combined(const AffineIndex& a, const AffineIndex& b, int64_t sign) {
    AffineIndex out = a;
    out.offset = out.offset + Dim(sign) * b.offset;
    for (size_t i = 0; i < out.strides.size(); ++i) {
        out.strides[i] = out.strides[i] + Dim(sign) * b.strides[i];
    }
    return out;
}

Found multiplied(const AffineIndex& a, const AffineIndex& b) {
    if (!is_constant(b)) {
        return is_constant(a) ? multiplied(b, a) : std::nullopt;
    }
    AffineIndex out = a;
    out.offset = out.offset * b.offset;
    for (Dim& s : out.strides) {
        s = s * b.offset;
    }
    return out;
}

// The forms of a map's instructions over a result of `rank` axes.
class MapForms {
public:
    MapForms(const Graph& g, std::span<const Value> operands, size_t rank, const SymbolMap& assume,
             int depth)
        : g_(g), operands_(operands), rank_(rank), assume_(assume), depth_(depth) {}

    std::vector<Found> run(const Expr& e) const {
        std::vector<Found> out;
        for (const ExprInstr& c : e.code) {
            out.push_back(form(e, c, out));
        }
        return out;
    }

private:
    Found form(const Expr& e, const ExprInstr& c, const std::vector<Found>& before) const {
        if (c.type != DType::I64 && c.type != DType::I32) {
            return std::nullopt;
        }
        auto arg = [&](size_t k) { return before[static_cast<size_t>(c.args[k])]; };
        switch (c.op) {
        case ExprOp::In: {
            Found f =
                affine_index(g_, operands_[static_cast<size_t>(c.args[0])], assume_, depth_ + 1);
            return f ? std::optional(spread(*f, rank_)) : std::nullopt;
        }
        case ExprOp::Const:
            return constant_form(c.imm, rank_);
        case ExprOp::Cast:
            return e.code[static_cast<size_t>(c.args[0])].type == DType::Bool ? std::nullopt
                                                                              : arg(0);
        case ExprOp::Add:
        case ExprOp::Sub:
            return arg(0) && arg(1)
                       ? std::optional(combined(*arg(0), *arg(1), c.op == ExprOp::Add ? 1 : -1))
                       : std::nullopt;
        case ExprOp::Mul:
            return arg(0) && arg(1) ? multiplied(*arg(0), *arg(1)) : std::nullopt;
        default:
            return std::nullopt;
        }
    }

    const Graph& g_;
    std::span<const Value> operands_;
    size_t rank_;
    const SymbolMap& assume_;
    int depth_;
};

Found form_of_slice(const Slice& a, AffineIndex in, const SymbolMap& assume) {
    for (size_t i = 0; i < in.strides.size(); ++i) {
        in.offset = in.offset + in.strides[i] * assumed(a.starts[i], assume);
        in.strides[i] = in.strides[i] * Dim(a.steps[i]);
    }
    return in;
}

// Axes of size 1 come and go; others must stay in order.
Found form_of_reshape(const Dims& from, const Dims& to, const AffineIndex& in) {
    AffineIndex out{in.offset, {}};
    size_t at = 0;
    for (const Dim& d : to) {
        while (at < from.size() && from[at].is_const(1)) {
            ++at;
        }
        if (d.is_const(1)) {
            out.strides.emplace_back(0);
        } else if (at < from.size() && from[at] == d) {
            out.strides.push_back(in.strides[at++]);
        } else {
            return std::nullopt;
        }
    }
    while (at < from.size() && from[at].is_const(1)) {
        ++at;
    }
    return at == from.size() ? Found(out) : std::nullopt;
}

// Concatenated parts must continue where the previous part ended.
Found form_of_concat(const Graph& g, const Node& n, const SymbolMap& assume, int depth) {
    auto axis = static_cast<size_t>(n.as<Concat>().axis);
    Found whole;
    Dim offset = 0;
    for (Value v : n.inputs) {
        Found part = affine_index(g, v, assume, depth + 1);
        if (!part) {
            return std::nullopt;
        }
        if (whole) {
            bool fits = part->strides == whole->strides &&
                        part->offset == whole->offset + whole->strides[axis] * offset;
            if (!fits) {
                return std::nullopt;
            }
        } else {
            whole = part;
        }
        offset = offset + assumed(g.type(v).dims[axis], assume);
    }
    return whole;
}

Found form_of_node(const Graph& g, const Node& n, const SymbolMap& assume, int depth) {
    const Dims& out = g.type(n.outputs[0]).dims;
    if (n.is(iota_def)) {
        AffineIndex f{0, Dims(out.size(), Dim(0))};
        f.strides[static_cast<size_t>(n.as<Iota>().axis)] = 1;
        return f;
    }
    if (n.is(map_def)) {
        return MapForms(g, n.inputs, out.size(), assume, depth).run(n.as<Map>().body).back();
    }
    if (n.is(concat_def)) {
        return form_of_concat(g, n, assume, depth);
    }
    bool view = n.is(reshape_def) || n.is(permute_def) || n.is(broadcast_def) || n.is(slice_def);
    Found in = view ? affine_index(g, n.inputs[0], assume, depth + 1) : std::nullopt;
    if (!in) {
        return std::nullopt;
    }
    if (n.is(broadcast_def)) {
        const Dims& from = g.type(n.inputs[0]).dims;
        size_t shift = out.size() - from.size();
        for (size_t i = 0; i < from.size(); ++i) {
            if (from[i].is_const(1) && !out[shift + i].is_const(1)) {
                in->strides[i] = 0;
            } else if (!(from[i] == out[shift + i])) {
                return std::nullopt;
            }
        }
        return spread(*in, out.size());
    }
    if (n.is(slice_def)) {
        return form_of_slice(n.as<Slice>(), *in, assume);
    }
    if (n.is(reshape_def)) {
        return form_of_reshape(g.type(n.inputs[0]).dims, out, *in);
    }
    AffineIndex f{in->offset, {}};
    for (int64_t axis : n.as<Permute>().perm) {
        f.strides.push_back(in->strides[static_cast<size_t>(axis)]);
    }
    return f;
}

struct Ends {
    Dim low, high;
};

// The smallest and the largest element over axes of these sizes, all at least 1.
std::optional<Ends> ends(const AffineIndex& a, const Dims& sizes) {
    Ends e{a.offset, a.offset};
    for (size_t i = 0; i < sizes.size(); ++i) {
        Interval stride = a.strides[i].bounds();
        Dim reach = a.strides[i] * (sizes[i] - Dim(1));
        if (stride.low >= 0) {
            e.high = e.high + reach;
        } else if (stride.high <= 0) {
            e.low = e.low + reach;
        } else {
            return std::nullopt;
        }
    }
    return e;
}

std::optional<bool> decided(ExprOp op, const Interval& low, const Interval& high) {
    switch (op) {
    case ExprOp::Eq:
        return low.low > 0 || high.high < 0           ? std::optional(false)
               : low == high && low == Interval{0, 0} ? std::optional(true)
                                                      : std::nullopt;
    case ExprOp::Lt:
        return high.high < 0  ? std::optional(true)
               : low.low >= 0 ? std::optional(false)
                              : std::nullopt;
    default:
        return high.high <= 0 ? std::optional(true)
               : low.low > 0  ? std::optional(false)
                              : std::nullopt;
    }
}

} // namespace

Found affine_index(const Graph& g, Value v, const SymbolMap& assume, int depth) {
    const Type& t = g.type(v);
    if ((t.dtype != DType::I64 && t.dtype != DType::I32) || depth > max_depth) {
        return std::nullopt;
    }
    HostRef host = g.host(v);
    if (host != nullptr && host->elements.size() == 1) {
        auto dims = host->dims();
        return dims ? constant_form(assumed((*dims)[0], assume), t.dims.size()) : std::nullopt;
    }
    const Tensor* c = g.constant(v);
    if (c != nullptr && c->count() == 1) {
        return constant_form(c->get_i64(0), t.dims.size());
    }
    const Node* n = g.producer(v);
    return n == nullptr || n->outputs.size() != 1 ? std::nullopt
                                                  : form_of_node(g, *n, assume, depth);
}

std::vector<std::optional<bool>> decided_comparisons(const Graph& g, const Expr& e,
                                                     std::span<const Value> operands,
                                                     const Dims& result) {
    // Where there are elements, every axis has at least one.
    SymbolMap assume;
    for (const Dim& d : result) {
        std::string_view name = d.symbol_name();
        if (!name.empty() && !name.starts_with('~')) {
            assume.emplace(std::string(name), d + Dim(1));
        }
    }
    Dims sizes;
    for (const Dim& d : result) {
        sizes.push_back(assumed(d, assume));
    }
    std::vector<Found> forms = MapForms(g, operands, result.size(), assume, 0).run(e);
    std::vector<std::optional<bool>> out(e.code.size());
    for (size_t i = 0; i < e.code.size(); ++i) {
        const ExprInstr& c = e.code[i];
        if (kind(c.op) != ExprKind::Compare) {
            continue;
        }
        const Found& a = forms[static_cast<size_t>(c.args[0])];
        const Found& b = forms[static_cast<size_t>(c.args[1])];
        if (!a || !b) {
            continue;
        }
        if (auto range = ends(combined(*a, *b, -1), sizes)) {
            out[i] = decided(c.op, range->low.bounds(), range->high.bounds());
        }
    }
    return out;
}

} // namespace ingot::passes
