// SPDX-License-Identifier: Apache-2.0
// Rules for elementwise operators: neutral operands, casts of casts, inverse and idempotent pairs.
#include "onnx/data_type.h"
#include "slim/fold.h"
#include "slim/rules.h"

#include <array>
#include <cmath>

namespace ingot::slim {

namespace {

struct Unit {
    std::string_view op;
    double value = 0;
    bool left = false; // is it neutral as the left operand too?
};

constexpr std::array<Unit, 7> units = {{{"Add", 0, true},
                                        {"Sub", 0, false},
                                        {"Mul", 1, true},
                                        {"Div", 1, false},
                                        {"Pow", 1, false},
                                        {"And", 1, true},
                                        {"Or", 0, true}}};

bool drop_unit(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    for (const Unit& u : units) {
        for (size_t k = 0; u.op == n.op_type && k < (u.left ? 2U : 1U); ++k) {
            if (c.same_type(input(n, k), n.outputs[0]) &&
                c.filled_with(input(n, 1 - k)) == u.value &&
                c.edit.bypass(i, n.outputs[0], input(n, k))) {
                return true;
            }
        }
    }
    return false;
}

// A Where that always takes the same side.
bool decided_where(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<double> condition = c.filled_with(input(n, 0));
    if (!condition) {
        return false;
    }
    const std::string& kept = input(n, *condition != 0 ? 1 : 2);
    return c.same_type(kept, n.outputs[0]) && c.edit.bypass(i, n.outputs[0], kept);
}

// Where(not c, a, b) is Where(c, b, a).
bool where_not(Context& c, size_t i) {
    onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p = c.only_producer(input(n, 0), "Not");
    if (!p) {
        return false;
    }
    set_input(n, 0, input(c.edit.node(*p), 0));
    std::string otherwise = input(n, 1);
    set_input(n, 1, input(n, 2));
    set_input(n, 2, std::move(otherwise));
    c.edit.update(i, std::move(n));
    return true;
}

// f(f(x)) is x.
bool undone(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p = c.producer(input(n, 0), n.op_type);
    return p && c.edit.bypass(i, n.outputs[0], std::string(input(c.edit.node(*p), 0)));
}

// f(f(x)) is f(x).
bool repeated(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p = c.producer(input(n, 0), n.op_type);
    if (!p) {
        return false;
    }
    const onnx::Node& first = c.edit.node(*p);
    const bool same =
        n.op_type != "Clip" || (input(n, 1) == input(first, 1) && input(n, 2) == input(first, 2) &&
                                get_float(n, "min", -1e38F) == get_float(first, "min", -1e38F) &&
                                get_float(n, "max", 1e38F) == get_float(first, "max", 1e38F));
    return same && c.edit.bypass(i, n.outputs[0], input(n, 0));
}

// Bits of the integers that a type represents exactly: significand and, for integers, sign.
struct Precision {
    int bits = 0;
    bool is_signed = true;
    int exponent = 0; // exponent bits, for floats
};

std::optional<Precision> precision(DType t) {
    switch (t) {
    case DType::Bool:
        return Precision{1, false, 0};
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64:
        return Precision{bit_width(t), false, 0};
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
        return Precision{bit_width(t) - 1, true, 0};
    case DType::F16:
        return Precision{11, true, 5};
    case DType::BF16:
        return Precision{8, true, 8};
    case DType::F32:
        return Precision{24, true, 8};
    case DType::F64:
        return Precision{53, true, 11};
    default:
        return std::nullopt;
    }
}

// Does `to` hold every value of `from`?
bool is_lossless(DType from, DType to) {
    const auto a = precision(from);
    const auto b = precision(to);
    if (!a || !b || to == DType::Bool || a->bits > b->bits || (a->is_signed && !b->is_signed)) {
        return from == to;
    }
    return a->exponent != 0 ? a->exponent <= b->exponent
                            : b->exponent == 0 || a->bits < (1 << (b->exponent - 1));
}

bool merge_casts(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p = c.producer(input(n, 0), "Cast");
    if (!p) {
        return false;
    }
    const std::string source = input(c.edit.node(*p), 0);
    const std::optional<DType> from = c.dtype(source);
    const auto through = onnx::dtype_of(static_cast<int>(get_int(c.edit.node(*p), "to", 0)));
    const auto to = onnx::dtype_of(static_cast<int>(get_int(n, "to", 0)));
    if (!from || !through || !to || !precision(*to) || !is_lossless(*from, *through)) {
        return false;
    }
    if (from == to) {
        return c.edit.bypass(i, n.outputs[0], source);
    }
    if (!c.edit.used_once(input(n, 0))) {
        return false;
    }
    onnx::Node merged = n;
    set_input(merged, 0, source);
    c.edit.update(i, std::move(merged));
    return true;
}

struct Scaled {
    std::string x;
    Tensor constant;
};

// x and c of x*c, c*x, x+c or c+x.
std::optional<Scaled> scaled(const Context& c, const onnx::Node& n) {
    for (size_t k = 0; k < 2; ++k) {
        const std::optional<Tensor> t = c.constant(input(n, 1 - k));
        if (t && c.edit.constant(input(n, k)) == nullptr) {
            return Scaled{input(n, k), *t};
        }
    }
    return std::nullopt;
}

// Sums of opposite signs round x on purpose: (x + 3e6) - 3e6. Tiny products lose bits themselves.
bool loses_nothing(const Tensor& a, const Tensor& b, const Tensor& merged, bool product) {
    for (int64_t i = 0; is_float(merged.dtype()) && i < merged.count(); ++i) {
        const double v = std::abs(merged.get_f64(i));
        if (product && v < (merged.dtype() == DType::F16 ? 0x1p-14 : 0x1p-126)) {
            return false;
        }
    }
    const auto all = [](const Tensor& t, auto f) {
        for (int64_t i = 0; i < t.count(); ++i) {
            if (!f(t.get_f64(i))) {
                return false;
            }
        }
        return true;
    };
    const auto up = [](double v) { return v >= 0; };
    const auto down = [](double v) { return v <= 0; };
    return product || !is_float(merged.dtype()) || (all(a, up) && all(b, up)) ||
           (all(a, down) && all(b, down));
}

// (x * a) * b is x * (a * b), and sums likewise.
bool merge_constants(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<Scaled> outer = scaled(c, n);
    const std::optional<size_t> p = outer ? c.only_producer(outer->x, n.op_type) : std::nullopt;
    const std::optional<Scaled> inner = p ? scaled(c, c.edit.node(*p)) : std::nullopt;
    if (!inner) {
        return false;
    }
    const std::array<Tensor, 2> both = {inner->constant, outer->constant};
    const std::optional<Tensor> merged = compute(c, n.op_type, both);
    if (!merged || merged->count() > std::max(both[0].count(), both[1].count()) ||
        !loses_nothing(both[0], both[1], *merged, n.op_type == "Mul")) {
        return false;
    }
    onnx::Node changed = n;
    changed.inputs = {inner->x, c.add(*merged, n.outputs[0] + "_constant")};
    c.edit.update(i, std::move(changed));
    return true;
}

const Rule rules[] = {
    {"drop-unit",
     "dead_node_elimination",
     "x+0, x-0, x*1, x/1, x**1, x and true, x or false",
     {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or"},
     drop_unit},
    {"decided-where",
     "dead_node_elimination",
     "Where with a constant condition",
     {"Where"},
     decided_where},
    {"where-not", "graph_fusion", "Where whose condition is negated", {"Where"}, where_not},
    {"undone", "dead_node_elimination", "double negation", {"Not", "Neg", "BitwiseNot"}, undone},
    {"repeated",
     "dead_node_elimination",
     "repeated idempotent operators",
     {"Relu", "Abs", "Sign", "Ceil", "Floor", "Round", "Clip"},
     repeated},
    {"merge-casts", "graph_fusion", "a cast of a cast that loses nothing", {"Cast"}, merge_casts},
    {"merge-constants",
     "graph_fusion",
     "(x*a)*b and (x+a)+b with constants",
     {"Mul", "Add"},
     merge_constants,
     false},
};

} // namespace

const RuleTable pointwise_rules = rules;

} // namespace ingot::slim
