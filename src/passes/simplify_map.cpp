// SPDX-License-Identifier: Apache-2.0
// Rules for maps: removes operands without effect, casts and broadcasts that need not be
// materialised, and redundant instructions.
#include "passes/affine_index.h"
#include "passes/expr_rules.h"
#include "passes/index_range.h"
#include "passes/simplify.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ingot::passes {

namespace {

// The shape that operands broadcast to; nullopt without operands, or when they do not broadcast.
std::optional<Dims> common_dims(const Graph& g, std::span<const Value> in) {
    std::optional<Dims> dims;
    for (Value v : in) {
        dims = dims ? broadcast(*dims, g.type(v).dims) : g.type(v).dims;
        if (!dims) {
            return std::nullopt;
        }
    }
    return dims;
}

Values made(Site& s, Expr body, Values in) {
    return {ops::map(s.g(), std::move(body), s.as<Map>().dtype, in)};
}

// The body with each input replaced by the instructions that `replace` appends.
template <class F>
Expr with_inputs(const Expr& body, size_t count, F&& replace) {
    Expr out;
    std::vector<int> at(count, -1);
    for (const ExprInstr& c : body.code) {
        if (c.op == ExprOp::In && at[static_cast<size_t>(c.args[0])] < 0) {
            at[static_cast<size_t>(c.args[0])] = replace(out, static_cast<size_t>(c.args[0]));
        }
    }
    int last = out.inline_expr(body, at);
    if (static_cast<size_t>(last) + 1 != out.code.size()) {
        out.code.push_back(out.code[static_cast<size_t>(last)]); // the result comes last
    }
    return out;
}

// The scalar that v is or repeats.
const Tensor* scalar_constant(const Site& s, Value v) {
    const Node* p = s.produced(v, broadcast_def);
    const Tensor* t = s.g_const().constant(p == nullptr ? v : p->inputs[0]);
    return t != nullptr && t->count() == 1 ? t : nullptr;
}

int append_constant(Expr& e, const Tensor& t) {
    return is_float(t.dtype()) ? e.constant(t.dtype(), t.get_f64(0))
                               : e.constant_i64(t.dtype(), t.get_i64(0));
}

// Whether the map reads each operand, none is a scalar constant, and no two are the same.
bool reads_all_once(const Site& s) {
    constexpr size_t most = 64; // operands
    uint64_t read = 0;
    for (const ExprInstr& c : s.as<Map>().body.code) {
        read |= c.op == ExprOp::In && static_cast<size_t>(c.args[0]) < most
                    ? uint64_t{1} << c.args[0]
                    : 0;
    }
    for (size_t i = 0; i < s.input_count(); ++i) {
        if (i >= most || (read >> i & 1) == 0 || scalar_constant(s, s.in(i)) != nullptr ||
            std::find(s.inputs().begin(), s.inputs().begin() + static_cast<int64_t>(i), s.in(i)) !=
                s.inputs().begin() + static_cast<int64_t>(i)) {
            return false;
        }
    }
    return true;
}

// Scalar constants move into the body; unread operands are removed; equal ones are merged. The
// result is broadcast where a removed operand set the shape.
std::optional<Values> compact_inputs(Site& s) {
    const Map& m = s.as<Map>();
    if (reads_all_once(s)) {
        return std::nullopt;
    }
    std::vector<bool> read(s.input_count(), false);
    for (const ExprInstr& c : m.body.code) {
        if (c.op == ExprOp::In) {
            read[static_cast<size_t>(c.args[0])] = true;
        }
    }
    Values kept;
    std::vector<int> slot(s.input_count(), -1);
    for (size_t i = 0; i < s.input_count(); ++i) {
        bool constant = read[i] && scalar_constant(s, s.in(i)) != nullptr;
        if (!read[i] || constant) {
            continue;
        }
        auto same = std::find(kept.begin(), kept.end(), s.in(i));
        slot[i] = static_cast<int>(same - kept.begin());
        if (same == kept.end()) {
            kept.push_back(s.in(i));
        }
    }
    if (kept.empty() || kept.size() == s.input_count()) {
        return std::nullopt;
    }
    Expr body = with_inputs(m.body, s.input_count(), [&](Expr& e, size_t i) {
        const Tensor* t = scalar_constant(s, s.in(i));
        return t != nullptr ? append_constant(e, *t) : e.in(slot[i], s.in_type(i).dtype);
    });
    Values y = made(s, std::move(body), kept);
    return Values{ops::broadcast_to(s.g(), y[0], s.result().dims)};
}

// Whether a map only converts its one operand, without rounding any value of it.
bool converts_exactly(const Graph& g, const Node& n) {
    const Map& m = n.as<Map>();
    const auto& c = m.body.code;
    DType from = g.type(n.inputs[0]).dtype;
    if (n.inputs.size() != 1 || c[0].op != ExprOp::In || !holds_all(m.dtype, from)) {
        return false;
    }
    return c.size() == 1 || (c.size() == 2 && c[1].op == ExprOp::Cast && holds_all(c[1].to, from));
}

// Operand i with a broadcast or an exact conversion peeled off.
Value peeled(const Site& s, Value v) {
    const Graph& g = s.g_const();
    const Node* p = g.producer(v);
    if (p == nullptr) {
        return v;
    }
    bool peels =
        p->is(broadcast_def) || (p->is(map_def) && !p->inputs.empty() && converts_exactly(g, *p));
    return peels ? p->inputs[0] : v;
}

// Reads operands without materialising broadcasts and exact conversions.
std::optional<Values> absorb_operands(Site& s) {
    const Map& m = s.as<Map>();
    if (std::all_of(s.inputs().begin(), s.inputs().end(),
                    [&s](Value v) { return peeled(s, v) == v; })) {
        return std::nullopt;
    }
    Values in(s.inputs().begin(), s.inputs().end());
    bool changed = false;
    for (Value& v : in) {
        Value now = peeled(s, v);
        std::swap(v, now);
        if (v != now && common_dims(s.g(), in) != s.result().dims) {
            v = now;
        }
        changed = changed || v != now;
    }
    if (!changed) {
        return std::nullopt;
    }
    Expr body = with_inputs(m.body, in.size(), [&](Expr& e, size_t i) {
        int x = e.in(static_cast<int>(i), s.g().type(in[i]).dtype);
        return e.cast(x, s.in_type(i).dtype);
    });
    return made(s, std::move(body), in);
}

// The map with the producing map of operand i inlined, rounded as that map stored it.
std::optional<Values> composed(Site& s, size_t i) {
    const Node* p = s.producer(i, map_def);
    if (p == nullptr || p->inputs.size() != 1) {
        return std::nullopt;
    }
    const Map inner = p->as<Map>();
    Values in(s.inputs().begin(), s.inputs().end());
    in[i] = p->inputs[0];
    if (!(s.g().type(in[i]).dims == s.in_type(i).dims)) {
        return std::nullopt;
    }
    const Map& m = s.as<Map>();
    Expr body = with_inputs(m.body, in.size(), [&](Expr& e, size_t k) {
        int x = e.in(static_cast<int>(k), s.g().type(in[k]).dtype);
        return k == i ? e.cast(e.inline_expr(inner.body, std::array{x}), inner.dtype) : x;
    });
    std::vector<InputFacts> facts;
    facts.reserve(in.size());
    for (Value v : in) {
        facts.push_back({s.g().type(v).dtype, any_integer});
    }
    const Expr& simple = s.bodies().of(body, facts, m.dtype);
    bool shorter = simple.code.size() <= m.body.code.size();
    return shorter ? std::optional(made(s, simple, in)) : std::nullopt;
}

// Functions of functions that shorten together: double negations, nested clamps.
std::optional<Values> compose(Site& s) {
    for (size_t i = 0; i < s.input_count(); ++i) {
        if (auto by = composed(s, i)) {
            return by;
        }
    }
    return std::nullopt;
}

bool compares_integers(const Expr& e) {
    return std::any_of(e.code.begin(), e.code.end(), [&e](const ExprInstr& c) {
        return kind(c.op) == ExprKind::Compare &&
               !is_float(e.code[static_cast<size_t>(c.args[0])].type);
    });
}

std::optional<Values> simplify_body(Site& s) {
    const Map& m = s.as<Map>();
    bool compares = compares_integers(m.body);
    std::vector<InputFacts> in;
    in.reserve(s.input_count());
    for (size_t i = 0; i < s.input_count(); ++i) {
        Interval range = compares ? value_range(s.g(), s.in(i)) : any_integer;
        in.push_back({s.in_type(i).dtype, range});
    }
    const Expr& body = s.bodies().of(m.body, in, m.dtype);
    if (body == m.body) {
        return std::nullopt;
    }
    return made(s, body, Values(s.inputs().begin(), s.inputs().end()));
}

// Comparisons of indices with equal results everywhere.
std::optional<Values> decide_comparisons(Site& s) {
    if (!compares_integers(s.as<Map>().body)) {
        return std::nullopt;
    }
    Expr body = s.as<Map>().body;
    bool changed = false;
    auto known = decided_comparisons(s.g(), body, s.inputs(), s.result().dims);
    for (size_t i = 0; i < known.size(); ++i) {
        if (known[i]) {
            body.code[i] = {ExprOp::Const, DType::Bool, {}, *known[i] ? 1 : 0};
            changed = true;
        }
    }
    if (!changed) {
        return std::nullopt;
    }
    return made(s, std::move(body), Values(s.inputs().begin(), s.inputs().end()));
}

bool none_is_from(const Site& s, const OpDef& def) {
    return std::none_of(s.inputs().begin(), s.inputs().end(),
                        [&](Value v) { return s.produced(v, def) != nullptr; });
}

bool is_one_element(const Dims& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_const(1); });
}

