// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/with_moments.h"

#include "kernels/common/stored_moments.h"
#include "ops/row_moments.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

const Node& moments_of(const Group& group) {
    return group.nodes.back();
}

Group product_group(const Group& whole) {
    return {whole.graph, whole.nodes.first(whole.nodes.size() - 1), whole.inputs,
            whole.outputs.first(1)};
}

Group moments_group(const Group& whole) {
    const Node& n = moments_of(whole);
    return {whole.graph, whole.nodes.last(1), n.inputs, n.outputs};
}

Problem product_problem(const Problem& p, const Group& product) {
    return {product,     p.symbols, p.in,   p.out.first(1),
            p.constants, p.arch,    p.tf32, p.batch_invariant};
}

const Family& moments_family() {
    return family_of(ops::row_moments_def.name);
}

/// The moments alone, of the product's result.
struct Apart {
    Emitted emitted;
    double cost_us = 0;

    explicit Apart(const Problem& p) {
        Group group = moments_group(p.group);
        const std::byte* no_constant = nullptr;
        Problem own{group,  p.symbols, p.out.first(1),   p.out.last(1), std::span(&no_constant, 1),
                    p.arch, p.tf32,    p.batch_invariant};
        Tactic t = moments_family().tactics(own).front();
        cost_us = t.cost_us;
        emitted = moments_family().emit(own, t);
    }
};

} // namespace

bool has_moments(const Group& group) {
    return group.nodes.size() > 1 && moments_of(group).is(ops::row_moments_def);
}

std::optional<std::string> refuse_moments(const Group& group, const ProductWithMoments& f) {
    const Node& n = moments_of(group);
    if (group.outputs.size() != 2 || group.outputs[0] != n.inputs[0] ||
        group.outputs[1] != n.outputs[0] || group.nodes.size() < 2 ||
        group.nodes[group.nodes.size() - 2].outputs[0] != n.inputs[0]) {
        return "the results are not those of a product and their moments";
    }
    if (auto reason = moments_family().refuse(moments_group(group))) {
        return reason;
    }
    return f.refuse(product_group(group));
}

/// The moments in the order of their rows.
void layout_moments(LayoutArgs& args, const ProductWithMoments& f) {
    Group product = product_group(args.group);
    LayoutArgs own{product,           args.symbols, args.in,
                   args.out.first(1), args.want,    args.order.first(1)};
    f.layout(own);
    int rank = static_cast<int>(args.out[0].size());
    if (args.order[0].back() != rank - 1) {
        args.order[0] = plan::row_major(rank);
    }
    args.order[1] = args.order[0];
    args.order[1].push_back(rank);
}

std::vector<Tactic> moments_tactics(const Problem& p, const ProductWithMoments& f) {
    // An estimate: exchanges between threads and a store for each 32 columns of a row.
    constexpr double both_us = 0.15;
    Group group = product_group(p.group);
    Problem product = product_problem(p, group);
    std::vector<Tactic> all = f.tactics(product);
    if (!are_stored(p.out[1], p.batch_invariant)) {
        return all;
    }
    double apart_us = Apart(p).cost_us;
    std::vector<char> both = f.stores_both(product, p.out[1], all);
    for (size_t i = 0; i < all.size(); ++i) {
        all[i].cost_us += both[i] != 0 ? both_us : apart_us;
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    return all;
}

Emitted emit_moments(const Problem& p, const Tactic& t, const ProductWithMoments& f) {
    Group group = product_group(p.group);
    Problem product = product_problem(p, group);
    if (!are_stored(p.out[1], p.batch_invariant)) {
        return f.emit(product, t);
    }
    if (f.stores_both(product, p.out[1], {&t, 1})[0] != 0) {
        return f.emit_both(product, p.out[1], t);
    }
    Emitted e = f.emit(product, t);
    std::vector<Launch> last = Apart(p).emitted.launches;
    e.launches.insert(e.launches.end(), std::make_move_iterator(last.begin()),
                      std::make_move_iterator(last.end()));
    return e;
}

} // namespace ingot::kernels
