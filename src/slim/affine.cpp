// SPDX-License-Identifier: Apache-2.0
#include "slim/affine.h"

#include <algorithm>
#include <cmath>

namespace ingot::slim {

namespace {

bool is_finite(const std::vector<double>& v) {
    return std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); });
}

std::optional<Affine> batch_norm(const Context& c, const onnx::Node& n, int64_t channels) {
    const bool infers = get_int(n, "training_mode", 0) == 0 && get_int(n, "spatial", 1) == 1 &&
                        std::none_of(n.outputs.begin() + 1, n.outputs.end(),
                                     [&](const std::string& o) { return c.edit.is_used(o); });
    std::vector<std::vector<double>> p;
    for (size_t k = 1; infers && k <= 4; ++k) {
        const std::optional<Tensor> t = c.constant(input(n, k));
        if (!t || t->count() != channels) {
            return std::nullopt;
        }
        std::vector<double>& list = p.emplace_back();
        for (int64_t i = 0; i < channels; ++i) {
            list.push_back(t->get_f64(i));
        }
    }
    if (p.size() != 4) {
        return std::nullopt;
    }
    const auto epsilon = static_cast<double>(get_float(n, "epsilon", 1e-5F));
    Affine a;
    for (size_t i = 0; i < p[0].size(); ++i) {
        const double factor = p[0][i] / std::sqrt(p[3][i] + epsilon);
        a.factor.push_back(factor);
        a.shift.push_back(p[1][i] - p[2][i] * factor);
    }
    return a;
}

} // namespace

std::optional<std::vector<double>> per_channel(const Context& c, const std::string& name,
                                               int64_t channels, int64_t rank) {
    const std::optional<Tensor> t = c.constant(name);
    if (!t || !is_float(t->dtype()) || t->rank() > rank) {
        return std::nullopt;
    }
    const int64_t axis = 1 - (rank - t->rank()); // axis of the constant
    for (int64_t k = 0; k < t->rank(); ++k) {
        const int64_t size = t->shape()[static_cast<size_t>(k)];
        if (size != 1 && !(k == axis && size == channels)) {
            return std::nullopt;
        }
    }
    std::vector<double> out;
    for (int64_t k = 0; k < channels; ++k) {
        out.push_back(t->get_f64(t->count() == 1 ? 0 : k));
    }
    return out;
}

std::optional<Affine> affine_of(const Context& c, const onnx::Node& n, const std::string& name,
                                int64_t channels, int64_t rank) {
    const auto count = static_cast<size_t>(channels);
    std::optional<Affine> a;
    if (is_op(n, "BatchNormalization")) {
        a = input(n, 0) == name ? batch_norm(c, n, channels) : std::nullopt;
    } else {
        const bool left = input(n, 0) == name;
        auto v = per_channel(c, input(n, left ? 1 : 0), channels, rank);
        if (!v || !c.same_type(name, n.outputs[0])) {
            return std::nullopt;
        }
        a = Affine{std::vector<double>(count, 1), std::vector<double>(count, 0)};
        if (is_op(n, "Add")) {
            a->shift = *v;
        } else if (is_op(n, "Sub")) {
            for (size_t k = 0; k < count; ++k) {
                a->shift[k] = left ? -(*v)[k] : (*v)[k];
                a->factor[k] = left ? 1 : -1;
            }
        } else if (is_op(n, "Mul")) {
            a->factor = *v;
        } else if (is_op(n, "Div") && left) {
            std::transform(v->begin(), v->end(), a->factor.begin(), [](double x) { return 1 / x; });
        } else {
            return std::nullopt;
        }
    }
    return a && is_finite(a->factor) && is_finite(a->shift) ? a : std::nullopt;
}

std::optional<Tensor> as_tensor(DType dtype, const std::vector<double>& values) {
    Tensor out = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
    for (int64_t k = 0; k < out.count(); ++k) {
        out.set_f64(k, values[static_cast<size_t>(k)]);
        if (!std::isfinite(out.get_f64(k))) {
            return std::nullopt;
        }
    }
    return out;
}

std::optional<Tensor> scaled_by(const Tensor& t, const std::vector<double>& factor, int64_t axis,
                                int64_t groups) {
    const bool ones = std::all_of(factor.begin(), factor.end(), [](double f) { return f == 1; });
    if (ones) {
        return t;
    }
    Tensor out = Tensor::empty(t.dtype(), t.shape());
    const Shape strides = strides_of(t.shape());
    const int64_t size = t.shape()[static_cast<size_t>(axis)];
    const int64_t stride = strides[static_cast<size_t>(axis)];
    const int64_t group_elements = std::max<int64_t>(t.count() / groups, 1);
    for (int64_t i = 0; i < t.count(); ++i) {
        const int64_t channel = i / stride % size + (groups > 1 ? i / group_elements * size : 0);
        const double v = t.get_f64(i);
        out.set_f64(i, v * factor[static_cast<size_t>(channel)]);
        if (std::isfinite(v) && !std::isfinite(out.get_f64(i))) {
            return std::nullopt;
        }
    }
    return out;
}

} // namespace ingot::slim