// Computes a function of one repeated operand, or of repeated scalars, before the repetition.
std::optional<Values> repeat_later(Site& s) {
    if (none_is_from(s, broadcast_def)) {
        return std::nullopt;
    }
    Values in(s.inputs().begin(), s.inputs().end());
    bool repeated = false;
    for (Value& v : in) {
        const Node* p = s.produced(v, broadcast_def);
        if (p != nullptr) {
            v = p->inputs[0];
            repeated = true;
        }
        if (in.size() > 1 && !is_one_element(s.g().type(v).dims)) {
            return std::nullopt;
        }
    }
    if (!repeated) {
        return std::nullopt;
    }
    Value one = made(s, s.as<Map>().body, in)[0];
    if (is_one_element(s.g().type(one).dims)) {
        one = ops::reshape(s.g(), one, {});
    }
    return Values{ops::broadcast_to(s.g(), one, s.result().dims)};
}

// A body that is one of its inputs, or a constant.
std::optional<Values> trivial_body(Site& s) {
    const Map& m = s.as<Map>();
    const ExprInstr& c = m.body.code[0];
    if (m.body.code.size() != 1) {
        return std::nullopt;
    }
    if (c.op == ExprOp::Const) {
        if (s.input_count() == 0) {
            return std::nullopt;
        }
        Tensor t = is_float(c.type) ? Tensor::scalar(m.dtype, std::bit_cast<double>(c.imm))
                                    : Tensor::scalar_i64(m.dtype, c.imm);
        return Values{ops::broadcast_to(s.g(), ops::constant(s.g(), t), s.result().dims)};
    }
    auto i = static_cast<size_t>(c.args[0]);
    if (s.in_type(i).dtype != m.dtype) {
        return std::nullopt;
    }
    return Values{ops::broadcast_to(s.g(), s.in(i), s.result().dims)};
}

