// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/normed.h"

#include "base/error.h"
#include "base/integers.h"
#include "kernels/common/stored_moments.h"
#include "ops/ops.h"
#include "ops/row_moments.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

/// The nodes after the norm, with the norm's result as one more input; their result is the first
/// one.
class ProductGroup {
public:
    explicit ProductGroup(const Group& whole)
        : inputs_(whole.inputs.begin(), whole.inputs.end()), group_{whole.graph,
                                                                    whole.nodes.subspan(1),
                                                                    {},
                                                                    whole.outputs.first(1)} {
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

/// The family that runs the norm alone.
const Family& norm_family(const Group& whole) {
    return family_of(whole.first().def->name);
}

/// The product of a group, with its rows at `rows`.
class Product {
public:
    Product(const Problem& p, const Operand& rows)
        : group_(p.group), in_(p.in.begin(), p.in.end()),
          constants_(p.constants.begin(), p.constants.end()), p_(p) {
        in_.push_back(rows);
        constants_.push_back(nullptr);
    }
    Problem problem() const {
        return {group_.group(),     p_.symbols,  in_, p_.out.first(1), constants_, p_.arch, p_.tf32,
                p_.batch_invariant, p_.backwards};
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

/// The layout of the rows once they are normalised: dense, in the order in which they lie.
View normed_view(const View& rows) {
    return rows.strides.back() == 1 || rows.shape.back() == 1
               ? plan::dense(rows.shape, plan::stride_order(rows))
               : plan::dense(rows.shape);
}

/// Whether the group leaves the normalised rows as a second result, for has_residual's groups.
bool leaves_rows(const Group& group) {
    return !has_residual(group) && group.outputs.size() == 2;
}

/// The rows once they are normalised: the second result, or in scratch memory.
Operand between(const Problem& p, int64_t bytes_before) {
    if (leaves_rows(p.group)) {
        return p.out[1];
    }
    const Operand& x = rows_of(p);
    Operand o{x.dtype, in_scratch, normed_view(x.view)};
    o.view.offset = bytes_before * 8 / bit_width(x.dtype);
    return o;
}

/// The norm alone, writing to `result`.
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
        const Family& family = norm_family(p.group);
        for (const Tactic& t : family.tactics(own)) {
            emitted_ = family.emit(own, t);
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
    RowNorm r;
    if (n.is(ops::moment_norm_def)) {
        r.epsilon = n.as<ops::MomentNorm>().epsilon;
        r.moments = p.operand(n.inputs[1]);
        return r;
    }
    const auto& a = n.as<ops::LayerNorm>();
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
/// Prefix of tactics that normalise in a separate launch.
constexpr std::string_view apart_prefix = "norm_";

const std::vector<int64_t>* contracted_of(const Node& product) {
    return product.is(dot_def)                  ? &product.as<Dot>().a_contract
           : product.is(ops::quantized_dot_def) ? &product.as<ops::QuantizedDot>().a_contract
                                                : nullptr;
}

/// Whether the product and the residual behind it take the moments of their rows; else the one
/// leaves the normalised rows, and the other reads them.
bool take_moments(const Problem& p) {
    const Node& norm = p.group.first();
    return p.arch.has_wgmma() && norm.is(ops::moment_norm_def) &&
           are_stored(p.operand(norm.inputs[1]), p.batch_invariant);
}

std::optional<std::string> refuse_residual(const Group& group, const NormedProduct& product) {
    const Node& norm = group.first();
    Value result = norm.outputs[0];
    const Node& map = group.nodes.back();
    bool alone = group.outputs.size() == 1 && group.nodes.size() == 3 && map.is(map_def) &&
                 std::count(map.inputs.begin(), map.inputs.end(), result) == 1 &&
                 std::count(map.inputs.begin(), map.inputs.end(), norm.inputs[0]) == 0;
    if (!alone ||
        std::count(group.nodes[1].inputs.begin(), group.nodes[1].inputs.end(), result) > 0 ||
        group.graph.type(result).dims != group.graph.type(map.outputs[0]).dims) {
        return "the norm's result is not read by the map behind one product alone, row by row";
    }
    if (auto reason = norm_family(group).refuse(norm_group(group))) {
        return reason;
    }
    return product.refuse(ProductGroup(group).group());
}

std::optional<std::string> refuse_normed(const Group& group, const NormedProduct& product) {
    if (has_residual(group)) {
        return refuse_residual(group, product);
    }
    const Node& norm = group.first();
    if (group.outputs.size() > 1 && (group.outputs.size() > 2 || !norm.is(ops::moment_norm_def) ||
                                     group.outputs[1] != norm.outputs[0])) {
        return "the second result is not the rows normalised by their moments";
    }
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
    int64_t axis = norm.is(ops::layer_norm_def) ? norm.as<ops::LayerNorm>().axis : last;
    if ((axis < 0 ? axis + last + 1 : axis) != last || *contracted != std::vector<int64_t>{last}) {
        return "the norm's axes are not those of the sums";
    }
    if (auto reason = norm_family(group).refuse(norm_group(group))) {
        return reason;
    }
    return product.refuse(ProductGroup(group).group());
}

void layout_normed(LayoutArgs& args, const NormedProduct& product) {
    ProductGroup rest(args.group);
    auto x = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    std::vector<View> in(args.in.begin(), args.in.end());
    bool residual = has_residual(args.group);
    if (residual) {
        auto left = static_cast<size_t>(args.group.input_index(args.group.first().inputs[2]));
        in.push_back(args.in[left]);
    } else {
        in.push_back(normed_view(args.in[x]));
    }
    std::vector<std::optional<Order>> want(in.size());
    LayoutArgs own{rest.group(), args.symbols, in, args.out.first(1), want, args.order.first(1)};
    product.layout(own);
    std::copy(want.begin(), want.end() - 1, args.want.begin());
    if (leaves_rows(args.group)) {
        args.order[1] = plan::stride_order(in.back());
    }
    if (!residual && args.in[x].strides.back() != 1 && args.in[x].shape.back() != 1) {
        args.want[x] = plan::row_major(args.in[x].rank());
    }
}

/// The normalised rows that another group has left.
const Operand& left_rows(const Problem& p) {
    return p.operand(p.group.first().inputs[2]);
}

std::vector<Tactic> normed_tactics(const Problem& p, const NormedProduct& product) {
    if (reads_left_rows(p)) {
        return product.tactics(Product(p, left_rows(p)).problem());
    }
    Product apart(p, between(p, 0));
    double norm_us = Norm(p, between(p, 0)).cost_us();
    std::vector<Tactic> all = product.tactics(apart.problem());
    for (Tactic& t : all) {
        t.name.insert(0, apart_prefix);
        t.cost_us += norm_us;
    }
    if (p.batch_invariant || (leaves_rows(p.group) && !take_moments(p))) {
        return all;
    }
    Product inside(p, rows_of(p));
    product.add_inside(all, inside.problem(), row_norm(p));
    std::stable_sort(all.begin(), all.end(), cheaper);
    return all;
}

/// The norm's launches, then those of the product.
Emitted emit_apart(const Problem& p, const Tactic& t, const NormedProduct& product) {
    const bool in_result = leaves_rows(p.group);
    // The product's own scratch memory comes first.
    int64_t before = 0;
    Emitted out;
    for (int i = 0; i < 2; ++i) {
        Product apart(p, between(p, before));
        out = product.emit(apart.problem(), t);
        if (in_result || out.scratch <= before) {
            break;
        }
        before = round_up(out.scratch, scratch_step);
    }
    Operand rows = between(p, before);
    Norm norm(p, rows);
    std::vector<Launch>& first = norm.launches();
    out.launches.insert(out.launches.begin(), std::make_move_iterator(first.begin()),
                        std::make_move_iterator(first.end()));
    if (!in_result) {
        out.scratch = before + div_up(rows.view.count() * bit_width(rows.dtype), 8);
    }
    return out;
}

} // namespace

int norm_define(const RowNorm* norm) {
    return norm == nullptr ? 0 : norm->rms ? 3 : 2;
}

void add_norm_args(Args& args, const RowNorm* norm) {
    for (size_t i = 0; i < 2; ++i) {
        if (norm != nullptr && i < norm->vectors.size()) {
            args.pointer(norm->vectors[i]);
        } else {
            args.null();
        }
    }
    args.f32(norm == nullptr ? 0 : norm->epsilon);
}

bool RowNorm::reads_vectors(int64_t n) const {
    return std::all_of(vectors.begin(), vectors.end(), [n](const Operand& o) {
        Shape outer = o.view.strides;
        outer.pop_back();
        return o.view.strides.back() == 1 && o.view.offset % n == 0 && bit_width(o.dtype) <= 32 &&
               is_float(o.dtype) &&
               std::all_of(outer.begin(), outer.end(), [](int64_t s) { return s == 0; });
    });
}

void before_norm(const Problem& p,
                 const std::function<void(const Problem& product, const RowNorm& norm)>& f) {
    Product inside(p, rows_of(p));
    f(inside.problem(), row_norm(p));
}

bool has_residual(const Group& group) {
    return group.first().is(ops::moment_norm_def) && group.first().inputs.size() == 3 &&
           group.nodes.size() > 1;
}

bool reads_left_rows(const Problem& p) {
    return has_residual(p.group) && !take_moments(p);
}

Contraction residual_contraction(const Problem& p) {
    return contraction_of(Product(p, reads_left_rows(p) ? left_rows(p) : rows_of(p)).problem());
}

bool has_norm(const Group& group) {
    const Node& n = group.first();
    return (n.is(ops::layer_norm_def) || n.is(ops::moment_norm_def)) && group.nodes.size() > 1;
}

std::optional<std::string> refuse_with_norm(const Group& group, const NormedProduct& product) {
    return has_norm(group) ? refuse_normed(group, product) : product.refuse(group);
}

void layout_with_norm(LayoutArgs& args, const NormedProduct& product) {
    if (has_norm(args.group)) {
        layout_normed(args, product);
    } else {
        product.layout(args);
    }
}

std::vector<Tactic> tactics_with_norm(const Problem& p, const NormedProduct& product) {
    return has_norm(p.group) ? normed_tactics(p, product) : product.tactics(p);
}

Emitted emit_with_norm(const Problem& p, const Tactic& t, const NormedProduct& product) {
    if (!has_norm(p.group)) {
        return product.emit(p, t);
    }
    if (reads_left_rows(p)) {
        return product.emit(Product(p, left_rows(p)).problem(), t);
    }
    Product inside(p, rows_of(p));
    std::optional<Emitted> e = product.emit_inside(inside.problem(), row_norm(p), t);
    return e ? std::move(*e) : emit_apart(p, t, product);
}

} // namespace ingot::kernels
