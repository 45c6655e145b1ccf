// SPDX-License-Identifier: Apache-2.0
#include "workflow/half_range.h"

#include "backends/backends.h"
#include "base/text.h"
#include "engine/engine.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ingot {

namespace {

struct Range {
    double low = 0;
    double high = 0;
};

/// The smallest and the largest finite element of v, or 0: two scalars.
void add_range(Graph& g, Value v, std::string_view name) {
    Value infinity = ops::full(g, DType::F32, {}, std::numeric_limits<double>::infinity());
    Value finite = ops::less(g, ops::unary(g, ExprOp::Abs, v), infinity);
    Value x = ops::select(g, finite, v, ops::full(g, DType::F32, {}, 0));
    std::vector<int64_t> axes(static_cast<size_t>(g.type(v).rank()));
    std::iota(axes.begin(), axes.end(), 0);
    for (bool low : {true, false}) {
        Value y = axes.empty() ? x : ops::reduce(g, low ? "min" : "max", x, axes);
        g.add_output(str(name, low ? " low" : " high"), y);
    }
}

Range range_of(std::span<const float> values) {
    Range r;
    for (float v : values) {
        r.low = std::isfinite(v) ? std::min<double>(r.low, v) : r.low;
        r.high = std::isfinite(v) ? std::max<double>(r.high, v) : r.high;
    }
    return r;
}

/// By value. Errors: those of the runs, with the sample's number.
std::vector<Range> observed(const Graph& g, std::span<const Value> values,
                            const std::vector<std::vector<Tensor>>& samples) {
    std::vector<Range> ranges(g.value_count());
    Graph watched = g;
    Values computed;
    for (Value v : values) {
        if (const Tensor* t = g.constant(v)) {
            ranges[v.id] = range_of(t->as<float>());
        } else if (!samples.empty()) {
            add_range(watched, v, str("range ", v.id));
            computed.push_back(v);
        }
    }
    if (computed.empty()) {
        return ranges;
    }
    Context context(Engine::create(std::move(watched), {}, {}), cpu_backend(), {});
    for (size_t s = 0; s < samples.size(); ++s) {
        std::vector<Tensor> results =
            with_place([&] { return str("sample ", s); }, [&] { return context.run(samples[s]); });
        size_t first = results.size() - 2 * computed.size();
        for (size_t i = 0; i < computed.size(); ++i) {
            Range& r = ranges[computed[i].id];
            r.low = std::min(r.low, results[first + 2 * i].get_f64(0));
            r.high = std::max(r.high, results[first + 2 * i + 1].get_f64(0));
        }
    }
    return ranges;
}

/// Whether a result moves or adds its operands, so that a mask stays one. Constants, which 16 bits
/// hold as their largest number, may be factors too.
bool passes_masks_on(const Node& n, bool constant) {
    if (n.is(reshape_def) || n.is(permute_def) || n.is(broadcast_def) || n.is(slice_def)) {
        return true;
    }
    if (!n.is(map_def)) {
        return false;
    }
    const auto& code = n.as<Map>().body.code;
    return std::all_of(code.begin(), code.end(), [constant](const ExprInstr& i) {
        return (i.op == ExprOp::Mul && constant) || i.op == ExprOp::In || i.op == ExprOp::Const ||
               i.op == ExprOp::Add || i.op == ExprOp::Select || i.op == ExprOp::Min ||
               i.op == ExprOp::Max || i.op == ExprOp::Cast;
    });
}

/// By value: whether a softmax, or an attention, reads it in the end and nothing else does.
std::vector<bool> masks(const Graph& g) {
    std::vector<bool> only(g.value_count(), true);
    std::vector<bool> read(g.value_count(), false);
    for (Value v : g.outputs()) {
        only[v.id] = false;
    }
    for (size_t i = g.nodes().size(); i-- > 0;) {
        const Node& n = g.nodes()[i];
        bool masked = !n.outputs.empty() && only[n.outputs[0].id] && read[n.outputs[0].id];
        for (size_t k = 0; k < n.inputs.size(); ++k) {
            bool passes = masked && passes_masks_on(n, g.constant(n.inputs[k]) != nullptr);
            bool mask_of_attention = n.is(ops::attention_def) && k > 2;
            bool takes = n.is(ops::softmax_def) || mask_of_attention || passes;
            only[n.inputs[k].id] = only[n.inputs[k].id] && takes;
            read[n.inputs[k].id] = true;
        }
    }
    for (size_t i = 0; i < only.size(); ++i) {
        only[i] = only[i] && read[i];
    }
    return only;
}

std::string layer_of(const Graph& g, Value v) {
    if (g.is_input(v)) {
        return str("input '", g.value_name(v), "'");
    }
    if (g.constant(v) == nullptr) {
        return str("'", g.producer(v)->name, "'");
    }
    for (const Node& n : g.nodes()) {
        if (std::find(n.inputs.begin(), n.inputs.end(), v) != n.inputs.end()) {
            return str("a constant of '", n.name, "'");
        }
    }
    return "a constant";
}

} // namespace

std::string listed(std::span<const Overflow> overflows) {
    constexpr size_t most = 5;
    std::vector<std::string> parts;
    for (const Overflow& o : overflows.first(std::min(most, overflows.size()))) {
        char number[32];
        std::snprintf(number, sizeof number, "%.3g", o.magnitude);
        parts.push_back(str(o.layer, " reaches ", number));
    }
    size_t more = overflows.size() - parts.size();
    return str(join(parts, ", "), more > 0 ? str(" and ", more, " more") : "");
}

std::string overflow_warning(std::span<const Overflow> overflows) {
    return str("fp16: layers keep f32 where values pass ", largest_f16,
               ", the largest number of f16: ", listed(overflows));
}

std::vector<Overflow> named_overflows(const Graph& g, std::span<const Value> values,
                                      const std::set<std::string>& layers) {
    std::vector<Overflow> out;
    for (Value v : values) {
        std::string layer = layer_of(g, v);
        if (layers.contains(layer)) {
            out.push_back({v.id, std::move(layer), 0});
        }
    }
    return out;
}

std::vector<Overflow> overflows(const Graph& g, std::span<const Value> values,
                                const ValueRanges& ranges) {
    std::vector<Range> seen = observed(g, values, ranges.samples);
    std::vector<bool> is_mask = masks(g);
    std::vector<Overflow> out;
    for (Value v : values) {
        const float* scale = g.value_name(v).empty() ? nullptr : ranges.cache.find(g.value_name(v));
        double calibrated = scale == nullptr ? 0 : 127.0 * *scale;
        double high = std::max(seen[v.id].high, calibrated);
        double low = is_mask[v.id] ? 0 : -seen[v.id].low;
        if (std::max(high, low) > largest_f16) {
            out.push_back({v.id, layer_of(g, v), std::max(high, low)});
        }
    }
    return out;
}

} // namespace ingot
