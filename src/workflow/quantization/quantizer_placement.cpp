// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/quantizer_placement.h"

#include <algorithm>
#include <optional>

namespace ingot {

namespace {

constexpr size_t none = ~size_t{0};

class Placement {
public:
    explicit Placement(const PlacementSketch& s)
        : sketch_(s), scales_(s.scales.size(), 0), producer_(s.scales.size(), none),
          product_(s.scales.size(), none), flows_(s.scales.size(), false) {
        for (size_t i = 0; i < s.ops.size(); ++i) {
            for (size_t t : s.ops[i].outputs) {
                producer_[t] = i;
                product_[t] = product_behind(i);
            }
        }
    }

    std::vector<float> run() {
        for (size_t i = sketch_.ops.size(); i-- > 0;) {
            visit(sketch_.ops[i]);
        }
        return std::move(scales_);
    }

private:
    /// The product whose results reach operator i through pointwise operators; the last one if
    /// several.
    size_t product_behind(size_t i) const {
        const PlacementOp& op = sketch_.ops[i];
        if (op.role == PlacementRole::Product) {
            return i;
        }
        size_t last = none;
        if (op.role == PlacementRole::Pointwise || op.role == PlacementRole::Join) {
            for (size_t t : op.inputs) {
                last = product_[t] != none && (last == none || product_[t] > last) ? product_[t]
                                                                                   : last;
            }
        }
        return last;
    }

    /// Makes a tensor int8 with this scale, or its own when 0; for a view, makes its source int8.
    bool quantise(size_t t, float scale = 0) {
        while (producer_[t] != none && sketch_.ops[producer_[t]].role == PlacementRole::View) {
            scale = scale > 0 ? scale : sketch_.scales[t];
            flows_[t] = true;
            t = sketch_.ops[producer_[t]].inputs.at(0);
        }
        flows_[t] = true;
        if (scales_[t] == 0) {
            scales_[t] = scale > 0 ? scale : sketch_.scales[t];
        }
        return scales_[t] > 0;
    }

    /// The scale of int8 results.
    float result_scale(const PlacementOp& op) const {
        return op.outputs.size() == 1 ? scales_[op.outputs[0]] : 0;
    }

    void visit(const PlacementOp& op) {
        bool flows =
            std::any_of(op.outputs.begin(), op.outputs.end(), [&](size_t t) { return flows_[t]; });
        switch (op.role) {
        case PlacementRole::Product:
            quantise(op.inputs.at(0));
            break;
        case PlacementRole::Join:
            if (flows) {
                join(op);
            }
            break;
        case PlacementRole::Concat:
            if (result_scale(op) > 0) {
                for (size_t t : op.inputs) {
                    quantise(t, result_scale(op));
                }
            }
            break;
        case PlacementRole::Maximum:
            if (flows) {
                quantise(op.inputs.at(0), result_scale(op));
            }
            break;
        case PlacementRole::Window:
            if (flows) {
                quantise(op.inputs.at(0));
            }
            break;
        case PlacementRole::Pointwise:
        case PlacementRole::View:
            if (flows) {
                flows_[op.inputs.at(0)] = true;
            }
            break;
        case PlacementRole::Other:
            break;
        }
    }

    void join(const PlacementOp& op) {
        size_t last = product_[op.outputs.at(0)];
        for (size_t t : op.inputs) {
            if (product_[t] != none && product_[t] != last) {
                quantise(t);
            }
            flows_[t] = true;
        }
    }

    const PlacementSketch& sketch_;
    std::vector<float> scales_;
    std::vector<size_t> producer_; // operator, by tensor
    std::vector<size_t> product_;  // by tensor; see product_behind
    std::vector<bool> flows_;      // pointwise, pooling and views lead from it to an int8 tensor
};

} // namespace

std::vector<float> assign_scales(const PlacementSketch& sketch) {
    return Placement(sketch).run();
}

} // namespace ingot
