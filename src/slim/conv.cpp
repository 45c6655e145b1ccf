// SPDX-License-Identifier: Apache-2.0
// Rules that fold neighbours of a convolution into it: normalisation, scales, sums, padding.
#include "slim/affine.h"
#include "slim/rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot::slim {

namespace {

// The convolution that computes an operand of n and has no other reader.
std::optional<size_t> conv_before(const Context& c, const onnx::Node& n) {
    for (const std::string& name : n.inputs) {
        for (const char* op : {"Conv", "ConvTranspose"}) {
            if (const std::optional<size_t> p = c.only_producer(name, op)) {
                return p;
            }
        }
    }
    return std::nullopt;
}

// Large weights with other readers are not copied.
bool may_copy(const Context& c, const std::string& weights) {
    return c.edit.used_once(weights) ||
           c.edit.constant(weights)->bytes.size() <= c.options.size_threshold;
}

bool absorb_after(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p = conv_before(c, n);
    if (!p) {
        return false;
    }
    onnx::Node conv = c.edit.node(*p);
    const std::optional<Tensor> w = c.constant(input(conv, 1));
    const std::optional<Tensor> bias = c.constant(input(conv, 2));
    if (!w || !is_float(w->dtype()) || w->rank() < 3 || (has_input(conv, 2) && !bias)) {
        return false;
    }
    const bool transposed = conv.op_type == "ConvTranspose";
    const int64_t groups = get_int(conv, "group", 1);
    const int64_t channels = transposed ? w->shape()[1] * groups : w->shape()[0];
    const auto a = affine_of(c, n, conv.outputs[0], channels, w->rank());
    if (!a || !may_copy(c, input(conv, 1))) {
        return false;
    }
    std::vector<double> sums = a->shift;
    for (size_t k = 0; bias && k < sums.size(); ++k) {
        sums[k] += bias->get_f64(static_cast<int64_t>(k)) * a->factor[k];
    }
    const auto shift = as_tensor(w->dtype(), sums);
    const auto weights = scaled_by(*w, a->factor, transposed ? 1 : 0, transposed ? groups : 1);
    if (!shift || !weights) {
        return false;
    }
    if (weights->bytes().data() != w->bytes().data()) {
        set_input(conv, 1, c.add(*weights, input(conv, 1)));
    }
    const bool needs_bias =
        bias || std::any_of(sums.begin(), sums.end(), [](double s) { return s != 0; });
    if (needs_bias) {
        set_input(conv, 2, c.add(*shift, bias ? input(conv, 2) : n.outputs[0] + "_bias"));
    }
    conv.outputs = {n.outputs[0]};
    c.edit.erase(*p);
    c.edit.update(i, std::move(conv));
    return true;
}

// Conv(x * a) is Conv with weights scaled per input channel: zero padding stays zero.
bool absorb_before(Context& c, size_t i) {
    onnx::Node conv = c.edit.node(i);
    const std::optional<size_t> p = c.only_producer(input(conv, 0), "Mul");
    const std::optional<Tensor> w = c.constant(input(conv, 1));
    if (!p || !w || !is_float(w->dtype()) || w->rank() < 3 || !may_copy(c, input(conv, 1))) {
        return false;
    }
    const onnx::Node& mul = c.edit.node(*p);
    const int64_t groups = get_int(conv, "group", 1);
    const int64_t per_group = w->shape()[1];
    const int64_t channels = per_group * groups;
    for (size_t k = 0; k < 2; ++k) {
        const auto factor = per_channel(c, input(mul, 1 - k), channels, w->rank());
        const bool single = groups == 1 || (factor && std::equal(factor->begin() + 1, factor->end(),
                                                                 factor->begin()));
        if (!factor || !single || !c.same_type(input(mul, k), mul.outputs[0]) ||
            !std::all_of(factor->begin(), factor->end(),
                         [](double f) { return std::isfinite(f); })) {
            continue;
        }
        const std::vector<double> own(factor->begin(), factor->begin() + per_group);
        const auto weights = scaled_by(*w, own, 1, 1);
        if (!weights) {
            return false;
        }
        set_input(conv, 0, input(mul, k));
        set_input(conv, 1, c.add(*weights, input(conv, 1)));
        c.edit.update(i, std::move(conv));
        return true;
    }
    return false;
}

// Constant padding of the spatial axes: [low..., high...], none negative.
std::optional<std::vector<int64_t>> spatial_pads(const Context& c, const onnx::Node& pad,
                                                 int64_t rank) {
    const Context::Parameter pads = c.parameter(pad, "pads", 1);
    if (!pads.known || get_string(pad, "mode", "constant") != "constant" || rank < 3) {
        return std::nullopt;
    }
    std::vector<int64_t> axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    if (has_input(pad, 3)) {
        const auto given = c.constant_ints(input(pad, 3));
        if (!given) {
            return std::nullopt;
        }
        axes = *given;
    }
    if (pads.known->size() != 2 * axes.size()) {
        return std::nullopt;
    }
    std::vector<int64_t> out(static_cast<size_t>(2 * (rank - 2)), 0);
    for (size_t k = 0; k < pads.known->size(); ++k) {
        const int64_t amount = (*pads.known)[k];
        const int64_t axis = axes[k % axes.size()] + (axes[k % axes.size()] < 0 ? rank : 0);
        if (amount < 0 || (amount > 0 && axis < 2)) {
            return std::nullopt;
        }
        if (amount > 0) {
            const int64_t side = k < axes.size() ? 0 : rank - 2;
            out[static_cast<size_t>(axis - 2 + side)] = amount;
        }
    }
    return out;
}

// The value that Pad pads with, when known.
std::optional<double> pad_value(const Context& c, const onnx::Node& pad) {
    if (c.opset < 11) {
        return static_cast<double>(get_float(pad, "value", 0));
    }
    return has_input(pad, 2) ? c.filled_with(input(pad, 2)) : std::optional(0.0);
}

bool absorb_pad(Context& c, size_t i) {
    onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p = c.only_producer(input(n, 0), "Pad");
    const std::string mode = get_string(n, "auto_pad", "NOTSET");
    const std::optional<int64_t> rank = p ? c.rank(input(n, 0)) : std::nullopt;
    const bool indices = n.outputs.size() > 1 && c.edit.is_used(n.outputs[1]);
    if (!rank || (mode != "NOTSET" && mode != "VALID") || get_int(n, "ceil_mode", 0) != 0 ||
        indices) {
        return false;
    }
    const onnx::Node& pad = c.edit.node(*p);
    const auto added = spatial_pads(c, pad, *rank);
    const std::optional<double> value = pad_value(c, pad);
    if (!added || !value) {
        return false;
    }
    std::vector<int64_t> pads = get_ints(n, "pads");
    pads.resize(added->size(), 0);
    const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t v) { return v != 0; });
    const bool average = n.op_type == "AveragePool";
    const bool fits =
        n.op_type == "MaxPool"
            ? std::isinf(*value) && *value < 0
            : *value == 0 && (!average || !padded || get_int(n, "count_include_pad", 0) != 0);
    const std::vector<int64_t> kernel = get_ints(n, "kernel_shape");
    for (size_t k = 0; k < pads.size(); ++k) {
        pads[k] += (*added)[k];
        // Runtimes refuse pooling windows that lie entirely in the padding.
        if (n.op_type != "Conv" && (kernel.empty() || pads[k] >= kernel[k % kernel.size()])) {
            return false;
        }
    }
    if (!fits) {
        return false;
    }
    set_ints(n, "pads", std::move(pads));
    remove_attribute(n, "auto_pad");
    if (average) {
        set_int(n, "count_include_pad", 1);
    }
    set_input(n, 0, input(pad, 0));
    c.edit.update(i, std::move(n));
    return true;
}

const Rule rules[] = {
    {"conv-affine",
     "graph_fusion",
     "normalisation, or arithmetic with a constant per channel, after a convolution",
     {"BatchNormalization", "Add", "Sub", "Mul", "Div"},
     absorb_after,
     false},
    {"mul-conv",
     "graph_fusion",
     "a product per channel before a convolution",
     {"Conv"},
     absorb_before,
     false},
    {"pad-conv",
     "graph_fusion",
     "padding before a convolution or a pool",
     {"Conv", "AveragePool", "MaxPool"},
     absorb_pad},
};

} // namespace

const RuleTable conv_rules = rules;

} // namespace ingot::slim
