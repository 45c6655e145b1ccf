// SPDX-License-Identifier: Apache-2.0
// carry_moments: where a kernel makes rows, and products with constant weights alone read their
// layer norm, the kernel stores the moments of the rows as a second result, and the products read
// the raw rows and the moments. Others may read the raw rows too, as the next residual sum does. Or
// that sum, behind a later product, reads the norm (BERT): it normalises the raw rows then, or
// reads the normalised ones that a product in front has left (kernels/contraction/normed.h).
#include "ir/rewrite.h"
#include "lower/centred_product.h"
#include "lower/group_inputs.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "ops/row_moments.h"

#include <algorithm>
#include <map>
#include <set>

namespace ingot::plan {

namespace {

using Moves = std::vector<const Node*>; // of rows, in their order

/// A product of normalised rows, and the rows before they were.
struct NormedOperand {
    const Node* norm = nullptr;
    Value made;   // by the kernel that is to store the moments
    Moves before; // the norm
    Moves after;
    bool leaves_rows = false; // for residual sums
};
struct NormedProduct {
    const Node* product = nullptr;
    Moves after;
};
/// Those that read the result of one norm.
struct Readers {
    std::vector<NormedProduct> products;
    std::vector<const Node*> sums; // products whose maps read it
};
/// A group's body and its operands outside.
struct Body {
    Graph graph;
    Values inputs;
};

class Carry {
public:
    Carry(const Graph& g, const KernelSet& kernels)
        : g_(g), kernels_(kernels), readers_(g.value_count()), uses_(use_counts(g)) {
        for (const Node& n : g.nodes()) {
            std::set<uint32_t> seen;
            for (Value v : n.inputs) {
                if (seen.insert(v.id).second) {
                    readers_[v.id].push_back(&n);
                }
            }
        }
        for (const Node& n : g.nodes()) {
            if (n.is(ops::layer_norm_def)) {
                find(n);
            }
        }
    }

    Graph result() {
        return products_.empty() ? g_
                                 : dead_code(rewrite(g_, [this](Rewriter& r, const Node& n,
                                                                std::span<const Value> in) {
                                       return replaced(r, n, in);
                                   }));
    }

private:
    void find(const Node& norm);
    bool find_readers(const Node& norm, Value rows, const Moves& moves, Readers& out) const;
    bool reads_by_row(const ProductNode& p, const Node& product, Value rows) const;
    std::optional<Values> replaced(Rewriter& r, const Node& n, std::span<const Value> in);
    Values with_moments(Graph& g, const Node& n, Body body);
    std::optional<Body> residual(Rewriter& r, const Node& n, std::span<const Value> in);
    std::optional<Values> by_moments(Graph& g, const Rewriter& r, const Node& n,
                                     std::span<const Value> in, const NormedOperand& operand);

