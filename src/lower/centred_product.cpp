// SPDX-License-Identifier: Apache-2.0
#include "lower/centred_product.h"

#include "lower/group_inputs.h"
#include "ops/ops.h"
#include "ops/row_moments.h"
#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::plan {

std::optional<ProductNode> product_of(const Graph& g, const Node& n, std::span<const Value> in) {
    ProductNode p;
    if (!n.is(fused_def)) {
        p.g = &g;
        p.dot = &n;
        for (size_t i = 0; i < in.size(); ++i) {
            p.outer[n.inputs[i].id] = in[i];
        }
        return n.is(dot_def) ? std::optional(p) : std::nullopt;
    }
    const auto& fused = n.as<Fused>();
    p.g = fused.body.get();
    std::span<const Node> nodes = p.g->nodes();
    if (fused.kernel != dot_def.name || nodes.size() != 2 || !nodes[0].is(dot_def) ||
        !nodes[1].is(map_def)) {
        return std::nullopt;
    }
    p.dot = &nodes[0];
    p.map = &nodes[1];
    for (size_t i = 0; i < in.size(); ++i) {
        p.outer[p.g->inputs()[i].id] = in[i];
    }
    return p;
}

namespace {

/// Larger weights, such as those of a vocabulary, are not written anew.
constexpr int64_t most_weights = int64_t{1} << 24;

const Tensor* float_constant(const Graph& g, Value v) {
    const Tensor* t = g.constant(v);
    return t != nullptr && is_float(t->dtype()) && !is_packed(t->dtype()) ? t : nullptr;
}

/// The elements along the depth, of which one stands for all.
std::vector<float> along_depth(const Tensor& t, int64_t depth) {
    std::vector<float> out(static_cast<size_t>(depth));
    for (int64_t k = 0; k < depth; ++k) {
        out[static_cast<size_t>(k)] = static_cast<float>(t.get_f64(t.count() == 1 ? 0 : k));
    }
    return out;
}

} // namespace

bool can_fold(const Graph& out, const ProductNode& p, const Node& norm) {
    const auto& a = norm.as<ops::LayerNorm>();
    int64_t operand_rank = p.g->type(p.dot->inputs[0]).rank();
    const auto& d = p.dot->as<Dot>();
    const Tensor* w = float_constant(out, p.outside(p.dot->inputs[1]));
    const Type& rows = out.type(norm.inputs[0]);
    int64_t last = rows.rank() - 1;
    bool fits = !a.rms && normalize_axis(a.axis, rows.rank()) == last && w != nullptr &&
                w->dtype() == rows.dtype && bit_width(w->dtype()) == 16 && w->rank() == 2 &&
                w->count() <= most_weights && w->count() > 0 && d.b_batch.empty() &&
                d.a_contract == std::vector<int64_t>{operand_rank - 1} && d.b_contract.size() == 1;
    if (!fits) {
        return false;
    }
    int64_t depth = w->shape()[static_cast<size_t>(d.b_contract[0])];
    return std::all_of(norm.inputs.begin() + 1, norm.inputs.end(), [&](Value v) {
        const Tensor* t = float_constant(out, v);
        return t != nullptr && (t->count() == 1 || t->count() == depth);
    });
}

std::optional<CentredWeights> fold(const Graph& out, const ProductNode& p, const Node& norm) {
    if (!can_fold(out, p, norm)) {
        return std::nullopt;
    }
    const Tensor* w = out.constant(p.outside(p.dot->inputs[1]));
    int64_t along = p.dot->as<Dot>().b_contract[0];
    int64_t depth = w->shape()[static_cast<size_t>(along)];
    std::vector<float> vectors[2] = {{}, std::vector<float>(static_cast<size_t>(depth))};
    for (size_t i = 1; i < norm.inputs.size(); ++i) {
        vectors[i - 1] = along_depth(*out.constant(norm.inputs[i]), depth);
    }
    return centred_weights(*w, along == 0, vectors[0], vectors[1]);
}

namespace {

/// The input that instruction `n` reads, where it alone does and is used once; else -1.
int only_input(const Expr& e, std::span<const int> uses, int n) {
    const ExprInstr& i = e.code[static_cast<size_t>(n)];
    auto same = [&i](const ExprInstr& o) { return o.op == ExprOp::In && o.args[0] == i.args[0]; };
    bool once = i.op == ExprOp::In && uses[static_cast<size_t>(n)] == 1 &&
                std::count_if(e.code.begin(), e.code.end(), same) == 1;
    return once ? i.args[0] : -1;
}

} // namespace

int bias_of(const Graph& out, const ProductNode& p, int64_t columns) {
    const Expr& e = p.map->as<Map>().body;
    std::vector<int> uses = uses_of(e);
    for (const ExprInstr& c : e.code) {
        if (c.op != ExprOp::Add) {
            continue;
        }
        int a = only_input(e, uses, c.args[0]);
        int b = only_input(e, uses, c.args[1]);
        if (a < 0 || b < 0) {
            continue;
        }
        bool first = p.map->inputs[static_cast<size_t>(a)] == p.dot->outputs[0];
        bool second = p.map->inputs[static_cast<size_t>(b)] == p.dot->outputs[0];
        int bias = first ? b : a;
        const Tensor* t = float_constant(out, p.outside(p.map->inputs[static_cast<size_t>(bias)]));
        if (first != second && t != nullptr && t->count() == columns &&
            t->shape().back() == columns) {
            return bias;
        }
    }
    return -1;
}

