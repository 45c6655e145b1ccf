// SPDX-License-Identifier: Apache-2.0
// fuse_norms: a layer norm of 16-bit rows, which one product with constant weights alone reads,
// becomes part of that product. norm(x) has no mean, so that
//
//     (norm(x) * scale + bias) W + b = norm(x) V + (bias W + b),  V = scale W - its columns' means
//
// and norm(x) V = deviation(x)^-1 (x V): a kernel that multiplies the raw rows by V needs only
// their deviations, which it finds in the rows as they pass.
#include "ir/rewrite.h"
#include "lower/centred_weights.h"
#include "lower/group_inputs.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "ops/roll.h"
#include "plan/epilogue.h"
#include "plan/kernel.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

/// The norm behind a product's operand, and the moves of rows between, the last one first.
struct NormedRows {
    Node norm;
    std::vector<Node> moves;
};

/// Whether a node moves rows of the last axis as they are.
bool moves_rows(const Graph& g, const Node& n) {
    if (n.inputs.size() != 1 || g.type(n.inputs[0]).rank() == 0) {
        return false;
    }
    int64_t last = int64_t{g.type(n.inputs[0]).rank()} - 1;
    if (n.is(permute_def)) {
        return n.as<Permute>().perm.back() == last;
    }
    if (n.is(reshape_def)) {
        const Dims& to = g.type(n.outputs[0]).dims;
        return !to.empty() && to.back() == g.type(n.inputs[0]).dims.back();
    }
    if (n.is(ops::roll_def)) {
        const auto& axes = n.as<ops::Roll>().axes;
        return std::find(axes.begin(), axes.end(), last) == axes.end();
    }
    return false;
}

/// `operand` in `g`, and its counterpart `copy` in the graph `out` that is made of it: the norm
/// there, if each value up to the product has one reader.
std::optional<NormedRows> normed_rows(const Graph& g, Value operand, const Graph& out, Value copy,
                                      std::span<const uint32_t> readers) {
    NormedRows r;
    for (;;) {
        const Node* from = g.producer(operand);
        const Node* to = out.producer(copy);
        bool same = from != nullptr && to != nullptr && from->def == to->def;
        if (!same || readers[operand.id] != 1) {
            return std::nullopt;
        }
        if (to->is(ops::layer_norm_def)) {
            r.norm = *to;
            return r;
        }
        if (!moves_rows(out, *to)) {
            return std::nullopt;
        }
        r.moves.push_back(*to);
        operand = from->inputs[0];
        copy = to->inputs[0];
    }
}

/// Longer rows lose: finding deviations delays each step of the product, and a norm in a launch of
/// its own costs the same for all. Measured on an H200: -2 to -11 % of a model up to 512 elements,
/// +3 to +8 % at 768.
constexpr int64_t most_elements = 512;
/// Larger weights, such as those of a vocabulary, are not written anew.
constexpr int64_t most_weights = int64_t{1} << 24;

/// A product, or one with the map behind it, as nodes of `g`.
struct Product {
    const Graph* g = nullptr;
    const Node* dot = nullptr;
    const Node* map = nullptr;
    std::map<uint32_t, Value> outer; // values of `g` in the graph around it

    Value outside(Value v) const {
        auto at = outer.find(v.id);
        return at == outer.end() ? v : at->second;
    }
};

std::optional<Product> product_of(const Graph& g, const Node& n, std::span<const Value> in) {
    Product p;
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

/// The product's weights and shift with a norm's scale, bias and mean in them, if it can have them.
std::optional<CentredWeights> fold(const Graph& out, const Product& p, const Node& norm) {
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
        return std::nullopt;
    }
    int64_t depth = w->shape()[static_cast<size_t>(d.b_contract[0])];
    if (depth > most_elements) {
        return std::nullopt;
    }
    std::vector<float> vectors[2] = {{}, std::vector<float>(static_cast<size_t>(depth))};
    for (size_t i = 1; i < norm.inputs.size(); ++i) {
        const Tensor* t = float_constant(out, norm.inputs[i]);
        if (t == nullptr || (t->count() != 1 && t->count() != depth)) {
            return std::nullopt;
        }
        vectors[i - 1] = along_depth(*t, depth);
    }
    return centred_weights(*w, d.b_contract[0] == 0, vectors[0], vectors[1]);
}

