// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/normed.h"

#include "base/error.h"
#include "kernels/quantized_dot/quant_shape.h"
#include "kernels/quantized_dot/quantized_dot.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

/// What stands behind the norm, with the norm's result as one more input.
class ProductGroup {
public:
    explicit ProductGroup(const Group& whole)
        : inputs_(whole.inputs.begin(), whole.inputs.end()), group_{whole.graph,
                                                                    whole.nodes.subspan(1),
                                                                    {},
                                                                    whole.outputs} {
        inputs_.push_back(whole.first().outputs[0]);
        group_.inputs = inputs_;
    }
    ProductGroup(const ProductGroup&) = delete;
    ProductGroup& operator=(const ProductGroup&) = delete;

    const Group& group() const { return group_; }

private:
    Values inputs_;
    Group group_;
};

Group norm_group(const Group& whole) {
    return {whole.graph, whole.nodes.first(1), whole.first().inputs, whole.first().outputs};
}

const Family& norm_family() {
    for (const FamilyTable* table : all_families()) {
        for (const Family& f : *table) {
            if (f.name == ops::layer_norm_def.name) {
                return f;
            }
        }
    }
    fail(ErrorCode::Internal, "no family of kernels runs layer_norm");
}

/// The product of a group, for rows that lie where `rows` says.
class Product {
public:
    Product(const Problem& p, const Operand& rows)
        : group_(p.group), in_(p.in.begin(), p.in.end()),
          constants_(p.constants.begin(), p.constants.end()), p_(p) {
        in_.push_back(rows);
        constants_.push_back(nullptr);
    }
    Problem problem() const {
        return {group_.group(), p_.symbols, in_,     p_.out,
                constants_,     p_.arch,    p_.tf32, p_.batch_invariant};
    }

private:
    ProductGroup group_;
    std::vector<Operand> in_;
    std::vector<const std::byte*> constants_;
    const Problem& p_;
};

const Operand& rows_of(const Problem& p) {
    return p.operand(p.group.first().inputs[0]);
}

/// The rows once they are normalised, in scratch memory.
Operand between(const Problem& p, int64_t bytes_before) {
    const Operand& x = rows_of(p);
    Operand o{x.dtype, in_scratch, plan::dense(x.view.shape)};
    o.view.offset = bytes_before * 8 / bit_width(x.dtype);
    return o;
}

/// The norm on its own, into `result`.
class Norm {
public:
    Norm(const Problem& p, const Operand& result) : group_(norm_group(p.group)), result_(result) {
        for (Value v : group_.inputs) {
            auto i = static_cast<size_t>(p.group.input_index(v));
            in_.push_back(p.in[i]);
            constants_.push_back(p.constants[i]);
        }
        Problem own{group_,     p.symbols, in_,    std::span(&result_, 1),
                    constants_, p.arch,    p.tf32, p.batch_invariant};
        for (const Tactic& t : norm_family().tactics(own)) {
            emitted_ = norm_family().emit(own, t);
            cost_us_ = t.cost_us;
            if (emitted_.scratch == 0) {
                return;
            }
        }
        fail(ErrorCode::Unsupported, "a norm over ", result.view.shape,
             " needs memory of its own before a product; compile with fewer elements in a row");
    }
    double cost_us() const { return cost_us_; }
    std::vector<Launch>& launches() { return emitted_.launches; }

private:
    Group group_;
    Operand result_;
    std::vector<Operand> in_;
    std::vector<const std::byte*> constants_;
    Emitted emitted_;
    double cost_us_ = 0;
};

RowNorm row_norm(const Problem& p) {
    const Node& n = p.group.first();
    const auto& a = n.as<ops::LayerNorm>();
    RowNorm r;
    r.rms = a.rms;
    r.epsilon = a.epsilon;
    const Shape& shape = rows_of(p).view.shape;
    for (size_t i = 1; i < n.inputs.size(); ++i) {
        Operand o = p.operand(n.inputs[i]);
        o.view = plan::broadcasted(o.view, shape);
        auto at = static_cast<size_t>(p.group.input_index(n.inputs[i]));
        r.constant = r.constant && p.constants[at] != nullptr;
        r.vectors.push_back(std::move(o));
    }
    return r;
}

constexpr int64_t scratch_step = 256;

bool is_quantised(const Group& whole) {
    return whole.nodes[1].is(ops::quantized_dot_def);
}

const std::vector<int64_t>* contracted_of(const Node& product) {
    return product.is(dot_def)                  ? &product.as<Dot>().a_contract
           : product.is(ops::quantized_dot_def) ? &product.as<ops::QuantizedDot>().a_contract
                                                : nullptr;
}

} // namespace