// The number of trailing axes that two shapes share.
size_t common_tail(const Dims& a, const Dims& b) {
    size_t n = 0;
    while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) {
        ++n;
    }
    return n;
}

// Whether `to` is `from` without first axes of one element.
bool drops_first_axes(const Dims& from, const Dims& to) {
    auto more = static_cast<ptrdiff_t>(from.size()) - static_cast<ptrdiff_t>(to.size());
    return more > 0 && is_one_element(Dims(from.begin(), from.begin() + more)) &&
           std::equal(to.begin(), to.end(), from.begin() + more);
}

// Operands flattened from one shape are read in that shape and the result is flattened, so that
// flattening moves towards its inverse; but first axes of one element go early. Other operands must
// not vary along flattened axes.
std::optional<Values> flatten_later(Site& s) {
    if (none_is_from(s, reshape_def)) {
        return std::nullopt;
    }
    const Dims result = s.result().dims;
    Values in(s.inputs().begin(), s.inputs().end());
    std::optional<Dims> from;
    for (Value& v : in) {
        const Node* p = s.produced(v, reshape_def);
        bool flattened = p != nullptr && s.g().type(v).dims == result &&
                         s.g().type(p->inputs[0]).dims.size() > result.size() &&
                         !drops_first_axes(s.g().type(p->inputs[0]).dims, result);
        if (flattened && (!from || s.g().type(p->inputs[0]).dims == *from)) {
            v = p->inputs[0];
            from = s.g().type(v).dims;
        }
    }
    if (!from) {
        return std::nullopt;
    }
    size_t tail = common_tail(*from, result);
    for (size_t i = 0; i < in.size(); ++i) {
        if (in[i] == s.in(i) && s.in_type(i).dims.size() > tail) {
            return std::nullopt;
        }
    }
    Values y = made(s, s.as<Map>().body, in);
    return Values{ops::reshape(s.g(), y[0], result)};
}