/// The input of the map that is a constant with an element per column, which is added to the sum
/// and read nowhere else; -1 if there is none.
int bias_of(const Graph& out, const Product& p, int64_t columns) {
    const Expr& e = p.map->as<Map>().body;
    std::vector<int> uses = uses_of(e);
    // The input that an instruction reads, if it alone does and is read once.
    auto input = [&](int n) {
        const ExprInstr& i = e.code[static_cast<size_t>(n)];
        auto same = [&i](const ExprInstr& o) {
            return o.op == ExprOp::In && o.args[0] == i.args[0];
        };
        bool once = i.op == ExprOp::In && uses[static_cast<size_t>(n)] == 1 &&
                    std::count_if(e.code.begin(), e.code.end(), same) == 1;
        return once ? i.args[0] : -1;
    };
    for (const ExprInstr& c : e.code) {
        if (c.op != ExprOp::Add) {
            continue;
        }
        int a = input(c.args[0]);
        int b = input(c.args[1]);
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

/// The shift as a row, added to `bias` where that is not null.
Tensor shift_row(std::span<const float> shift, const Tensor* bias, DType type) {
    auto columns = static_cast<int64_t>(shift.size());
    Tensor out = bias == nullptr ? Tensor::empty(type, {columns})
                                 : Tensor::empty(bias->dtype(), bias->shape());
    for (int64_t j = 0; j < columns; ++j) {
        double b = bias == nullptr ? 0 : bias->get_f64(j);
        out.set_f64(j, b + static_cast<double>(shift[static_cast<size_t>(j)]));
    }
    return out;
}

/// The map behind the product: its inputs, the sum's place among them, and its body.
struct Follows {
    Values inputs; // of the graph outside; the sum is invalid
    Expr body;
    DType type = DType::F32;
};

Follows with_shift(Graph& g, const Product& p, std::span<const float> shift) {
    Value sum = p.dot->outputs[0];
    Follows f;
    f.type = p.map == nullptr ? p.g->type(sum).dtype : p.map->as<Map>().dtype;
    int bias = p.map == nullptr ? -1 : bias_of(g, p, static_cast<int64_t>(shift.size()));
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

std::optional<Values> fuse_norm(const KernelSet& kernels, Graph& g, const Product& p,
                                const NormedRows& normed_rows) {
    const Node& norm = normed_rows.norm;
    std::optional<CentredWeights> centred = fold(g, p, norm);
    if (!centred) {
        return std::nullopt;
    }
    Graph body = g.sibling("group");
    GroupInputs inputs(body, g);
    Value raw = norm.inputs[0];
    for (auto n = normed_rows.moves.rbegin(); n != normed_rows.moves.rend(); ++n) {
        g.set_origin(n->name);
        raw = g.add(*n->def, n->attrs, Values{raw})[0];
    }
    ops::LayerNorm attributes = norm.as<ops::LayerNorm>();
    attributes.axis = int64_t{g.type(raw).rank()} - 1;
    Value rows = inputs.of(raw);
    Value one = inputs.of(ops::constant(g, Tensor::of<float>(DType::F32, {1}, std::vector{1.0F})));
    body.set_origin(norm.name);
    Value normed = body.add1(ops::layer_norm_def, attributes, {rows, one});
    Value weights = inputs.of(ops::constant(g, std::move(centred->weights)));
    body.set_origin(p.dot->name);
    Value result = body.add(*p.dot->def, p.dot->attrs, Values{normed, weights})[0];
    Follows f = with_shift(g, p, centred->shift);
    Values in;
    for (Value v : f.inputs) {
        in.push_back(v.valid() ? inputs.of(v) : result);
    }
    body.set_origin(p.map == nullptr ? p.dot->name : p.map->name);
    body.add_output("", body.add1(map_def, Map{f.body, f.type}, in));
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

Graph fused(const Graph& g, const KernelSet& kernels) {
    std::vector<uint32_t> readers = use_counts(g);
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value> in) -> std::optional<Values> {
            std::optional<Product> p = product_of(g, n, in);
            if (!p) {
                return std::nullopt;
            }
            Value operand = p->outside(p->dot->inputs[0]);
            auto at = std::find(in.begin(), in.end(), operand);
            if (at == in.end()) {
                return std::nullopt;
            }
            Value source = n.inputs[static_cast<size_t>(at - in.begin())];
            auto rows = normed_rows(g, source, r.out(), operand, readers);
            return rows ? fuse_norm(kernels, r.out(), *p, *rows) : std::nullopt;
        }));
}

} // namespace

Pass fuse_norms(const KernelSet& kernels) {
    return {"fuse_norms", "layer norms become part of the only product that reads them",
            [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); }, false};
}

} // namespace ingot::plan
