// SPDX-License-Identifier: Apache-2.0
// Layer builders of constants, of operators that rearrange data, and of generators.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"
#include "onnx/import_node.h"
#include "onnx/ops/support/inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot::api {

namespace {

std::optional<Tensor> value_of(const onnx::Node& n) {
    for (const onnx::Attribute& a : n.attributes) {
        auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
        if (a.name == "value" && a.type == onnx::AttributeType::Tensor) {
            return onnx::initializer(a.t);
        }
        if (a.name == "value_float") {
            return Tensor::of<float>(DType::F32, {}, std::vector{a.f});
        }
        if (a.name == "value_floats") {
            return Tensor::of<float>(DType::F32, {count(a.floats)}, a.floats);
        }
        if (a.name == "value_int") {
            return Tensor::scalar_i64(DType::I64, a.i);
        }
        if (a.name == "value_ints") {
            return Tensor::i64(a.ints);
        }
    }
    return std::nullopt;
}

} // namespace

nv::ILayer* build_constant(const NodeView& r) {
    std::optional<Tensor> t = value_of(r.c.node);
    bool fits = t && has_name(t->dtype()) && t->rank() <= nv::Dims::MAX_DIMS;
    return fits ? r.n.addConstant(api_dims(t->shape()), r.keep(*t)) : nullptr;
}

nv::ILayer* build_concat(const NodeView& r) {
    std::vector<nv::ITensor*> inputs;
    for (int i = 0; i < r.c.input_count(); ++i) {
        inputs.push_back(&r.tensor(i));
    }
    nv::IConcatenationLayer* layer = r.n.addConcatenation(inputs.data(), r.c.input_count());
    if (layer != nullptr) {
        layer->setAxis(r.axis(0));
    }
    return layer;
}

// --- shuffles ------------------------------------------------------------------------------------

nv::ILayer* build_reshape(const NodeView& r) {
    std::optional<std::vector<int64_t>> known = r.constant_ints(1);
    nv::ITensor& x = r.tensor(0);
    nv::ITensor* shape = known ? nullptr : &r.tensor(1);
    nv::IShuffleLayer* layer = r.n.addShuffle(x);
    if (layer != nullptr) {
        layer->setZeroIsPlaceholder(r.c.i("allowzero", 0) == 0);
        if (shape != nullptr) {
            layer->setInput(1, *shape);
        } else {
            layer->setReshapeDimensions(dims_of(*known));
        }
    }
    return layer;
}

nv::ILayer* build_flatten(const NodeView& r) {
    const Dims& in = r.c.type(0).dims;
    int64_t rank = r.c.rank(0);
    int64_t axis = r.c.i("axis", 1);
    auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if (at > in.size()) {
        return nullptr;
    }
    Dim before = onnx::product_of(in, 0, at);
    Dim after = onnx::product_of(in, at, in.size());
    std::vector<int64_t> shape;
    if (before.is_const() && after.is_const()) {
        shape = {before.value(), after.value()};
    } else if (at == 1) {
        shape = {0, after.as_const().value_or(-1)}; // the first one is copied
    } else if (before.as_const().value_or(0) > 0) {
        shape = {before.value(), -1};
    } else if (after.as_const().value_or(0) > 0) {
        shape = {-1, after.value()};
    } else {
        return nullptr;
    }
    bool copies = !before.is_const() && at == 1;
    nv::IShuffleLayer* layer = r.n.addShuffle(r.tensor(0));
    if (layer != nullptr) {
        layer->setZeroIsPlaceholder(copies);
        layer->setReshapeDimensions(dims_of(shape));
    }
    return layer;
}

nv::ILayer* build_transpose(const NodeView& r) {
    std::vector<int64_t> perm = r.c.ints("perm");
    if (!r.c.has_attribute("perm")) {
        perm.resize(static_cast<size_t>(r.c.rank(0)));
        std::iota(perm.rbegin(), perm.rend(), 0);
    }
    perm = normalize_axes(perm, r.c.rank(0));
    if (perm.size() > nv::Dims::MAX_DIMS) {
        return nullptr;
    }
    nv::Permutation p{};
    std::iota(p.order, p.order + nv::Dims::MAX_DIMS, 0);
    std::copy(perm.begin(), perm.end(), p.order);
    nv::IShuffleLayer* layer = r.n.addShuffle(r.tensor(0));
    if (layer != nullptr) {
        layer->setFirstTranspose(p);
    }
    return layer;
}

