// SPDX-License-Identifier: Apache-2.0
// fold_constants: evaluates nodes whose operands are all constant, within bounds on memory and
// work. Nodes stay that would grow (broadcasts, iota) or that kernels need as they are (dequantised
// weights, random numbers).
#include "base/error.h"
#include "base/interrupt.h"
#include "ir/rewrite.h"
#include "ops/evaluator.h"
#include "passes/fold_plan.h"
#include "passes/passes.h"

#include <unordered_map>

namespace ingot::passes {

namespace {

class Folder {
public:
    Folder(const Graph& g, const PassOptions& o) : g_(g), plan_(g, o), unread_(use_counts(g)) {}

    std::optional<Values> operator()(Rewriter& r, const Node& n) {
        if (!plan_.has(n)) {
            return std::nullopt;
        }
        check_interrupt();
        std::optional<std::vector<Tensor>> results = evaluated(n);
        release_operands(n);
        if (!results) {
            return std::nullopt;
        }
        bool stays = false;
        for (size_t i = 0; i < n.outputs.size(); ++i) {
            made_.emplace(n.outputs[i].id, (*results)[i]);
            stays = stays || plan_.stays(n.outputs[i]);
        }
        if (!stays) {
            return std::nullopt; // nothing that stays will read it
        }
        Values out;
        for (Tensor& t : *results) {
            out.push_back(ops::constant(r.out(), std::move(t)));
        }
        return out;
    }

private:
    const Tensor* tensor(Value v) const {
        auto found = made_.find(v.id);
        return found != made_.end() ? &found->second : g_.constant(v);
    }

    void release_operands(const Node& n) {
        for (Value v : n.inputs) {
            if (--unread_[v.id] == 0 && !plan_.stays(v)) {
                made_.erase(v.id);
            }
        }
    }

    // v in `one`, from what it is made of where it stays as it is; invalid where that is not known.
    Value operand(Graph& one, std::vector<Tensor>& tensors, Value v) const {
        auto add = [&](const Tensor& t) {
            tensors.push_back(t);
            return one.add_input({}, t.type());
        };
        if (const Tensor* t = tensor(v)) {
            return add(*t);
        }
        const Node* p = g_.producer(v);
        if (p == nullptr || !(p->is(broadcast_def) || p->is(map_def))) {
            return {};
        }
        Values in;
        for (Value x : p->inputs) {
            const Tensor* t = tensor(x);
            if (t == nullptr) {
                return {};
            }
            in.push_back(add(*t));
        }
        return one.add(*p->def, p->attrs, in)[0];
    }

    // Runs one node. A node that fails (an index out of range) stays, and fails at run time if it
    // runs.
    std::optional<std::vector<Tensor>> evaluated(const Node& n) const {
        Graph one = g_.sibling("fold");
        std::vector<Tensor> tensors;
        Values args;
        for (Value v : n.inputs) {
            args.push_back(operand(one, tensors, v));
            if (!args.back().valid()) {
                return std::nullopt;
            }
        }
        for (Value v : one.add(*n.def, n.attrs, args)) {
            one.add_output({}, v);
        }
        try {
            return evaluate(one, tensors);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Interrupted || e.code() == ErrorCode::OutOfMemory) {
                throw;
            }
            return std::nullopt;
        }
    }

    const Graph& g_;
    FoldPlan plan_;
    std::vector<uint32_t> unread_;              // readers that have not run, by value
    std::unordered_map<uint32_t, Tensor> made_; // by value; until the last reader has run
};

} // namespace

const Pass fold_constants = {
    .name = "fold_constants",
    .summary = "evaluate nodes that depend on constants only",
    .run =
        [](const Graph& g, const PassOptions& options) {
            Folder folder(g, options);
            return ingot::dead_code(
                rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value>) {
                    return folder(r, n);
                }));
        },
    .structural = true,
};

} // namespace ingot::passes