// A value without its first axis, which has one element, where that is a constant or what a reshape
// was given.
std::optional<Value> without_first_axis(Site& s, Value v) {
    Graph& g = s.g();
    Dims dims = g.type(v).dims;
    dims.erase(dims.begin());
    const Node* p = s.produced(v, reshape_def);
    if (p != nullptr && g.type(p->inputs[0]).dims == dims) {
        return p->inputs[0];
    }
    return g.constant(v) != nullptr ? std::optional(ops::reshape(g, v, dims)) : std::nullopt;
}

// A first axis of one element that some operand lacks is added behind the map, which may then be
// part of the kernel that makes that operand.
std::optional<Values> widen_later(Site& s) {
    const Dims dims = s.result().dims;
    if (dims.size() < 2 || !dims[0].is_const(1)) {
        return std::nullopt;
    }
    Values in;
    bool some_lack = false;
    for (size_t i = 0; i < s.input_count(); ++i) {
        size_t rank = s.in_type(i).dims.size();
        bool lacks = rank + 1 == dims.size() && s.g().constant(s.in(i)) == nullptr;
        some_lack = some_lack || lacks;
        std::optional<Value> v = rank < dims.size() ? s.in(i) : without_first_axis(s, s.in(i));
        if (!v) {
            return std::nullopt;
        }
        in.push_back(*v);
    }
    if (!some_lack) {
        return std::nullopt;
    }
    Values y = made(s, s.as<Map>().body, in);
    return Values{ops::reshape(s.g(), y[0], dims)};
}

} // namespace

Rules map_rules() {
    static const RuleRow rows[] = {
        {&map_def, compact_inputs}, {&map_def, absorb_operands},    {&map_def, compose},
        {&map_def, simplify_body},  {&map_def, decide_comparisons}, {&map_def, trivial_body},
        {&map_def, flatten_later},  {&map_def, repeat_later},       {&map_def, widen_later}};
    return rows;
}

} // namespace ingot::passes