bool adds_to_biased_sum(const ProductNode& p, int bias, int row) {
    const Expr& e = p.map->as<Map>().body;
    std::vector<int> uses = uses_of(e);
    auto is_biased_sum = [&](int n) {
        const ExprInstr& i = e.code[static_cast<size_t>(n)];
        return i.op == ExprOp::Add && uses[static_cast<size_t>(n)] == 1 &&
               (only_input(e, uses, i.args[0]) == bias || only_input(e, uses, i.args[1]) == bias);
    };
    return std::any_of(e.code.begin(), e.code.end(), [&](const ExprInstr& c) {
        return c.op == ExprOp::Add &&
               ((is_biased_sum(c.args[0]) && only_input(e, uses, c.args[1]) == row) ||
                (is_biased_sum(c.args[1]) && only_input(e, uses, c.args[0]) == row));
    });
}

Tensor shift_row(const Tensor& shift, const Tensor* bias, DType type) {
    Tensor before = bias == nullptr ? Tensor::zeros(type, {shift.count()}) : *bias;
    return Tensor::lazy(before.dtype(), before.shape(), [shift, before](ThreadPool& pool) {
        static_cast<void>(shift.bytes(pool));
        Tensor out = Tensor::empty(before.dtype(), before.shape());
        for (int64_t j = 0; j < out.count(); ++j) {
            out.set_f64(j, before.get_f64(j) + shift.get_f64(j));
        }
        return out;
    });
}

namespace {

/// The map behind the product: its inputs, the sum's place among them, and its body.
struct Follows {
    Values inputs; // of the graph outside; the sum is invalid
    Expr body;
    DType type = DType::F32;
};

Follows with_shift(Graph& g, const ProductNode& p, const Tensor& shift) {
    Value sum = p.dot->outputs[0];
    Follows f;
    f.type = p.map == nullptr ? p.g->type(sum).dtype : p.map->as<Map>().dtype;
    int bias = p.map == nullptr ? -1 : bias_of(g, p, shift.count());
    if (p.map != nullptr) {
        for (Value v : p.map->inputs) {
            f.inputs.push_back(v == sum ? Value{} : p.outside(v));
        }
        f.body = p.map->as<Map>().body;
    }
    if (bias >= 0) {
        Value& v = f.inputs[static_cast<size_t>(bias)];
        v = ops::constant(g, shift_row(shift, g.constant(v), f.type));
        return f;
    }
    // Added ahead of everything else.
    DType type = p.g->type(sum).dtype;
    Expr e;
    int result = e.in(0, type);
    int total = e.op(ExprOp::Add, result, e.in(1, type));
    Values inputs = {Value{}, ops::constant(g, shift_row(shift, nullptr, type))};
    if (p.map != nullptr) {
        std::vector<int> at;
        for (Value v : f.inputs) {
            if (v.valid()) {
                at.push_back(e.in(static_cast<int>(inputs.size()), g.type(v).dtype));
                inputs.push_back(v);
            } else {
                at.push_back(total);
            }
        }
        e.inline_expr(f.body, at);
    }
    f.inputs = std::move(inputs);
    f.body = std::move(e);
    return f;
}

/// The scale of a norm that has none.
Value one(Graph& g) {
    return ops::constant(g, Tensor::of<float>(DType::F32, {1}, std::vector{1.0F}));
}

} // namespace

std::optional<Values> add_centred_product(const KernelSet& kernels, Graph& g, const ProductNode& p,
                                          const Node& norm, Value rows, Value moments,
                                          CentredWeights centred, bool leaves_rows) {
    Graph body = g.sibling("group");
    GroupInputs inputs(body, g);
    Value x = inputs.of(rows);
    Value statistics = inputs.of(moments.valid() ? moments : one(g));
    body.set_origin(norm.name);
    double epsilon = norm.as<ops::LayerNorm>().epsilon;
    ops::LayerNorm attributes = norm.as<ops::LayerNorm>();
    attributes.axis = int64_t{g.type(rows).rank()} - 1;
    Value normed = moments.valid()
                       ? body.add1(ops::moment_norm_def, ops::MomentNorm{epsilon}, {x, statistics})
                       : body.add1(ops::layer_norm_def, attributes, {x, statistics});
    Value weights = inputs.of(ops::constant(g, std::move(centred.weights)));
    body.set_origin(p.dot->name);
    Value result = body.add(*p.dot->def, p.dot->attrs, Values{normed, weights})[0];
    Follows f = with_shift(g, p, centred.shift);
    Values in;
    for (Value v : f.inputs) {
        in.push_back(v.valid() ? inputs.of(v) : result);
    }
    body.set_origin(p.map == nullptr ? p.dot->name : p.map->name);
    body.add_output("", body.add1(map_def, Map{f.body, f.type}, in));
    if (leaves_rows) {
        body.add_output("", normed);
    }
    Group group{body, body.nodes(), body.inputs(), body.outputs()};
    constexpr std::string_view kernel = "centred_dot";
    if (kernels.find(kernel, group) == nullptr) {
        return std::nullopt;
    }
    g.set_origin(norm.name + " + " + p.dot->name);
    return g.add(fused_def,
                 Fused{std::string(kernel), std::make_shared<const Graph>(std::move(body))},
                 inputs.values());
}

} // namespace ingot::plan
