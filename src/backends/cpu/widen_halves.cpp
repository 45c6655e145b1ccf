// SPDX-License-Identifier: Apache-2.0
// widen_halves: nodes that compute in f16 and bf16 compute in f32, which has fast loops on every
// CPU, and pass f32 to each other. Constants are converted once. The graph's inputs and outputs
// keep their types and values, and so do values that are only moved, or read by ops that depend on
// the rounding (comparisons, casts to integers, quantisation, sorting).
#include "backends/cpu/expr_program.h"
#include "base/thread_pool.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

/// All constants together as f32; products with those beyond read them as they are.
constexpr int64_t most_bytes = int64_t{1} << 30;
constexpr int64_t grain = 1 << 16;

bool moves(const Node& n) {
    return n.def->facts.rounding(n) == Rounding::Moves;
}

bool is_smooth(const Node& n) {
    return n.def->facts.rounding(n) == Rounding::Smooth;
}

/// A map that only converts between floats of up to 32 bits.
bool is_float_cast(const Graph& g, const Node& n) {
    if (!n.is(map_def) || n.inputs.size() != 1) {
        return false;
    }
    auto small = [](DType t) { return t == DType::F32 || is_half(t); };
    const Map& m = n.as<Map>();
    return small(g.type(n.inputs[0]).dtype) && small(m.dtype) &&
           std::all_of(m.body.code.begin(), m.body.code.end(), [&](const ExprInstr& i) {
               return i.op == ExprOp::In || (i.op == ExprOp::Cast && small(i.to));
           });
}

/// Whether the body ends by rounding to `stored`, as a store of its result does anyway.
bool rounds_last(const Expr& e, DType stored) {
    if (e.code.size() < 2) {
        return false;
    }
    const ExprInstr& last = e.code.back();
    auto before = e.code.size() - 2;
    return last.op == ExprOp::Cast && last.to == stored && last.imm == 0 &&
           last.args[0] == static_cast<int32_t>(before) && e.code[before].type == DType::F32;
}

Expr without_last_rounding(Expr e, DType stored) {
    while (rounds_last(e, stored)) {
        e.code.pop_back();
    }
    return e;
}

Tensor widened(const Tensor& t) {
    Tensor out = Tensor::empty(DType::F32, t.shape());
    cpu::MapLoop load = cpu::load_loop(t.dtype());
    float* to = out.as_mutable<float>().data();
    const std::byte* from = t.bytes().data();
    ThreadPool::shared().parallel_for(t.count(), grain, [&](int64_t begin, int64_t end) {
        load(to + begin, from + begin * 2, nullptr, nullptr, end - begin);
    });
    return out;
}

class Widening {
public:
    Widening(const Graph& g, int64_t& bytes)
        : g_(g), r_(g), bytes_(bytes), exact_(g.value_count(), false) {
        for (Value v : g.outputs()) {
            exact_[v.id] = true;
        }
        for (size_t i = g.nodes().size(); i-- > 0;) {
            const Node& n = g.nodes()[i];
            bool passes_on = moves(n) || is_float_cast(g, n);
            bool exact = passes_on ? exact_[n.outputs[0].id] : !is_smooth(n);
            for (Value v : n.inputs) {
                exact_[v.id] = exact_[v.id] || exact;
            }
        }
    }

    Graph run() {
        for (const Node& n : g_.nodes()) {
            if (is_float_cast(g_, n)) {
                convert(n);
            } else if (computes_wide(n)) {
                widen(n);
            } else {
                r_.replace(n, r_.copy(n));
            }
        }
        return r_.finish();
    }

private:
    bool is_half_value(Value v) const { return is_half(g_.type(v).dtype); }
    bool is_wide(Value v) const { return wide_.contains(v.id); }

