// SPDX-License-Identifier: Apache-2.0
// fuse_halves: a map of the two halves of a product's columns (a gated linear unit: the activation
// of one half times the other) becomes part of the product's kernel, which then writes half as
// much. Maps of the whole product before it, such as a bias, are fused too.
#include "base/log.h"
#include "ir/rewrite.h"
#include "lower/canonical.h"
#include "lower/lowering.h"
#include "lower/map_builder.h"
#include "ops/ops.h"
#include "plan/kernel.h"
#include "plan/views.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr size_t most_inputs = 12;
constexpr size_t most_instructions = 160;

/// Which half of its operand's last axis a slice is; nullopt for other slices.
std::optional<int> half_of(const Graph& g, const Node& n) {
    const auto& s = n.as<Slice>();
    Dims sizes = g.type(n.inputs[0]).dims;
    if (sizes.empty() || !sizes.back().is_const() || sizes.back().value() % 2 != 0) {
        return std::nullopt;
    }
    Dim half = sizes.back().value() / 2;
    Dims starts(sizes.size(), Dim(0));
    sizes.back() = half;
    bool plain = s.sizes == sizes && std::all_of(s.steps.begin(), s.steps.end(),
                                                 [](int64_t step) { return step == 1; });
    if (!plain || half.is_const(0)) {
        return std::nullopt;
    }
    if (s.starts == starts) {
        return 0;
    }
    starts.back() = half;
    return s.starts == starts ? std::optional(1) : std::nullopt;
}

bool is_row_or_scalar(const Dims& d, const Dim& last) {
    bool leading_ones = std::all_of(d.begin(), d.end() - (d.empty() ? 0 : 1),
                                    [](const Dim& x) { return x.is_const(1); });
    return leading_ones && (d.empty() || d.back().is_const(1) || d.back() == last);
}

/// The pattern before a map of halves, in the graph that is read.
struct Halves {
    std::array<Value, 2> halves;  // as the map reads them
    Value whole;                  // the sliced value
    Value source;                 // `whole` before a reshape, if there is one
    const Node* before = nullptr; // a map of `whole`
    const Node* product = nullptr;
};

/// A group being written; `inputs` are its operands in the outer graph.
struct GroupBuilder {
    const Graph& outer;
    Graph body;
    Values inputs;

    explicit GroupBuilder(const Graph& g) : outer(g), body(g.sibling("group")) {}

    Value input(Value v) {
        auto at = std::find(inputs.begin(), inputs.end(), v);
        if (at != inputs.end()) {
            return body.inputs()[static_cast<size_t>(at - inputs.begin())];
        }
        inputs.push_back(v);
        return body.add_input("", outer.type(v));
    }
    Value add(const Node& n) {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(input(v));
        }
        body.set_origin(n.name);
        return body.add(*n.def, n.attrs, in)[0];
    }
};

class HalvesFuser {
public:
    HalvesFuser(const Graph& g, const KernelSet& kernels)
        : g_(g), kernels_(kernels), uses_(use_counts(g)) {}

    std::optional<Values> rule(Rewriter& r, const Node& n) const {
        std::optional<Halves> h = n.is(map_def) ? halves_before(n) : std::nullopt;
        return h ? fuse(r, n, *h) : std::nullopt;
    }

private:
    bool read_once_by(Value v, const Node& n) const {
        auto times = std::count(n.inputs.begin(), n.inputs.end(), v);
        return uses_[v.id] == static_cast<uint32_t>(times);
    }

    std::optional<Halves> halves_before(const Node& n) const {
        for (Value first : n.inputs) {
            const Node* p = g_.producer(first);
            if (p == nullptr || !p->is(slice_def) || half_of(g_, *p) != 0) {
                continue;
            }
            for (Value second : n.inputs) {
                const Node* q = g_.producer(second);
                bool pair = q != nullptr && q->is(slice_def) && q->inputs[0] == p->inputs[0] &&
                            half_of(g_, *q) == 1 && read_once_by(first, n) &&
                            read_once_by(second, n) && uses_[p->inputs[0].id] == 2;
                Halves h{{first, second}, p->inputs[0], p->inputs[0]};
                if (pair && g_.type(first).dims == g_.type(n.outputs[0]).dims && find_product(h) &&
                    operands_fit(n, h)) {
                    return h;
                }
            }
        }
        return std::nullopt;
    }

    /// Finds the node that produces `whole`, behind a reshape that keeps its last axis and a map.
    bool find_product(Halves& h) const {
        const Node* p = g_.producer(h.whole);
        if (p != nullptr && p->is(reshape_def)) {
            const Dims& from = g_.type(p->inputs[0]).dims;
            if (from.empty() || from.back() != g_.type(h.whole).dims.back() ||
                uses_[p->inputs[0].id] != 1) {
                return false;
            }
            h.source = p->inputs[0];
            p = g_.producer(h.source);
        }
        if (p == nullptr || !p->is(map_def)) {
            h.product = p;
            return is_product(p, h.source);
        }
        h.before = p;
        for (Value v : p->inputs) {
            const Node* q = g_.producer(v);
            if (is_product(q, h.source) && read_once_by(v, *p)) {
                h.product = q;
                return true;
            }
        }
        return false;
    }
    bool is_product(const Node* p, Value whole) const {
        return p != nullptr && p->outputs.size() == 1 && !p->inputs.empty() && !p->is(map_def) &&
               !is_view(g_, *p) && bodies(*p).empty() &&
               g_.type(p->outputs[0]).dims == g_.type(whole).dims;
    }

