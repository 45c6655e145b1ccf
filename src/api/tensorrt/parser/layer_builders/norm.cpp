// SPDX-License-Identifier: Apache-2.0
// Layer builders of normalisations. Scale and bias of instance, group and layer normalisation are
// inputs of the layer in the node's form: one dimension for groups, the normalised dimensions for
// layers.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"

#include <cmath>

namespace ingot::api {

nv::ILayer* build_lrn(const NodeView& r) {
    return r.n.addLRN(r.tensor(0), r.c.i("size"), static_cast<float>(r.c.f("alpha", 1e-4F)),
                      static_cast<float>(r.c.f("beta", 0.75)),
                      static_cast<float>(r.c.f("bias", 1)));
}

// Constant statistics fold into one factor and one term per channel.
nv::ILayer* build_batch_norm(const NodeView& r) {
    std::vector<Tensor> given;
    for (int i = 1; i < 5; ++i) {
        std::optional<Tensor> t = r.constant(i);
        if (!t || (!given.empty() && t->count() != given[0].count())) {
            return nullptr;
        }
        given.push_back(*t);
    }
    bool training = r.c.opset >= 14 && r.c.i("training_mode", 0) != 0;
    if (training || r.c.wants(1) || r.c.rank(0) < 2) {
        return nullptr;
    }
    Tensor scale = Tensor::empty(DType::F32, {given[0].count()});
    Tensor shift = Tensor::empty(DType::F32, {given[0].count()});
    double epsilon = r.c.f("epsilon", 1e-5F);
    for (int64_t i = 0; i < scale.count(); ++i) {
        double factor = given[0].get_f64(i) / std::sqrt(given[3].get_f64(i) + epsilon);
        scale.set_f64(i, factor);
        shift.set_f64(i, given[1].get_f64(i) - given[2].get_f64(i) * factor);
    }
    return r.n.addScaleNd(r.tensor(0), nv::ScaleMode::kCHANNEL, r.keep(shift), r.keep(scale), {},
                          1);
}

namespace {

uint32_t from_axis(const NodeView& r, int64_t first) {
    std::vector<int64_t> axes;
    for (int64_t i = first; i < r.c.rank(0); ++i) {
        axes.push_back(i);
    }
    return mask_of(axes);
}

nv::INormalizationLayer* normalization(const NodeView& r, uint32_t axes, bool v2) {
    std::optional<Shape> size = as_const(r.c.type(1).dims);
    if (axes == 0 || !size) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::ITensor& scale = r.tensor(1);
    nv::ITensor& bias = r.c.has(2) ? r.tensor(2) : r.made(Tensor::zeros(r.c.dtype(1), *size));
    nv::INormalizationLayer* layer = v2 ? r.n.addNormalizationV2(x, scale, bias, axes)
                                        : r.n.addNormalization(x, scale, bias, axes);
    if (layer != nullptr) {
        layer->setEpsilon(static_cast<float>(r.c.f("epsilon", 1e-5F)));
    }
    return layer;
}

} // namespace

// Each channel is a group.
nv::ILayer* build_instance_norm(const NodeView& r) {
    std::optional<int64_t> channels = r.size(0, 1);
    channels = channels ? channels : product(r.c.type(1).dims).as_const();
    if (!channels) {
        return nullptr;
    }
    nv::INormalizationLayer* layer = normalization(r, from_axis(r, 2), true);
    if (layer != nullptr) {
        layer->setNbGroups(*channels);
    }
    return layer;
}

nv::ILayer* build_group_norm(const NodeView& r) {
    nv::INormalizationLayer* layer = normalization(r, from_axis(r, 2), r.c.opset >= 21);
    if (layer != nullptr) {
        layer->setNbGroups(r.c.i("num_groups"));
    }
    return layer;
}

nv::ILayer* build_layer_norm(const NodeView& r) {
    bool more = r.c.wants(1) || r.c.wants(2);
    return more ? nullptr : normalization(r, from_axis(r, r.axis(-1)), true);
}

} // namespace ingot::api
