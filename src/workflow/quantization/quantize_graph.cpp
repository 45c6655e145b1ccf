// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/quantize_graph.h"

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "workflow/quantization/quantized_weight.h"
#include "workflow/quantization/quantizer_placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace ingot {

namespace {

/// The only free axis of a product's constant, or -1.
int64_t channel_axis(const Graph& g, const Node& n) {
    bool product = n.is(ops::conv_def) || n.is(dot_def);
    const Tensor* w = product ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr || w->dtype() != DType::F32 || g.type(n.inputs[0]).dtype != DType::F32 ||
        g.constant(n.inputs[0]) != nullptr) {
        return -1;
    }
    if (n.is(ops::conv_def)) {
        return 0;
    }
    const auto& d = n.as<Dot>();
    if (!d.b_batch.empty() || static_cast<int>(d.b_contract.size()) + 1 != w->rank()) {
        return -1;
    }
    for (int64_t i = 0; i < w->rank(); ++i) {
        if (std::find(d.b_contract.begin(), d.b_contract.end(), i) == d.b_contract.end()) {
            return i;
        }
    }
    return -1;
}

bool subtracts_or_divides(const Node& n) {
    const auto& code = n.as<Map>().body.code;
    return std::any_of(code.begin(), code.end(), [](const ExprInstr& i) {
        return i.op == ExprOp::Sub || i.op == ExprOp::Div;
    });
}

/// Whether it reduces the last two axes of pictures.
bool reduces_pictures(const Graph& g, const Node& n) {
    return n.is(reduce_def) && g.type(n.inputs[0]).rank() == 4 &&
           n.as<Reduce>().axes == std::vector<int64_t>{2, 3};
}

PlacementRole role_of(const Graph& g, const Node& n, size_t variable) {
    if (channel_axis(g, n) >= 0) {
        return PlacementRole::Product;
    }
    if (variable == 0 || n.outputs.size() != 1 || g.type(n.outputs[0]).dtype != DType::F32) {
        return PlacementRole::Other;
    }
    if (n.is(map_def) && variable > 1) {
        bool norm = subtracts_or_divides(n); // or part of one
        return norm ? PlacementRole::Other : PlacementRole::Join;
    }
    if (n.is(concat_def)) {
        return PlacementRole::Concat;
    }
    if (variable > 1) {
        return PlacementRole::Other;
    }
    bool picks = (n.is(ops::pool_def) && n.as<ops::Pool>().fn == "max") ||
                 (reduces_pictures(g, n) && n.as<Reduce>().fn == "max");
    bool weighs = n.is(ops::pool_def) || n.is(pad_def) || n.is(ops::resize_def) ||
                  (reduces_pictures(g, n) && n.as<Reduce>().fn == "sum");
    return n.is(map_def) || n.is(ops::gelu_def)     ? PlacementRole::Pointwise
           : n.is(reshape_def) || n.is(permute_def) ? PlacementRole::View
           : picks                                  ? PlacementRole::Maximum
           : weighs                                 ? PlacementRole::Window
                                                    : PlacementRole::Other;
}

class GraphQuantizer {
public:
    GraphQuantizer(const Graph& g, const CalibrationCache& cache, QuantizeReport& report)
        : g_(g), report_(report), r_(g), narrow_(g.value_count()) {
        sketch(cache);
        scales_ = assign_scales(sketch_);
    }

