// SPDX-License-Identifier: Apache-2.0
#include "ops/size_bounds.h"

#include "base/checked.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot {

namespace {

constexpr int64_t unbounded = INT64_MAX;

int64_t most(const Dim& d, const Bounds& known) {
    return std::max<int64_t>(d.bounds(known).high, 0);
}

/// The product, unbounded on overflow; 0 when either factor is 0.
int64_t times(int64_t a, int64_t b) {
    return a == 0 || b == 0 ? 0 : checked_mul(a, b).value_or(unbounded);
}

/// Upper bound of an integer scalar known at compile time.
int64_t most_of_scalar(const Graph& g, Value v, const Bounds& known) {
    std::optional<Dims> dims = ops::known_dims(g, v);
    return dims && dims->size() == 1 ? most((*dims)[0], known) : unbounded;
}

class BoundWalk {
public:
    explicit BoundWalk(Bounds known) : known_(std::move(known)) {}
    Bounds& known() { return known_; }

    void graph(const Graph& g) {
        for (const Node& n : g.nodes()) {
            node(g, n);
        }
    }

private:
    void node(const Graph& g, const Node& n) {
        if (n.is(nonzero_def)) {
            int64_t elements = 1;
            for (const Dim& d : g.type(n.inputs[0]).dims) {
                elements = times(elements, most(d, known_));
            }
            set(n.as<NonZero>().count, elements);
        } else if (n.is(nms_def)) {
            const Dims& scores = g.type(n.inputs[1]).dims; // batches, classes, boxes
            int64_t boxes =
                std::min(most(scores[2], known_), most_of_scalar(g, n.inputs[2], known_));
            set(n.as<Nms>().count,
                times(times(most(scores[0], known_), most(scores[1], known_)), boxes));
        } else if (n.is(loop_def)) {
            set(n.as<Loop>().count, most_of_scalar(g, n.inputs[0], known_));
        } else if (n.is(if_def)) {
            const If& a = n.as<If>();
            branch(g, n, *a.then_body, false);
            branch(g, n, *a.else_body, true);
        }
    }

    void set(const Dim& symbol, int64_t high) {
        std::string name(symbol.symbol_name());
        if (!name.empty() && high != unbounded) {
            known_.try_emplace(name, Interval{0, high});
        }
    }

    /// The sizes of an If's results are those of either branch.
    void branch(const Graph& g, const Node& n, const Graph& body, bool second) {
        BoundWalk inner(known_);
        for (size_t i = 0; i < body.inputs().size(); ++i) {
            const Dims& inside = body.type(body.inputs()[i]).dims;
            const Dims& outside = g.type(n.inputs[i + 1]).dims;
            for (size_t d = 0; d < inside.size(); ++d) {
                inner.set(inside[d], most(outside[d], known_));
            }
        }
        inner.graph(body);
        for (size_t i = 0; i < n.outputs.size(); ++i) {
            const Dims& sizes = g.type(n.outputs[i]).dims;
            for (size_t d = 0; d < sizes.size(); ++d) {
                join(sizes[d], most(body.type(body.outputs()[i]).dims[d], inner.known_), second);
            }
        }
    }

    /// The first branch sets unset bounds; the second widens them.
    void join(const Dim& symbol, int64_t high, bool second) {
        std::string name(symbol.symbol_name());
        if (name.empty()) {
            return;
        }
        if (!second && !known_.contains(name)) {
            joined_.insert(name);
            set(symbol, high);
            return;
        }
        auto it = known_.find(name);
        if (!second || !joined_.contains(name) || it == known_.end()) {
            return;
        }
        if (high == unbounded) {
            known_.erase(it);
        } else {
            it->second.high = std::max(it->second.high, high);
        }
    }

    Bounds known_;
    std::set<std::string, std::less<>> joined_; // symbols of If results
};

} // namespace

Bounds size_bounds(const Graph& g, Bounds known) {
    BoundWalk walk(std::move(known));
    walk.graph(g);
    return std::move(walk.known());
}

} // namespace ingot