    const Graph& g_;
    const KernelSet& kernels_;
    std::vector<std::vector<const Node*>> readers_; // of each value
    std::vector<uint32_t> uses_;
    std::map<const Node*, NormedOperand> products_;
    std::map<const Node*, const Node*> sums_; // the norm that the map of a product reads
    std::set<const Node*> makers_;
    std::map<uint32_t, Value> moments_; // by the id of the rows, in the new graph
    struct LeftRows {
        Value raw, moments, normed; // in the new graph
    };
    std::map<const Node*, LeftRows> left_; // by the norm
};

/// Whether a node is a view of its operand that keeps each row of the last axis.
bool moves_rows(const Graph& g, const Node& n) {
    if (!n.is(reshape_def) && !n.is(permute_def)) {
        return false;
    }
    const Dims& from = g.type(n.inputs[0]).dims;
    const Dims& to = g.type(n.outputs[0]).dims;
    return !from.empty() && !to.empty() && from.back() == to.back() &&
           (n.is(reshape_def) || n.as<Permute>().perm.back() + 1 == std::ssize(from));
}

/// Moves the moments as their rows.
Value moved_moments(Graph& g, Value moments, const Node& move, const Dims& rows) {
    if (move.is(permute_def)) {
        std::vector<int64_t> perm = move.as<Permute>().perm;
        perm.push_back(std::ssize(perm));
        return ops::permute(g, moments, perm);
    }
    Dims dims = rows;
    const Dims& m = g.type(moments).dims;
    dims.back() = m[m.size() - 2];
    dims.emplace_back(2);
    return ops::reshape(g, moments, dims);
}

std::string kernel_of(const Node& n) {
    return n.is(fused_def) ? n.as<Fused>().kernel : std::string(n.def->name);
}

/// The node as a group of the operands `in`. `types`: the graph of its own.
Body body_of(const Graph& types, const Node& n, std::span<const Value> in) {
    Body b{types.sibling("group"), Values(in.begin(), in.end())};
    if (n.is(fused_def)) {
        b.graph = *n.as<Fused>().body;
        return b;
    }
    Values own;
    for (Value v : n.inputs) {
        own.push_back(b.graph.add_input("", types.type(v)));
    }
    b.graph.set_origin(n.name);
    b.graph.add_output("", b.graph.add(*n.def, n.attrs, own)[0]);
    return b;
}

void add_moments(Graph& body, std::string_view origin) {
    body.set_origin(std::string(origin));
    body.add_output("", ops::row_moments(body, {}, body.outputs()[0]));
}

bool accepts(const KernelSet& kernels, std::string_view kernel, const Graph& body) {
    return kernels.find(kernel, {body, body.nodes(), body.inputs(), body.outputs()}) != nullptr;
}

bool stores_moments(const KernelSet& kernels, const Graph& g, const Node& n) {
    constexpr int64_t chunk = ops::RowMoments{}.chunk;
    constexpr int64_t most_elements = 2048; // of which a warp finds the moments in its registers
    const Type& t = g.type(n.outputs[0]);
    auto size = t.rank() == 0 ? std::nullopt : t.dims.back().as_const();
    if (n.outputs.size() != 1 || n.is(constant_def) || !size || *size <= most_found_elements ||
        *size > most_elements || *size % chunk != 0 || bit_width(t.dtype) != 16 ||
        !is_float(t.dtype)) {
        return false;
    }
    Body b = body_of(g, n, n.inputs);
    add_moments(b.graph, n.name);
    return accepts(kernels, kernel_of(n), b.graph);
}

/// The bias of a norm, an element for each column.
Tensor shift_of(const Graph& g, const Node& norm, int64_t columns) {
    const Tensor& t = *g.constant(norm.inputs[2]);
    Tensor out = Tensor::empty(DType::F32, {columns});
    for (int64_t j = 0; j < columns; ++j) {
        out.set_f64(j, t.get_f64(t.count() == 1 ? 0 : j));
    }
    return out;
}

/// Whether the map behind the product reads `rows` once, row by row, and the product does not.
bool Carry::reads_by_row(const ProductNode& p, const Node& product, Value rows) const {
    if (p.map == nullptr || g_.type(product.outputs[0]).dims != g_.type(rows).dims) {
        return false;
    }
    auto reads = [&](const Node& n) {
        return std::count_if(n.inputs.begin(), n.inputs.end(), [&](Value v) {
            return v != p.dot->outputs[0] && p.outside(v) == rows;
        });
    };
    return reads(*p.dot) == 0 && reads(*p.map) == 1;
}

/// The readers of the norm's result; false where something else reads it.
bool Carry::find_readers(const Node& norm, Value rows, const Moves& moves, Readers& out) const {
    uint32_t found = 0;
    for (const Node* n : readers_[rows.id]) {
        if (std::count(n->inputs.begin(), n->inputs.end(), rows) != 1) {
            return false;
        }
        ++found;
        if (moves_rows(g_, *n)) {
            Moves more = moves;
            more.push_back(n);
            if (!find_readers(norm, n->outputs[0], more, out)) {
                return false;
            }
            continue;
        }
        std::optional<ProductNode> p = product_of(g_, *n, n->inputs);
        if (p && p->outside(p->dot->inputs[0]) == rows && can_fold(g_, *p, norm)) {
            out.products.push_back({n, moves});
        } else if (p && moves.empty() && reads_by_row(*p, *n, rows)) {
            out.sums.push_back(n);
        } else {
            return false;
        }
    }
    return found > 0 && found == uses_[rows.id];
}

void Carry::find(const Node& norm) {
    Value made = norm.inputs[0];
    Moves before;
    const Node* maker = g_.producer(made);
    while (maker != nullptr && moves_rows(g_, *maker)) {
        before.insert(before.begin(), maker);
        made = maker->inputs[0];
        maker = g_.producer(made);
    }
    Readers readers;
    if (maker == nullptr || products_.contains(maker) ||
        !find_readers(norm, norm.outputs[0], {}, readers) ||
        !stores_moments(kernels_, g_, *maker)) {
        return;
    }
    // The first product, which stands before all sums, leaves them the rows.
    auto in_place = [](const NormedProduct& p) { return p.after.empty(); };
    auto leaver = std::find_if(readers.products.begin(), readers.products.end(), in_place);
    bool ordered = leaver != readers.products.end() &&
                   std::all_of(readers.sums.begin(), readers.sums.end(), [&](const Node* sum) {
                       return leaver->product->outputs[0].id < sum->outputs[0].id;
                   });
    if (readers.products.empty() || (!readers.sums.empty() && !ordered)) {
        return;
    }
    makers_.insert(maker);
    for (const NormedProduct& p : readers.products) {
        bool leaves = !readers.sums.empty() && p.product == leaver->product;
        products_[p.product] = {&norm, made, before, p.after, leaves};
    }
    for (const Node* sum : readers.sums) {
        sums_[sum] = &norm;
    }
}

Values Carry::with_moments(Graph& g, const Node& n, Body body) {
    add_moments(body.graph, n.name);
    Values out =
        g.add(fused_def, Fused{kernel_of(n), std::make_shared<const Graph>(std::move(body.graph))},
              body.inputs);
    moments_[n.outputs[0].id] = out[1];
    return {out[0]};
}

/// The product whose map normalises rows, with the norm's scale and bias in that map; nullopt where
/// no kernel takes it.
std::optional<Body> Carry::residual(Rewriter& r, const Node& n, std::span<const Value> in) {
    auto at = sums_.find(&n);
    if (at == sums_.end() || !left_.contains(at->second)) {
        return std::nullopt;
    }
    Graph& g = r.out();
    const Node norm = r.current(*at->second);
    const LeftRows& rows = left_.at(at->second);
    const ProductNode p = *product_of(g_, n, in);
    const Value normed = r.mapped(at->second->outputs[0]);
    Body b{g.sibling("group"), {}};
    GroupInputs inputs(b.graph, g);
    b.graph.set_origin(norm.name);
    Value raw =
        b.graph.add1(ops::moment_norm_def, ops::MomentNorm{norm.as<ops::LayerNorm>().epsilon},
                     {inputs.of(rows.raw), inputs.of(rows.moments), inputs.of(rows.normed)});
    b.graph.set_origin(p.dot->name);
    Value sum = b.graph.add(
        *p.dot->def, p.dot->attrs,
        Values{inputs.of(p.outside(p.dot->inputs[0])), inputs.of(p.outside(p.dot->inputs[1]))})[0];
    const bool shifts = norm.inputs.size() > 2;
    const auto columns = g.type(normed).dims.back().value();
    const auto row = std::find_if(p.map->inputs.begin(), p.map->inputs.end(),
                                  [&](Value v) { return p.outside(v) == normed; });
    int bias = shifts ? bias_of(g, p, columns) : -1;
    if (bias >= 0 && !adds_to_biased_sum(p, bias, static_cast<int>(row - p.map->inputs.begin()))) {
        bias = -1;
    }
    Expr e;
    Values of;
    auto input = [&](Value outside) {
        of.push_back(inputs.of(outside));
        return e.in(static_cast<int>(of.size()) - 1, g.type(outside).dtype);
    };
    std::vector<int> operands;
    for (size_t i = 0; i < p.map->inputs.size(); ++i) {
        Value v = p.map->inputs[i];
        if (v == p.dot->outputs[0]) {
            of.push_back(sum);
            operands.push_back(e.in(static_cast<int>(of.size()) - 1, b.graph.type(sum).dtype));
        } else if (p.outside(v) == normed) {
            of.push_back(raw);
            int x = e.in(static_cast<int>(of.size()) - 1, b.graph.type(raw).dtype);
            x = e.op(ExprOp::Mul, x, input(norm.inputs[1]));
            operands.push_back(shifts && bias < 0 ? e.op(ExprOp::Add, x, input(norm.inputs[2]))
                                                  : x);
        } else if (static_cast<int>(i) == bias) {
            const Tensor* t = g.constant(p.outside(v));
            operands.push_back(
                input(ops::constant(g, shift_row(shift_of(g, norm, columns), t, t->dtype()))));
        } else {
            operands.push_back(input(p.outside(v)));
        }
    }
    e.inline_expr(p.map->as<Map>().body, operands);
    b.graph.set_origin(p.map->name);
    b.graph.add_output("", b.graph.add1(map_def, Map{e, p.map->as<Map>().dtype}, of));
    if (!accepts(kernels_, kernel_of(n), b.graph)) {
        return std::nullopt;
    }
    b.inputs = inputs.values();
    return b;
}

std::optional<Values> Carry::by_moments(Graph& g, const Rewriter& r, const Node& n,
                                        std::span<const Value> in, const NormedOperand& operand) {
    ProductNode p = *product_of(g_, n, in);
    Node norm = r.current(*operand.norm);
    std::optional<CentredWeights> centred = fold(g, p, norm);
    if (!centred) {
        return std::nullopt;
    }
    g.set_origin(n.name);
    Value rows = r.mapped(operand.norm->inputs[0]);
    Value moments = moments_.at(operand.made.id);
    for (const Node* move : operand.before) {
        moments = moved_moments(g, moments, *move, g_.type(move->outputs[0]).dims);
    }
    for (const Node* move : operand.after) {
        Node current = r.current(*move);
        rows = g.add(*current.def, current.attrs, Values{rows})[0];
        moments = moved_moments(g, moments, *move, g_.type(move->outputs[0]).dims);
    }
    std::optional<Values> out = add_centred_product(kernels_, g, p, norm, rows, moments,
                                                    std::move(*centred), operand.leaves_rows);
    if (out && operand.leaves_rows) {
        left_[operand.norm] = {rows, moments, (*out)[1]};
        out->pop_back();
    }
    return out;
}

std::optional<Values> Carry::replaced(Rewriter& r, const Node& n, std::span<const Value> in) {
    if (auto at = products_.find(&n); at != products_.end()) {
        return by_moments(r.out(), r, n, in, at->second);
    }
    std::optional<Body> sum = residual(r, n, in);
    r.out().set_origin(n.name);
    if (makers_.contains(&n)) {
        return with_moments(r.out(), n, sum ? std::move(*sum) : body_of(g_, n, in));
    }
    if (!sum) {
        return std::nullopt;
    }
    return r.out().add(fused_def,
                       Fused{kernel_of(n), std::make_shared<const Graph>(std::move(sum->graph))},
                       sum->inputs);
}

} // namespace

Pass carry_moments(const KernelSet& kernels) {
    return {
        .name = "carry_moments",
        .summary = "kernels store the statistics of rows for the norms behind them",
        .run = [&kernels](const Graph& g,
                          const PassOptions&) { return Carry(g, kernels).result(); },
    };
}

} // namespace ingot::plan