namespace {

// The axes in the layer's form, as a tensor; null where they are unknown.
nv::ITensor* axes_tensor(const NodeView& r, bool all_ones) {
    if (r.c.has(1)) {
        return &r.tensor(1);
    }
    if (r.c.has_attribute("axes")) {
        return &r.made(Tensor::i64(r.c.ints("axes")));
    }
    std::vector<int64_t> ones;
    for (int64_t i = 0; i < r.c.rank(0); ++i) {
        std::optional<int64_t> size = r.size(0, i);
        if (!size || !all_ones) {
            return nullptr;
        }
        if (*size == 1) {
            ones.push_back(i);
        }
    }
    return &r.made(Tensor::i64(ones));
}

} // namespace

nv::ILayer* build_squeeze(const NodeView& r) {
    nv::ITensor& x = r.tensor(0);
    nv::ITensor* axes = axes_tensor(r, true);
    return axes == nullptr ? nullptr : r.n.addSqueeze(x, *axes);
}

nv::ILayer* build_unsqueeze(const NodeView& r) {
    nv::ITensor& x = r.tensor(0);
    nv::ITensor* axes = axes_tensor(r, false);
    return axes == nullptr ? nullptr : r.n.addUnsqueeze(x, *axes);
}

nv::ILayer* build_shape(const NodeView& r) {
    int64_t rank = r.c.rank(0);
    bool whole = r.c.i("start", 0) == 0 && r.c.i("end", rank) >= rank;
    return whole ? r.n.addShape(r.tensor(0)) : nullptr;
}

// --- fills ---------------------------------------------------------------------------------------

namespace {

nv::IFillLayer* line(const NodeView& r, const nv::Dims& shape, DType t, const Tensor& first,
                     double step) {
    nv::IFillLayer* layer =
        has_name(t) ? r.n.addFill(shape, nv::FillOperation::kLINSPACE, data_type_of(t)) : nullptr;
    if (layer != nullptr && is_float(t)) {
        layer->setAlpha(first.get_f64(0));
        layer->setBeta(step);
    } else if (layer != nullptr) {
        layer->setAlphaInt64(first.get_i64(0));
        layer->setBetaInt64(static_cast<int64_t>(step));
    }
    return layer;
}

} // namespace

nv::ILayer* build_constant_of_shape(const NodeView& r) {
    const onnx::Attribute* a = r.c.attribute("value");
    Tensor value = a == nullptr ? Tensor::scalar(DType::F32, 0) : onnx::initializer(a->t);
    std::optional<std::vector<int64_t>> known = r.constant_ints(0);
    nv::ITensor* shape = known ? nullptr : &r.tensor(0);
    nv::IFillLayer* layer = line(r, known ? dims_of(*known) : nv::Dims{}, value.dtype(), value, 0);
    if (layer != nullptr && shape != nullptr) {
        layer->setInput(0, *shape);
    }
    return layer;
}

nv::ILayer* build_range(const NodeView& r) {
    std::optional<Tensor> first = r.constant(0);
    std::optional<double> limit = r.constant_number(1);
    std::optional<double> step = r.constant_number(2);
    if (!first || first->count() != 1 || !limit || !step || *step == 0) {
        return nullptr;
    }
    double count = std::max(0.0, std::ceil((*limit - first->get_f64(0)) / *step));
    return line(r, dims_of({static_cast<int64_t>(count)}), r.c.dtype(0), *first, *step);
}

nv::ILayer* build_random(const NodeView& r) {
    bool normal = r.c.node.op_type == "RandomNormal";
    DType t = onnx::dtype_attribute(r.c, "dtype", DType::F32);
    nv::IFillLayer* layer = has_name(t) ? r.n.addFill(dims_of(r.c.ints("shape")),
                                                      normal ? nv::FillOperation::kRANDOM_NORMAL
                                                             : nv::FillOperation::kRANDOM_UNIFORM,
                                                      data_type_of(t))
                                        : nullptr;
    if (layer != nullptr) {
        layer->setAlpha(normal ? r.c.f("mean", 0) : r.c.f("low", 0));
        layer->setBeta(normal ? r.c.f("scale", 1) : r.c.f("high", 1));
    }
    return layer;
}

} // namespace ingot::api
