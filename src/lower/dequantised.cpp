// SPDX-License-Identifier: Apache-2.0
#include "lower/dequantised.h"

#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

constexpr size_t longest_chain = 4;

bool is_cast_between_floats(const Graph& g, const Node& n) {
    const auto& body = n.as<Map>().body.code;
    bool casts = std::all_of(body.begin(), body.end(), [](const ExprInstr& i) {
        return i.op == ExprOp::In || i.op == ExprOp::Cast;
    });
    return casts && n.inputs.size() == 1 && is_float(g.type(n.inputs[0]).dtype) &&
           is_float(g.type(n.outputs[0]).dtype);
}

} // namespace

bool is_one(const Graph& g, Value v) {
    const Dims& d = g.type(v).dims;
    return std::all_of(d.begin(), d.end(), [](const Dim& x) { return x.is_const(1); });
}

const Tensor* repeated_constant(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    return p != nullptr && p->is(broadcast_def) ? g.constant(p->inputs[0]) : g.constant(v);
}

bool is_zero(const Graph& g, Value zero) {
    const Tensor* t = repeated_constant(g, zero);
    for (int64_t i = 0; t != nullptr && i < t->count(); ++i) {
        if (t->get_f64(i) != 0) {
            return false;
        }
    }
    return t != nullptr;
}

std::optional<Dequantised> dequantised(Graph& g, Value v) {
    std::vector<Node> views;
    const Node* p = g.producer(v);
    DType dtype = g.type(v).dtype;
    for (; p != nullptr && views.size() < longest_chain; p = g.producer(p->inputs[0])) {
        if (p->is(reshape_def) || p->is(permute_def)) {
            views.push_back(*p);
        } else if (!p->is(map_def) || !is_cast_between_floats(g, *p)) {
            break;
        }
    }
    if (p == nullptr || !p->is(ops::dequantize_def)) {
        return std::nullopt;
    }
    const auto& a = p->as<ops::Dequantize>();
    Dequantised out{p->inputs[0], p->inputs[1], {}, a.axis, a.block, dtype};
    out.zero = p->inputs.size() == 3 ? p->inputs[2] : Value{};
    bool one = a.block == 0 && is_one(g, out.scale) && (!out.zero.valid() || is_one(g, out.zero));
    if (!views.empty() && (!one || is_packed(g.type(out.q).dtype))) {
        return std::nullopt;
    }
    for (size_t i = views.size(); i-- > 0;) {
        out.q = g.add(*views[i].def, views[i].attrs, std::array{out.q})[0];
    }
    out.axis = g.type(out.q).rank() > 0 && !one ? normalize_axis(a.axis, g.type(out.q).rank()) : 0;
    return out;
}

} // namespace ingot::plan
