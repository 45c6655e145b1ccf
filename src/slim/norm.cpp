// SPDX-License-Identifier: Apache-2.0
// Recognises RMSNormalization (opset 23) in its spelling by older operators.
#include "slim/rules.h"
#include "slim/views.h"

#include <algorithm>

namespace ingot::slim {

namespace {

// x, from x*x or x**2.
std::optional<std::string> squared(const Context& c, const std::string& name) {
    if (const std::optional<size_t> p = c.only_producer(name, "Mul")) {
        const onnx::Node& n = c.edit.node(*p);
        return input(n, 0) == input(n, 1) ? std::optional(input(n, 0)) : std::nullopt;
    }
    if (const std::optional<size_t> p = c.only_producer(name, "Pow")) {
        const onnx::Node& n = c.edit.node(*p);
        return c.filled_with(input(n, 1)) == 2.0 ? std::optional(input(n, 0)) : std::nullopt;
    }
    return std::nullopt;
}

struct RmsParts {
    std::string x;
    int64_t axis = 0;
    double epsilon = 0;
};

// sqrt(mean(x*x, the last axes, kept) + epsilon)
std::optional<RmsParts> root_mean_square(const Context& c, const std::string& name) {
    const std::optional<size_t> root = c.only_producer(name, "Sqrt");
    const std::optional<size_t> sum =
        root ? c.only_producer(input(c.edit.node(*root), 0), "Add") : std::nullopt;
    for (size_t k = 0; sum && k < 2; ++k) {
        const onnx::Node& add = c.edit.node(*sum);
        const std::optional<size_t> mean = c.only_producer(input(add, k), "ReduceMean");
        const std::optional<Tensor> epsilon = c.constant(input(add, 1 - k));
        if (!mean || !epsilon || epsilon->count() != 1 || epsilon->get_f64(0) < 0) {
            continue;
        }
        const onnx::Node& reduce = c.edit.node(*mean);
        const std::optional<std::string> x = squared(c, input(reduce, 0));
        const std::optional<Type> t = x ? c.type(*x) : std::nullopt;
        const Context::Parameter axes = c.parameter(reduce, "axes", 1);
        if (!t || t->dtype != DType::F32 || !axes.known || axes.known->empty() ||
            get_int(reduce, "keepdims", 1) != 1 || !c.same_type(input(add, k), add.outputs[0])) {
            continue;
        }
        Axes sorted = normalize_axes(*axes.known, t->rank());
        std::sort(sorted.begin(), sorted.end());
        const auto last = static_cast<int64_t>(t->rank()) - 1;
        const auto spread = static_cast<int64_t>(sorted.size()) - 1;
        if (sorted.back() == last && sorted.front() == last - spread) {
            return RmsParts{*x, sorted.front(), epsilon->get_f64(0)};
        }
    }
    return std::nullopt;
}

// Does W have the sizes of x's last axes, or broadcast to them?
bool fits_as_scale(const Context& c, const std::string& w, const RmsParts& parts) {
    const std::optional<Type> x = c.type(parts.x);
    const std::optional<Type> t = c.type(w);
    if (!x || !t || t->dtype != x->dtype || t->rank() != x->rank() - parts.axis) {
        return false;
    }
    return std::equal(t->dims.begin(), t->dims.end(), x->dims.begin() + parts.axis);
}

bool rms_norm(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    for (size_t k = 0; c.opset >= 23 && k < 2; ++k) {
        const std::optional<size_t> div = c.only_producer(input(n, k), "Div");
        const auto parts = div ? root_mean_square(c, input(c.edit.node(*div), 1)) : std::nullopt;
        if (!parts || input(c.edit.node(*div), 0) != parts->x ||
            !fits_as_scale(c, input(n, 1 - k), *parts)) {
            continue;
        }
        onnx::Node norm =
            make_node("RMSNormalization", {parts->x, input(n, 1 - k)}, n.outputs[0], n.name);
        set_int(norm, "axis", parts->axis);
        set_float(norm, "epsilon", static_cast<float>(parts->epsilon));
        c.edit.update(i, std::move(norm));
        return true;
    }
    return false;
}

const Rule rules[] = {
    {"rms-norm",
     "graph_fusion",
     "x / sqrt(mean(x*x) + e) * w, from opset 23 on",
     {"Mul"},
     rms_norm,
     false},
};

} // namespace

const RuleTable norm_rules = rules;

} // namespace ingot::slim
