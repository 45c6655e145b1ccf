// SPDX-License-Identifier: Apache-2.0
#include "passes/index_range.h"

#include "base/checked.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ingot::passes {

namespace {

constexpr int max_depth = 6;
constexpr int64_t max_scan = 65536;

bool bounded(const Interval& r) {
    return r.low != INT64_MIN && r.high != INT64_MAX;
}

bool has_range(DType t) {
    return t == DType::I64 || t == DType::I32 || t == DType::Bool;
}

// The range if it fits type t, else unbounded.
Interval fitting(std::optional<int64_t> low, std::optional<int64_t> high, DType t) {
    if (!low || !high || *low > *high) {
        return any_integer;
    }
    bool narrow = t == DType::I32 && (*low < INT32_MIN || *high > INT32_MAX);
    return narrow ? any_integer : Interval{*low, *high};
}

Interval multiplied(const Interval& a, const Interval& b, DType t) {
    std::array<std::optional<int64_t>, 4> p = {
        checked_mul(a.low, b.low), checked_mul(a.low, b.high), checked_mul(a.high, b.low),
        checked_mul(a.high, b.high)};
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    for (const auto& x : p) {
        if (!x) {
            return any_integer;
        }
        low = std::min(low, *x);
        high = std::max(high, *x);
    }
    return fitting(low, high, t);
}

Interval joined(const Interval& a, const Interval& b) {
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval binary(ExprOp op, const Interval& a, const Interval& b, DType t) {
    switch (op) {
    case ExprOp::Min:
        return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case ExprOp::Max:
        return {std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
        break;
    }
    // Ranges without an upper bound are common: sizes that are known only at run time.
    auto sum = [t](const Interval& x, int64_t low, int64_t high) {
        std::optional<int64_t> l =
            x.low == INT64_MIN || low == INT64_MIN ? std::nullopt : checked_add(x.low, low);
        std::optional<int64_t> h = x.high == INT64_MAX || high == INT64_MAX
                                       ? std::optional(INT64_MAX)
                                       : checked_add(x.high, high);
        return t == DType::I64 || (h && *h != INT64_MAX) ? fitting(l, h, t) : any_integer;
    };
    if (op == ExprOp::Add) {
        return sum(a, b.low, b.high);
    }
    if (!bounded(a) || !bounded(b)) {
        return any_integer;
    }
    if (op == ExprOp::Sub) {
        return fitting(checked_add(a.low, -b.high), checked_add(a.high, -b.low), t);
    }
    return op == ExprOp::Mul ? multiplied(a, b, t) : any_integer;
}

Interval constant_range(const Tensor& t) {
    if (t.count() == 0 || t.count() > max_scan) {
        return any_integer;
    }
    Interval r{INT64_MAX, INT64_MIN};
    for (int64_t i = 0; i < t.count(); ++i) {
        r = joined(r, {t.get_i64(i), t.get_i64(i)});
    }
    return r;
}

std::optional<Interval> host_range(const HostRef& host) {
    auto dims = host == nullptr ? std::nullopt : host->dims();
    if (!dims || dims->empty()) {
        return std::nullopt;
    }
    Interval r{INT64_MAX, INT64_MIN};
    for (const Dim& d : *dims) {
        r = joined(r, d.bounds());
    }
    return r;
}

Interval below(const Dim& size) {
    int64_t high = size.bounds().high;
    return {0, high == INT64_MAX ? high : std::max<int64_t>(high - 1, 0)};
}

/// The axis of which result `v` of the node has positions, as those of sorted elements.
std::optional<size_t> sorted_axis(const Node& n, Value v) {
    if (n.outputs.size() != 2 || v != n.outputs[1]) {
        return std::nullopt;
    }
    return n.is(ops::topk_def) ? std::optional(static_cast<size_t>(n.as<ops::TopK>().axis))
           : n.is(sort_def)    ? std::optional(static_cast<size_t>(n.as<Sort>().axis))
                               : std::nullopt;
}

Interval node_range(const Graph& g, const Node& n, int depth) {
    if (n.is(iota_def)) {
        return below(n.as<Iota>().dims[static_cast<size_t>(n.as<Iota>().axis)]);
    }
    if (n.is(arg_reduce_def)) {
        auto axis = static_cast<size_t>(n.as<ArgReduce>().axis);
        return below(g.type(n.inputs[0]).dims[axis]);
    }
    bool extreme = n.is(reduce_def) && (n.as<Reduce>().fn == "min" || n.as<Reduce>().fn == "max");
    bool same = n.is(reshape_def) || n.is(permute_def) || n.is(broadcast_def) || n.is(slice_def) ||
                n.is(gather_def);
    if (same) {
        return value_range(g, n.inputs[0], depth + 1);
    }
    if (extreme) { // empty reduction: the extreme of the type
        return any_integer;
    }
    if (n.is(concat_def)) {
        Interval r = value_range(g, n.inputs[0], depth + 1);
        for (Value v : n.inputs) {
            r = joined(r, value_range(g, v, depth + 1));
        }
        return r;
    }
    if (n.is(map_def)) {
        const Expr& e = n.as<Map>().body;
        std::vector<InputFacts> in = facts(g, n.inputs, depth + 1);
        std::vector<Interval> ranges;
        for (size_t i = 0; i < e.code.size(); ++i) {
            ranges.push_back(instruction_range(e, i, ranges, in));
        }
        return ranges.back();
    }
    return any_integer;
}

} // namespace

Interval instruction_range(const Expr& e, size_t i, std::span<const Interval> before,
                           std::span<const InputFacts> inputs) {
    const ExprInstr& c = e.code[i];
    auto arg = [&](size_t k) { return before[static_cast<size_t>(c.args[k])]; };
    if (!has_range(c.type)) {
        return any_integer;
    }
    switch (c.op) {
    case ExprOp::In:
        return inputs[static_cast<size_t>(c.args[0])].range;
    case ExprOp::Const:
        return {c.imm, c.imm};
    case ExprOp::Select:
        return joined(arg(1), arg(2));
    case ExprOp::Cast:
        return has_range(e.code[static_cast<size_t>(c.args[0])].type) && c.to == c.type &&
                       c.type != DType::Bool
                   ? fitting(arg(0).low, arg(0).high, c.type)
               : c.type == DType::Bool ? Interval{0, 1}
                                       : any_integer;
    default:
        break;
    }
    if (c.type == DType::Bool) {
        return {0, 1};
    }
    return arity(c.op) == 2 ? binary(c.op, arg(0), arg(1), c.type) : any_integer;
}

Interval value_range(const Graph& g, Value v, int depth) {
    DType t = g.type(v).dtype;
    if (!has_range(t) || depth > max_depth) {
        return any_integer;
    }
    if (const Tensor* c = g.constant(v)) {
        return constant_range(*c);
    }
    if (auto r = host_range(g.host(v))) {
        return *r;
    }
    const Node* n = g.producer(v);
    std::optional<size_t> axis = n != nullptr ? sorted_axis(*n, v) : std::nullopt;
    Interval r = n == nullptr ? any_integer
                 : axis       ? below(g.type(n->inputs[0]).dims[*axis])
                              : node_range(g, *n, depth);
    return t == DType::Bool && !bounded(r) ? Interval{0, 1} : r;
}

std::vector<InputFacts> facts(const Graph& g, std::span<const Value> operands, int depth) {
    std::vector<InputFacts> out;
    for (Value v : operands) {
        out.push_back({g.type(v).dtype, value_range(g, v, depth)});
    }
    return out;
}

} // namespace ingot::passes