bool has_norm(const Group& group) {
    return group.first().is(ops::layer_norm_def) && group.nodes.size() > 1;
}

std::optional<std::string> refuse_normed(const Group& group,
                                         std::optional<std::string> (*product)(const Group&)) {
    const Node& norm = group.first();
    const Node& dot = group.nodes[1];
    const std::vector<int64_t>* contracted = contracted_of(dot);
    Value result = norm.outputs[0];
    auto last = int64_t{group.graph.type(result).rank()} - 1;
    const auto reads = [&](const Node& n) {
        return std::count(n.inputs.begin(), n.inputs.end(), result);
    };
    std::ptrdiff_t readers = 0;
    for (const Node& n : group.nodes) {
        readers += reads(n);
    }
    if (contracted == nullptr || dot.inputs[0] != result || readers != 1) {
        return "the norm's result is not read by one dot alone";
    }
    int64_t axis = norm.as<ops::LayerNorm>().axis;
    if ((axis < 0 ? axis + last + 1 : axis) != last || *contracted != std::vector<int64_t>{last}) {
        return "the norm's axes are not those of the sums";
    }
    if (auto reason = norm_family().refuse(norm_group(group))) {
        return reason;
    }
    return product(ProductGroup(group).group());
}

void layout_normed(LayoutArgs& args, void (*product)(LayoutArgs&)) {
    ProductGroup rest(args.group);
    auto x = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    std::vector<View> in(args.in.begin(), args.in.end());
    in.push_back(plan::dense(args.in[x].shape));
    std::vector<std::optional<Order>> want(in.size());
    LayoutArgs own{rest.group(), args.symbols, args.use_library, in, args.out, want, args.order};
    product(own);
    std::copy(want.begin(), want.end() - 1, args.want.begin());
    if (args.in[x].strides.back() != 1 && args.in[x].shape.back() != 1) {
        args.want[x] = plan::row_major(args.in[x].rank());
    }
}

std::vector<Tactic> normed_tactics(const Problem& p) {
    Product apart(p, between(p, 0));
    double norm_us = Norm(p, between(p, 0)).cost_us();
    bool quantised = is_quantised(p.group);
    std::vector<Tactic> all =
        quantised ? quantized_dot_tactics(apart.problem())
                  : contraction_tactics(contraction_of(apart.problem()), apart.problem());
    for (Tactic& t : all) {
        t.name = "norm_" + t.name;
        t.cost_us += norm_us;
    }
    if (p.batch_invariant) {
        return all;
    }
    Product inside(p, rows_of(p));
    if (quantised) {
        add_normed_quantized_dot_tactics(all, inside.problem(), row_norm(p));
    } else {
        Contraction c = contraction_of(inside.problem());
        RowNorm norm = row_norm(p);
        add_normed_ring_tactics(all, c, norm, p.arch);
        add_tile_tactics(all, tile_shape(c), &norm, static_cast<int>(Way::NormedTiles),
                         "normed_tiles_s", p.arch);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Tactic& a, const Tactic& b) { return a.cost_us < b.cost_us; });
    return all;
}

Emitted emit_normed(const Problem& p, const Tactic& t) {
    bool quantised = is_quantised(p.group);
    if (quantised && normalises_inside(t)) {
        Product inside(p, rows_of(p));
        return emit_normed_quantized_dot(inside.problem(), row_norm(p), t);
    }
    if (!quantised && static_cast<Way>(t.p[0]) == Way::NormedTiles) {
        Product inside(p, rows_of(p));
        RowNorm norm = row_norm(p);
        return emit_tiles(tile_shape(contraction_of(inside.problem())), &norm, t, p.arch);
    }
    if (!quantised && static_cast<Way>(t.p[0]) == Way::NormedRing) {
        Product inside(p, rows_of(p));
        return emit_normed_ring(contraction_of(inside.problem()), row_norm(p), t, p.arch);
    }
    // The product's own scratch memory comes first.
    int64_t before = 0;
    Emitted out;
    for (int i = 0; i < 2; ++i) {
        Product apart(p, between(p, before));
        out = quantised ? emit_quantized_dot(apart.problem(), t)
                        : emit_contraction(contraction_of(apart.problem()), p.arch, t);
        if (out.scratch <= before) {
            break;
        }
        before = div_up(out.scratch, scratch_step) * scratch_step;
    }
    Operand rows = between(p, before);
    Norm norm(p, rows);
    std::vector<Launch>& first = norm.launches();
    out.launches.insert(out.launches.begin(), std::make_move_iterator(first.begin()),
                        std::make_move_iterator(first.end()));
    out.scratch = before + div_up(rows.view.count() * bit_width(rows.dtype), 8);
    return out;
}

} // namespace ingot::kernels