    /// Whether both maps read their other operands by rows or single elements.
    bool operands_fit(const Node& n, const Halves& h) const {
        const Dim& half = g_.type(h.halves[0]).dims.back();
        bool reshaped = h.source != h.whole;
        return std::all_of(n.inputs.begin(), n.inputs.end(), [&](Value v) {
            return v == h.halves[0] || v == h.halves[1] || !reshaped ||
                   is_row_or_scalar(g_.type(v).dims, half);
        });
    }

    /// An operand of `before`, for one half.
    Value half_operand(Rewriter& r, Value v, const Dim& half, int which) const {
        const Dims& dims = g_.type(v).dims;
        Value now = r.mapped(v);
        return dims.empty() || dims.back().is_const(1)
                   ? now
                   : ops::slice(r.out(), now, static_cast<int64_t>(dims.size()) - 1,
                                which == 0 ? Dim(0) : half, half);
    }

    /// An operand of the map, for halves without the reshape.
    Value operand(Rewriter& r, Value v, const Halves& h) const {
        const Dims& dims = g_.type(v).dims;
        return h.source == h.whole || dims.size() <= 1
                   ? r.mapped(v)
                   : ops::reshape(r.out(), r.mapped(v), {dims.back()});
    }

    std::optional<Values> fuse(Rewriter& r, const Node& n, const Halves& h) const {
        GroupBuilder b(r.out());
        Node product = r.current(*h.product);
        Value whole = b.add(product);
        auto last = static_cast<int64_t>(b.body.type(whole).rank()) - 1;
        const Dim half = g_.type(h.halves[0]).dims.back();
        MapBuilder map{b.body, {}, {}};
        std::array<int, 2> sides{};
        for (int i : {0, 1}) {
            Value part = ops::slice(b.body, whole, last, i == 0 ? Dim(0) : half, half);
            int& side = sides[static_cast<size_t>(i)];
            side = map.input(part);
            std::vector<int> at;
            for (Value v : h.before != nullptr ? h.before->inputs : Values()) {
                at.push_back(v == h.product->outputs[0]
                                 ? side
                                 : map.input(b.input(half_operand(r, v, half, i))));
            }
            side = h.before != nullptr ? map.inline_map(h.before->as<Map>(), at) : side;
        }
        std::vector<int> at;
        for (Value v : n.inputs) {
            at.push_back(v == h.halves[0]   ? sides[0]
                         : v == h.halves[1] ? sides[1]
                                            : map.input(b.input(operand(r, v, h))));
        }
        int result = map.body.inline_expr(n.as<Map>().body, at);
        if (static_cast<size_t>(result) + 1 != map.body.code.size() ||
            map.body.code.size() > most_instructions || map.inputs.size() > most_inputs) {
            return std::nullopt;
        }
        CanonicalExpr c = canonical(map.body, static_cast<int>(map.inputs.size()), -1);
        Values in;
        for (int i : c.inputs) {
            in.push_back(map.inputs[static_cast<size_t>(i)]);
        }
        b.body.set_origin(n.name);
        b.body.add_output("", b.body.add1(map_def, Map{c.body, n.as<Map>().dtype}, in));
        return finish(r, n, *h.product, std::move(b));
    }

    /// The group that replaces the map, if the product's kernel takes it.
    std::optional<Values> finish(Rewriter& r, const Node& n, const Node& product,
                                 GroupBuilder b) const {
        auto body = std::make_shared<const Graph>(std::move(b.body));
        Group group{*body, body->nodes(), body->inputs(), body->outputs()};
        std::string reason = "no kernel of that name";
        if (kernels_.find(product.def->name, group, &reason) == nullptr) {
            log(LogLevel::Verbose, kernels_.backend, ": '", n.name, "' stays apart from '",
                product.name, "' (", product.def->name, "): ", reason);
            return std::nullopt;
        }
        r.out().set_origin(product.name + " + " + n.name);
        Value made = r.out().add1(fused_def, Fused{std::string(product.def->name), body},
                                  std::span<const Value>(b.inputs));
        const Dims& dims = g_.type(n.outputs[0]).dims;
        bool same = r.out().type(made).dims == r.mapped(dims);
        return Values{same ? made : ops::reshape(r.out(), made, r.mapped(dims))};
    }

    const Graph& g_;
    const KernelSet& kernels_;
    std::vector<uint32_t> uses_;
};

Graph fused(const Graph& g, const KernelSet& kernels) {
    HalvesFuser fuser(g, kernels);
    return dead_code(rewrite(g, [&fuser](Rewriter& r, const Node& n, std::span<const Value>) {
        return fuser.rule(r, n);
    }));
}

} // namespace

Pass fuse_halves(const KernelSet& kernels) {
    return {
        .name = "fuse_halves",
        .summary = "maps of the halves of a product become part of its kernel",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); },
        .structural = true,
    };
}

} // namespace ingot::plan
