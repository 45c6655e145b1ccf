// SPDX-License-Identifier: Apache-2.0
// precision: converts a graph from f32 to f16 or bf16. Weights and activations become narrow;
// operations that need more bits stay in f32: positions and other numbers made from integers, sums
// over axes and values computed from them alone, parameters of norms. Inputs and outputs keep their
// types. Composites compute their delicate parts in f32 themselves. Nodes between fences stay in
// f32, and so do products by matrices of Fourier transforms.
#include "passes/precision.h"

#include "base/interrupt.h"
#include "ops/dft_basis.h"
#include "ops/fence.h"
#include "passes/passes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::passes {

namespace {

constexpr int64_t numbers_between_checks = int64_t{1} << 20;

double largest(DType t) {
    return t == DType::F16 ? 65504.0 : 3.3895313892515355e38;
}

// f32 -> narrow; finite numbers stay finite.
Tensor narrowed(const Tensor& t, DType to) {
    Tensor out = Tensor::empty(to, t.shape());
    const float* from = t.as<float>().data();
    uint16_t* bits = out.as_mutable<uint16_t>().data();
    auto limit = static_cast<float>(largest(to));
    for (int64_t i = 0; i < t.count(); ++i) {
        if (i % numbers_between_checks == 0) {
            check_interrupt();
        }
        float v = std::isinf(from[i]) ? from[i] : std::clamp(from[i], -limit, limit);
        bits[i] = to == DType::F16 ? f16_from_f32(v) : bf16_from_f32(v);
    }
    return out;
}

bool is_f32(const Graph& g, Value v) {
    return g.type(v).dtype == DType::F32;
}

// Whether the op, and nodes that serve it alone, compute in f32.
bool is_delicate(const Graph& g, const Node& n) {
    return n.def->facts.in_half(g, n) == InHalf::Wide;
}

const OperandTypes& operand_types(const Node& n) {
    return n.def->facts.operands;
}

/// By value: whether it is computed between an opening and a closing fence.
std::vector<bool> fenced_in(const Graph& g) {
    std::vector<bool> held(g.value_count(), false);
    for (const Node& n : g.nodes()) {
        bool inside = n.is(ops::fence_def) && n.as<ops::Fence>().opens;
        for (Value v : n.inputs) {
            inside = inside || (held[v.id] && !n.is(ops::fence_def));
        }
        for (Value v : n.outputs) {
            held[v.id] = inside;
        }
    }
    return held;
}

std::vector<uint32_t> delicate_use_counts(const Graph& g) {
    std::vector<uint32_t> counts(g.value_count());
    for (const Node& n : g.nodes()) {
        for (Value v : n.inputs) {
            counts[v.id] += is_delicate(g, n) ? 1 : 0;
        }
    }
    return counts;
}

class Narrowing {
public:
    Narrowing(const Graph& g, DType narrow) : g_(g), narrow_(narrow), wide_(g.value_count(), true) {
        std::vector<bool> held = fenced_in(g);
        for (const Node& n : g.nodes()) {
            bool w = (!n.outputs.empty() && held[n.outputs[0].id]) || stays_wide(n);
            for (Value v : n.outputs) {
                wide_[v.id] = w;
            }
        }
        // Maps that feed delicate ops alone compute in f32 too: squares overflow. So do values that
        // are quantised again at once, and computations of scales.
        std::vector<bool> parameter(g.value_count(), false);
        std::vector<uint32_t> uses = use_counts(g);
        std::vector<uint32_t> delicate_uses = delicate_use_counts(g);
        for (size_t i = g.nodes().size(); i-- > 0;) {
            const Node& n = g.nodes()[i];
            for (size_t k = 0; k < n.inputs.size(); ++k) {
                uint32_t v = n.inputs[k].id;
                const Node* p = g.producer(n.inputs[k]);
                if (p == nullptr) {
                    continue;
                }
                bool kept =
                    operand_types(n).keeps(k) || (!n.outputs.empty() && parameter[n.outputs[0].id]);
                parameter[v] = parameter[v] || (kept && can_stay_wide(*p));
                bool feeds = is_delicate(g, n) && p->is(map_def) && delicate_uses[v] == uses[v];
                bool requantized = p->is(ops::dequantize_def) && n.is(ops::quantize_def) && k == 0;
                wide_[v] = wide_[v] || parameter[v] || feeds || requantized;
            }
        }
    }

    /// Values, constants and inputs among them, that are stored or read in the narrow type.
    Values narrow_values() const {
        std::vector<bool> narrow(g_.value_count(), false);
        for (const Node& n : g_.nodes()) {
            bool computes = !n.outputs.empty() && !n.is(ops::fence_def) && !is_wide(n);
            for (Value v : computes ? n.outputs : Values()) {
                narrow[v.id] = true;
            }
            for (size_t k = 0; computes && k < n.inputs.size(); ++k) {
                Value v = n.inputs[k];
                bool as_it_is = operand_types(n).takes_either(k) && g_.constant(v) == nullptr;
                bool kept = operand_types(n).keeps(k) && !operand_types(n).takes_either(k);
                narrow[v.id] = narrow[v.id] || !(as_it_is || kept);
            }
        }
        Values out;
        for (uint32_t id = 0; id < narrow.size(); ++id) {
            if (narrow[id] && is_f32(g_, Value{id})) {
                out.push_back(Value{id});
            }
        }
        return out;
    }