    Graph run() {
        for (Value v : g_.inputs()) {
            quantise(v);
        }
        for (size_t i = 0; i < g_.nodes().size(); ++i) {
            const Node& n = g_.nodes()[i];
            Values in;
            for (Value v : n.inputs) {
                in.push_back(narrow_[v.id].valid() ? narrow_[v.id] : r_.mapped(v));
            }
            if (sketch_.ops[i].role == PlacementRole::Product) {
                quantise_weight(n, in);
            }
            r_.replace(n, r_.copy(n, in));
            for (Value v : n.outputs) {
                quantise(v);
            }
        }
        return r_.finish();
    }

private:
    void sketch(const CalibrationCache& cache) {
        std::unordered_map<std::string, float> by_name(cache.scales.begin(), cache.scales.end());
        std::unordered_set<std::string> seen;
        sketch_.scales.resize(g_.value_count(), 0);
        std::vector<bool> constant(g_.value_count(), true);
        auto look = [&](Value v) {
            auto it = by_name.find(g_.value_name(v));
            if (it != by_name.end() && g_.type(v).dtype == DType::F32) {
                sketch_.scales[v.id] = it->second;
                seen.insert(it->first);
            }
            constant[v.id] = false;
        };
        for (Value v : g_.inputs()) {
            look(v);
        }
        for (const Node& n : g_.nodes()) {
            PlacementOp op;
            for (Value v : n.inputs) {
                if (!constant[v.id]) {
                    op.inputs.push_back(v.id);
                }
            }
            op.role = role_of(g_, n, op.inputs.size());
            for (Value v : n.outputs) {
                op.outputs.push_back(v.id);
                if (!op.inputs.empty()) {
                    look(v);
                }
            }
            sketch_.ops.push_back(std::move(op));
        }
        for (const auto& [name, scale] : cache.scales) {
            if (!seen.contains(name)) {
                report_.unknown.push_back(name);
            }
        }
        require(!seen.empty(), ErrorCode::InvalidArgument, "none of the ", cache.scales.size(),
                " tensors of the calibration cache is in the network: it belongs to another one");
    }

    void quantise(Value v) {
        if (scales_[v.id] == 0) {
            return;
        }
        Graph& g = r_.out();
        Value x = r_.mapped(v);
        Value scale = ops::constant(g, Tensor::scalar(DType::F32, scales_[v.id]));
        Value q = ops::quantize(g, {0, 0, DType::I8, true}, x, scale);
        narrow_[v.id] = ops::dequantize(g, {0, 0, DType::F32}, q, scale);
        if (!g_.value_name(v).empty()) {
            g.set_value_name(q, str(g_.value_name(v), quantised_suffix));
            g.set_value_name(narrow_[v.id], str(g_.value_name(v), dequantised_suffix));
        }
        report_.tensors.push_back(g_.value_name(v));
    }

    /// Whether it is int8, or a view of int8.
    bool is_narrow(Value v) const {
        const Node* p = g_.producer(v);
        bool view = p != nullptr && (p->is(reshape_def) || p->is(permute_def));
        return scales_[v.id] > 0 || (view && is_narrow(p->inputs[0]));
    }

    void quantise_weight(const Node& n, Values& in) {
        if (!is_narrow(n.inputs[0])) {
            report_.missing.push_back(g_.value_name(n.inputs[0]));
            return;
        }
        int64_t axis = channel_axis(g_, n);
        auto [it, fresh] = weights_.try_emplace({n.inputs[1].id, axis}, Value{});
        if (fresh) {
            QuantizedWeight w = quantized_weight(*g_.constant(n.inputs[1]), DType::I8, axis);
            if (std::isfinite(w.error)) {
                Graph& g = r_.out();
                Value q = ops::constant(g, w.q);
                Value scale = ops::constant(g, w.scale);
                it->second = ops::dequantize(g, {axis, 0, DType::F32}, q, scale);
            }
        }
        if (it->second.valid()) {
            in[1] = it->second;
            report_.products.push_back(g_.value_name(n.outputs[0]));
        }
    }

    const Graph& g_;
    QuantizeReport& report_;
    Rewriter r_;
    PlacementSketch sketch_; // its ops are the nodes, its tensors the values
    std::vector<float> scales_;
    Values narrow_; // by old value: the value that readers get instead
    std::map<std::pair<uint32_t, int64_t>, Value> weights_;
};

} // namespace

Graph quantised_graph(const Graph& graph, const CalibrationCache& cache, QuantizeReport* report) {
    visit_nodes(graph, [](const Graph&, const Node& n) {
        require(!n.is(ops::quantize_def) && !n.is(ops::dequantize_def), ErrorCode::InvalidArgument,
                "node '", n.name,
                "' quantises or dequantises: the network already has its scales and takes no "
                "calibration cache");
    });
    PipelineOptions passes;
    passes.disabled = {"drop_fences"}; // the passes of the build need the fences
    Graph g = run_aot_passes(graph, passes);
    QuantizeReport own;
    return dead_code(GraphQuantizer(g, cache, report == nullptr ? own : *report).run());
}

} // namespace ingot