    /// Whether the node's halves become f32.
    bool computes_wide(const Node& n) {
        bool halves = !n.outputs.empty() && is_half_value(n.outputs[0]);
        if (moves(n)) {
            return halves && std::any_of(n.inputs.begin(), n.inputs.end(),
                                         [this](Value v) { return is_wide(v); });
        }
        if (n.is(map_def)) {
            bool reads = std::any_of(n.inputs.begin(), n.inputs.end(),
                                     [this](Value v) { return is_wide(v); });
            return halves || (reads && is_smooth(n));
        }
        halves = halves || std::any_of(n.inputs.begin(), n.inputs.end(),
                                       [this](Value v) { return is_half_value(v); });
        return is_smooth(n) && halves && constants_fit(n);
    }

    /// Counts the constants of a node that are not yet f32, if there is room for them.
    bool constants_fit(const Node& n) {
        int64_t more = 0;
        for (Value v : n.inputs) {
            const Tensor* t = is_half_value(v) && !is_wide(v) ? g_.constant(v) : nullptr;
            more += t == nullptr ? 0 : t->count() * 4;
        }
        if (bytes_ + more > most_bytes) {
            return false;
        }
        bytes_ += more;
        return true;
    }

    /// The value in f32.
    Value wide(Value old) {
        auto [at, fresh] = wide_.try_emplace(old.id);
        if (fresh) {
            const Tensor* t = g_.constant(old);
            at->second = t != nullptr ? ops::constant(r_.out(), widened(*t))
                                      : ops::cast(r_.out(), r_.mapped(old), DType::F32);
        }
        return at->second;
    }

    /// Says that `values`, in f32, are what the node's are now; others find them rounded.
    void replace(const Node& n, Values values) {
        for (size_t i = 0; i < values.size(); ++i) {
            Value old = n.outputs[i];
            if (is_half_value(old)) {
                wide_[old.id] = values[i];
                r_.out().set_origin(n.name);
                values[i] = ops::cast(r_.out(), values[i], g_.type(old).dtype);
            }
        }
        r_.replace(n, values);
    }

    void convert(const Node& n) {
        Value from = n.inputs[0];
        Value to = n.outputs[0];
        bool narrows = is_half_value(to);
        const Map& m = n.as<Map>();
        bool rounds = without_last_rounding(m.body, m.dtype).code.size() > 1;
        if (rounds || (is_half_value(from) && is_half_value(to)) ||
            (!narrows && (exact_[to.id] || !is_wide(from)))) {
            r_.replace(n, r_.copy(n));
        } else {
            replace(n, {narrows ? r_.mapped(from) : wide(from)});
        }
    }

    void widen(const Node& n) {
        Values in = r_.mapped(n.inputs);
        bool map = n.is(map_def);
        bool rounded = map && !is_smooth(n);
        bool constants = map && !rounded && constants_fit(n);
        for (size_t k = 0; k < in.size(); ++k) {
            Value old = n.inputs[k];
            // A map reads halves as well as f32.
            bool reads = !map || is_wide(old) || (constants && g_.constant(old) != nullptr);
            if (is_half_value(old) && reads && !rounded) {
                in[k] = wide(old);
            }
        }
        AttrMap attributes;
        attributes.dtype = [](DType t) { return is_half(t) ? DType::F32 : t; };
        DType stored = g_.type(n.outputs[0]).dtype;
        if (map && is_half(stored)) {
            attributes.expr = [stored](const Expr& e) { return without_last_rounding(e, stored); };
        }
        r_.out().set_origin(n.name);
        replace(n, r_.out().add(*n.def, map_attrs(*n.def, n.attrs.get(), attributes), in));
    }

    const Graph& g_;
    Rewriter r_;
    int64_t& bytes_;
    std::vector<bool> exact_; // a reader must find the value rounded
    std::map<uint32_t, Value> wide_;
};

Graph widened(const Graph& g) {
    int64_t bytes = 0;
    return dead_code(
        rewrite_all(g, [&bytes](const Graph& part) { return Widening(part, bytes).run(); }));
}

} // namespace

Pass widen_halves(const KernelSet&) {
    return {
        .name = "widen_halves",
        .summary = "f16 and bf16 between nodes become f32",
        .run = [](const Graph& g, const PassOptions&) { return widened(g); },
        .handles_bodies = true,
    };
}

} // namespace ingot::plan