    /// Nodes that make or read these compute in f32.
    void widen(std::span<const Value> values) {
        std::vector<bool> beyond(g_.value_count(), false);
        for (Value v : values) {
            beyond[v.id] = true;
        }
        auto is_beyond = [&](Value v) { return beyond[v.id]; };
        for (const Node& n : g_.nodes()) {
            if (std::any_of(n.inputs.begin(), n.inputs.end(), is_beyond) ||
                std::any_of(n.outputs.begin(), n.outputs.end(), is_beyond)) {
                for (Value v : n.outputs) {
                    wide_[v.id] = true;
                }
            }
        }
    }

    Graph run() {
        Rewriter r(g_);
        for (const Node& n : g_.nodes()) {
            r.out().set_origin(n.name); // conversions for this node are its own
            if (n.is(ops::fence_def)) { // stays in f32 for all readers
                Value v = version(r, n.inputs[0], g_.type(n.inputs[0]).dtype);
                v = ops::fence(r.out(), v, n.as<ops::Fence>().opens);
                now_[n.outputs[0].id] = v;
                r.replace(n, std::array{v});
                continue;
            }
            Values in = operands(r, n);
            Values made = r.out().add(*n.def, attributes(n), in);
            for (size_t i = 0; i < made.size(); ++i) {
                now_[n.outputs[i].id] = made[i];
                made[i] = in_type(r.out(), made[i], g_.type(n.outputs[i]).dtype);
            }
            r.replace(n, made);
        }
        return ingot::dead_code(r.finish());
    }

private:
    // Not ops with weights, whose results are narrow for all readers.
    bool can_stay_wide(const Node& n) const {
        InHalf type = n.def->facts.in_half(g_, n);
        return type == InHalf::AsOperands || type == InHalf::Wide;
    }

    bool stays_wide(const Node& n) const {
        InHalf type = n.def->facts.in_half(g_, n);
        if (type != InHalf::AsOperands) {
            return type != InHalf::Narrow || multiplies_by_dft_basis(g_, n);
        }
        for (Value v : n.inputs) {
            bool variable = is_f32(g_, v) && g_.constant(v) == nullptr;
            bool narrow_input = g_.is_input(v) && g_.type(v).dtype == narrow_;
            if (narrow_input || (variable && (!wide_[v.id] || g_.is_input(v)))) {
                return false;
            }
        }
        return true;
    }

    bool is_wide(const Node& n) const { return wide_[n.outputs[0].id]; }

    static Value in_type(Graph& g, Value v, DType t) { return ops::cast(g, v, t); }

    Values operands(Rewriter& r, const Node& n) {
        Values in = r.mapped(n.inputs);
        for (size_t k = 0; k < in.size(); ++k) {
            Value old = n.inputs[k];
            if (!is_f32(g_, old)) {
                continue;
            }
            // constants are as narrow as the computed operands
            if (operand_types(n).takes_either(k)) {
                bool narrow = !is_wide(n) && g_.constant(old) != nullptr;
                in[k] = narrow ? version(r, old, narrow_) : current(r, old);
            } else if (is_wide(n) || operand_types(n).keeps(k)) {
                in[k] = version(r, old, DType::F32);
            } else {
                in[k] = version(r, old, narrow_);
            }
        }
        return in;
    }

    // The value before conversion to its declared type.
    Value current(Rewriter& r, Value old) {
        auto at = now_.find(old.id);
        return at != now_.end() ? at->second : r.mapped(old);
    }

    Value version(Rewriter& r, Value old, DType t) {
        Value v = current(r, old);
        auto [at, fresh] = versions_.emplace(std::pair(old.id, t), v);
        if (!fresh) {
            return at->second;
        }
        const Tensor* c = r.out().constant(v);
        if (c != nullptr && t == narrow_ && c->dtype() == DType::F32) {
            std::string reader = r.out().origin();
            r.out().set_origin(r.out().producer(v)->name);
            at->second = ops::constant(r.out(), narrowed(*c, t));
            r.out().set_origin(std::move(reader));
        } else {
            at->second = ops::cast(r.out(), v, t);
        }
        return at->second;
    }

    std::shared_ptr<const void> attributes(const Node& n) const {
        bool any = false;
        for (Value v : n.outputs) {
            any = any || is_f32(g_, v);
        }
        bool own = operand_types(n).keeps(0); // then attributes refer to these types
        if (!any || is_wide(n) || own) {
            return n.attrs;
        }
        AttrMap map;
        map.dtype = [this](DType t) { return t == DType::F32 ? narrow_ : t; };
        return map_attrs(*n.def, n.attrs.get(), map);
    }

    const Graph& g_;
    DType narrow_;
    std::vector<bool> wide_;
    std::map<uint32_t, Value> now_;
    std::map<std::pair<uint32_t, DType>, Value> versions_;
};

} // namespace

const Pass precision = {
    .name = "precision",
    .summary = "convert f32 to the 16-bit type that was asked for",
    .run =
        [](const Graph& g, const PassOptions& options) {
            return options.precision ? Narrowing(g, *options.precision).run() : g;
        },
};

Pass precision_within(BeyondNarrow beyond) {
    Pass out = precision;
    out.run = [beyond = std::move(beyond)](const Graph& g, const PassOptions& options) {
        if (!options.precision) {
            return g;
        }
        Narrowing narrowing(g, *options.precision);
        narrowing.widen(beyond(g, narrowing.narrow_values()));
        return narrowing.run();
    };
    return out;
}

} // namespace ingot::passes
