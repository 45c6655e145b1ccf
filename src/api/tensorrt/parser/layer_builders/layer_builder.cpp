// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/layer_builders/layer_builder.h"

#include "onnx/ops/support/inputs.h"

#include <algorithm>

namespace ingot::api {

std::optional<Tensor> NodeView::constant(int i) const {
    return c.has(i) && inputs_.is_fixed(i) ? c.maybe_constant(i) : std::nullopt;
}

std::optional<std::vector<int64_t>> NodeView::constant_ints(int i) const {
    return c.has(i) && inputs_.is_fixed(i) ? onnx::known_ints(c, i) : std::nullopt;
}

std::optional<double> NodeView::constant_number(int i) const {
    std::optional<Tensor> t = constant(i);
    return t && t->count() == 1 ? std::optional(t->get_f64(0)) : std::nullopt;
}

std::optional<nv::Weights> NodeView::weights(int i) const {
    std::optional<Tensor> t = constant(i);
    if (!t || !has_name(t->dtype())) {
        return std::nullopt;
    }
    if (std::optional<size_t> index = inputs_.initializer(i)) {
        t = n.initializers()[*index].tensor;
        return nv::Weights{data_type_of(t->dtype()), t->bytes().data(), t->count()};
    }
    return keep(*t);
}

nv::Weights NodeView::keep(const Tensor& t) const {
    auto kept = std::make_shared<const Tensor>(t);
    n.keep(kept);
    return {data_type_of(kept->dtype()), kept->bytes().data(), kept->count()};
}

nv::ITensor& NodeView::made(const Tensor& t) const {
    nv::IConstantLayer* layer = n.addConstant(api_dims(t.shape()), keep(t));
    require(layer != nullptr, ErrorCode::Unsupported, "a constant of type ", t.type());
    return *layer->getOutput(0);
}

int32_t NodeView::axis(int64_t fallback, std::string_view attribute) const {
    return static_cast<int32_t>(normalize_axis(c.i(attribute, fallback), c.rank(0)));
}

std::optional<NodeView::AxisList> NodeView::axes(std::string_view attribute, int input) const {
    AxisList out;
    if (!attribute.empty() && c.has_attribute(attribute)) {
        out.given = true;
        out.axes = c.ints(attribute);
    } else if (c.has(input)) {
        std::optional<std::vector<int64_t>> known = constant_ints(input);
        if (!known) {
            return std::nullopt;
        }
        out.given = true;
        out.axes = *known;
    }
    return out;
}

std::optional<int64_t> NodeView::size(int i, int64_t axis) const {
    const Dim& d = c.dim(i, axis);
    return d.is_const() ? std::optional(d.value()) : std::nullopt;
}

bool has_name(DType t) {
    return dtype_of(data_type_of(t)) == t;
}

nv::Dims dims_of(const std::vector<int64_t>& values) {
    require(values.size() <= nv::Dims::MAX_DIMS, ErrorCode::Unsupported, values.size(),
            " dimensions; the API has room for ", nv::Dims::MAX_DIMS);
    nv::Dims d{static_cast<int32_t>(values.size()), {}};
    std::copy(values.begin(), values.end(), d.d);
    return d;
}

uint32_t mask_of(const std::vector<int64_t>& axes) {
    uint32_t mask = 0;
    for (int64_t a : axes) {
        mask |= 1U << static_cast<uint32_t>(a);
    }
    return mask;
}

} // namespace ingot::api
