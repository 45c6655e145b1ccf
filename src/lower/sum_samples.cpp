// SPDX-License-Identifier: Apache-2.0
// sum_samples: samples of one or more images, joined along the last axis of their grids, times
// weights and summed over that axis, become one node where a kernel runs them: deformable
// attention. No sample is written.
#include "base/log.h"
#include "ir/rewrite.h"
#include "lower/group_inputs.h"
#include "lower/lowering.h"
#include "lower/users.h"
#include "ops/grid_sample.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

/// A weighted sum in the old graph.
struct WeightedSum {
    std::vector<const Node*> samples;
    const Node* product = nullptr;
    size_t sampled = 0; // the product's operand
    const Node* sum = nullptr;
    const Node* map = nullptr; // of the sum alone; may be null
};

class Summer {
public:
    Summer(const Graph& g, const KernelSet& kernels)
        : g_(g), kernels_(kernels), readers_(use_counts(g)), users_(users_of(g)) {}

    std::optional<Values> fuse(Rewriter& r, const Node& n) const {
        const Node* map = n.is(map_def) && n.inputs.size() == 1 ? &n : nullptr;
        const Node* sum = map != nullptr ? made_by(n.inputs[0], reduce_def) : &n;
        if (sum == nullptr || !sum->is(reduce_def) || (map == nullptr && behind(*sum) != nullptr)) {
            return std::nullopt;
        }
        std::optional<WeightedSum> found = weighted_sum(*sum);
        if (!found) {
            return std::nullopt;
        }
        found->map = map;
        return joined(r, *found);
    }

private:
    /// The node of that op that makes v, if v has one reader.
    const Node* made_by(Value v, const OpDef& def) const {
        const Node* p = g_.producer(v);
        return p != nullptr && p->is(def) && readers_[v.id] == 1 ? p : nullptr;
    }

    /// The map that alone reads the sum and nothing else.
    const Node* behind(const Node& sum) const {
        Value v = sum.outputs[0];
        const auto& users = users_[v.id];
        bool one = readers_[v.id] == 1 && users.size() == 1;
        return one && users[0]->is(map_def) && users[0]->inputs.size() == 1 ? users[0] : nullptr;
    }

    /// The samples that v joins along its last axis, as a concatenation along it, or along an axis
    /// of its own before it; empty: none.
    std::vector<const Node*> samples_of(Value v) const {
        if (const Node* one = made_by(v, ops::grid_sample_def)) {
            return {one};
        }
        const Node* view = made_by(v, reshape_def);
        const Node* concat = made_by(view != nullptr ? view->inputs[0] : v, concat_def);
        if (concat == nullptr) {
            return {};
        }
        std::vector<const Node*> out;
        for (Value part : concat->inputs) {
            const Node* own = view != nullptr ? made_by(part, reshape_def) : nullptr;
            const Node* sample =
                view != nullptr && own == nullptr
                    ? nullptr
                    : made_by(own != nullptr ? own->inputs[0] : part, ops::grid_sample_def);
            if (sample == nullptr || !fits(*concat, *sample, v, own)) {
                return {};
            }
            out.push_back(sample);
        }
        return out;
    }

    /// Whether the concatenation puts the sample's last axis beside those of the others in v.
    bool fits(const Node& concat, const Node& sample, Value v, const Node* own) const {
        Dims dims = g_.type(sample.outputs[0]).dims;
        const Dims& whole = g_.type(v).dims;
        auto last = static_cast<int64_t>(dims.size()) - 1;
        bool alike =
            whole.size() == dims.size() && std::equal(dims.begin(), dims.end() - 1, whole.begin());
        if (own != nullptr) {
            dims.insert(dims.end() - 1, Dim(1));
            alike = alike && g_.type(own->outputs[0]).dims == dims;
        }
        return alike && concat.as<Concat>().axis == last;
    }

    std::optional<WeightedSum> weighted_sum(const Node& sum) const {
        WeightedSum out;
        out.sum = &sum;
        out.product = made_by(sum.inputs[0], map_def);
        if (out.product == nullptr || out.product->inputs.size() != 2) {
            return std::nullopt;
        }
        for (out.sampled = 0; out.sampled < 2; ++out.sampled) {
            out.samples = samples_of(out.product->inputs[out.sampled]);
            if (!out.samples.empty()) {
                return out;
            }
        }
        return std::nullopt;
    }

    std::optional<Values> joined(Rewriter& r, const WeightedSum& w) const {
        Graph body = r.out().sibling("group");
        GroupInputs inputs(body, r.out());
        std::vector<std::array<Value, 2>> operands;
        for (const Node* n : w.samples) {
            operands.push_back(
                {inputs.of(r.mapped(n->inputs[0])), inputs.of(r.mapped(n->inputs[1]))});
        }
        Value weights = inputs.of(r.mapped(w.product->inputs[1 - w.sampled]));
        std::vector<Value> samples;
        for (size_t i = 0; i < operands.size(); ++i) {
            body.set_origin(w.samples[i]->name);
            samples.push_back(body.add(*w.samples[i]->def, w.samples[i]->attrs, operands[i])[0]);
        }
        Value all = samples[0];
        if (samples.size() > 1) {
            all = ops::concat(body, samples, int64_t{body.type(all).rank()} - 1);
        }
        std::array<Value, 2> factors{all, weights};
        if (w.sampled == 1) {
            std::swap(factors[0], factors[1]);
        }
        body.set_origin(w.product->name);
        Value v = body.add(map_def, w.product->attrs, factors)[0];
        for (const Node* n : {w.sum, w.map}) {
            if (n != nullptr) {
                body.set_origin(n->name);
                v = body.add(*n->def, n->attrs, Values{v})[0];
            }
        }
        body.add_output("", v);
        Group group{body, body.nodes(), body.inputs(), body.outputs()};
        std::string reason;
        if (kernels_.find(ops::grid_sample_def.name, group, &reason) == nullptr) {
            log(LogLevel::Verbose, kernels_.backend, ": '", w.sum->name,
                "' stays apart from the samples that it adds up: ", reason);
            return std::nullopt;
        }
        r.out().set_origin(w.samples[0]->name + " + " + w.sum->name);
        Values outside = inputs.values();
        auto shared = std::make_shared<const Graph>(std::move(body));
        return r.out().add(fused_def, Fused{std::string(ops::grid_sample_def.name), shared},
                           outside);
    }

    const Graph& g_;
    const KernelSet& kernels_;
    std::vector<uint32_t> readers_;
    Users users_;
};

Graph summed(const Graph& g, const KernelSet& kernels) {
    Summer summer(g, kernels);
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value>) { return summer.fuse(r, n); }));
}

} // namespace

Pass sum_samples(const KernelSet& kernels) {
    return {
        .name = "sum_samples",
        .summary = "weighted sums of an image's samples are one node with them",
        .run = [&kernels](const Graph& g, const PassOptions&) { return summed(g, kernels); },
    };
}

} // namespace ingot::plan
