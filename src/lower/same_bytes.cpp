// SPDX-License-Identifier: Apache-2.0
#include "lower/same_bytes.h"

#include "lower/dequantised.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr int deepest = 16; // steps between, so that hostile graphs take no time

/// One scale and zero point for all elements of a type of 8 bits.
struct Steps {
    DType type = DType::I8;
    float scale = 1;
    double zero = 0;

    bool operator==(const Steps&) const = default;
};

std::optional<Steps> steps_of(const Graph& g, DType type, std::span<const Value> in) {
    bool wide = bit_width(type) != 8 || type == DType::F8E5M2;
    const Tensor* scale = g.constant(in[1]);
    const Tensor* zero = in.size() > 2 ? g.constant(in[2]) : nullptr;
    bool one = scale != nullptr && scale->count() == 1 && scale->get_f64(0) > 0 &&
               (in.size() == 2 || (zero != nullptr && zero->count() == 1));
    return wide || !one ? std::nullopt
                        : std::optional(Steps{type, static_cast<float>(scale->get_f64(0)),
                                              zero == nullptr ? 0 : zero->get_f64(0)});
}

bool moves_one(const Node& n) {
    return n.is(reshape_def) || n.is(permute_def) || n.is(slice_def);
}

bool is_max_pool(const Node& n) {
    return n.is(ops::pool_def) && n.as<ops::Pool>().fn == "max";
}

/// f8e4m3 has a number that is none and no least integer: its maxima stay in floats.
bool applies(const Node& n, DType type) {
    return moves_one(n) || n.is(concat_def) || (is_max_pool(n) && is_integer(type));
}

bool is_float_cast(const Graph& g, const Node& n) {
    if (!n.is(map_def) || n.inputs.size() != 1) {
        return false;
    }
    const auto& code = n.as<Map>().body.code;
    bool casts = std::all_of(code.begin(), code.end(), [](const ExprInstr& i) {
        return i.op == ExprOp::In || i.op == ExprOp::Cast;
    });
    // A byte times a scale, rounded to 11 bits of mantissa, is still nearest to that byte; to the 8
    // bits of bf16 it is not.
    auto precise = [](DType t) { return t == DType::F16 || t == DType::F32; };
    return casts && precise(g.type(n.inputs[0]).dtype) && precise(g.type(n.outputs[0]).dtype);
}

/// The value that quantisation by `steps` would give, made of the bytes before; invalid when it was
/// computed in another way.
Value bytes_of(Graph& g, Value v, const Steps& steps, int depth) {
    const Node* p = depth < deepest ? g.producer(v) : nullptr;
    if (p == nullptr) {
        return {};
    }
    if (p->is(ops::dequantize_def)) {
        bool precise = g.type(v).dtype == DType::F16 || g.type(v).dtype == DType::F32;
        bool whole = precise && p->as<ops::Dequantize>().block == 0;
        auto own = whole ? steps_of(g, g.type(p->inputs[0]).dtype, p->inputs) : std::nullopt;
        return own == steps ? p->inputs[0] : Value{};
    }
    if (is_float_cast(g, *p)) {
        return bytes_of(g, p->inputs[0], steps, depth + 1);
    }
    if (!applies(*p, steps.type)) {
        return {};
    }
    const Node node = *p;
    Values in;
    for (Value x : node.inputs) {
        in.push_back(bytes_of(g, x, steps, depth + 1));
        if (!in.back().valid()) {
            return {};
        }
    }
    return g.add(*node.def, node.attrs, in)[0];
}

} // namespace

std::optional<Values> same_bytes(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    if (!n.is(ops::quantize_def) || n.as<ops::Quantize>().block != 0) {
        return std::nullopt;
    }
    auto steps = steps_of(g, n.as<ops::Quantize>().dtype, in);
    Value bytes = steps ? bytes_of(g, in[0], *steps, 0) : Value{};
    return bytes.valid() ? std::optional(Values{bytes}) : std::nullopt;
}

} // namespace ingot::plan
