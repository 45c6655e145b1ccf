// SPDX-License-Identifier: Apache-2.0
// Layer builders of convolutions, pooling and sampling.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"
#include "onnx/ops/support/spatial.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace ingot::api {

namespace {

bool is_same(const onnx::Sliding& s) {
    return s.auto_pad.starts_with("SAME");
}

bool all_are(const std::vector<int64_t>& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

// Strides and padding; `low` and `high` are unset where the node uses auto_pad.
template <class L>
void set_steps(L& layer, const onnx::Sliding& s, const Shape& low, const Shape& high) {
    layer.setStrideNd(dims_of(s.strides));
    if (is_same(s)) {
        layer.setPaddingMode(s.auto_pad == "SAME_UPPER" ? nv::PaddingMode::kSAME_UPPER
                                                        : nv::PaddingMode::kSAME_LOWER);
        return;
    }
    layer.setPrePadding(dims_of(low));
    layer.setPostPadding(dims_of(high));
}

// Kernel and bias: weights where they are constant, else inputs.
struct Parameters {
    explicit Parameters(const NodeView& r)
        : kernel(r.weights(1)), bias(r.weights(2)), kernel_input(kernel ? nullptr : &r.tensor(1)),
          bias_input(bias ? nullptr : r.optional_tensor(2)) {}
    std::optional<nv::Weights> kernel;
    std::optional<nv::Weights> bias;
    nv::ITensor* kernel_input;
    nv::ITensor* bias_input;

    template <class L>
    void set_inputs(L& layer) const {
        if (kernel_input != nullptr) {
            layer.setInput(1, *kernel_input);
        }
        if (bias_input != nullptr) {
            layer.setInput(2, *bias_input);
        }
    }
};

} // namespace

nv::ILayer* build_conv(const NodeView& r) {
    onnx::Sliding s =
        onnx::sliding(r.c, onnx::spatial_dims(r.c.type(0)), onnx::kernel_sizes(r.c, 1));
    std::optional<int64_t> maps = r.size(1, 0);
    if (!maps) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    Parameters p(r);
    nv::IConvolutionLayer* layer =
        r.n.addConvolutionNd(x, *maps, dims_of(s.kernel), p.kernel.value_or(nv::Weights{}),
                             p.bias.value_or(nv::Weights{}));
    if (layer != nullptr) {
        p.set_inputs(*layer);
        Shape none(s.count(), 0);
        set_steps(*layer, s, is_same(s) ? none : *as_const(s.low),
                  is_same(s) ? none : *as_const(s.high));
        layer->setDilationNd(dims_of(s.dilations));
        layer->setNbGroups(onnx::positive(r.c, "group", 1));
    }
    return layer;
}

namespace {

// Pads at the end minus output_padding; nullopt where they are known only at run time.
struct Crop {
    Shape low;
    Shape high;
};
std::optional<Crop> crop_of(const NodeView& r, onnx::Sliding& s) {
    std::vector<int64_t> extra = r.c.ints("output_padding");
    extra.resize(std::max(extra.size(), s.count()), 0);
    std::vector<int64_t> wanted = r.c.ints("output_shape");
    Crop crop;
    bool fits = wanted.empty() && (!is_same(s) || all_are(extra, 0));
    if (fits) {
        for (size_t i = 0; i < s.count() && !is_same(s); ++i) {
            crop.low.push_back(s.low[i].value());
            crop.high.push_back(s.high[i].value() - extra[i]);
        }
        return crop;
    }
    wanted.erase(wanted.begin(), wanted.begin() + (wanted.size() > s.count() ? 2 : 0));
    for (size_t i = 0; i < s.count(); ++i) {
        const Dim& in = r.c.dim(0, static_cast<int64_t>(i) + 2);
        Dim out = wanted.empty() ? in * Dim(s.strides[i]) : Dim(wanted.at(i));
        Dim total = Dim(s.strides[i]) * (in - Dim(1)) + Dim(extra[i] + s.span(i)) - out;
        if (!total.is_const()) {
            return std::nullopt;
        }
        int64_t half = floor_div(total, 2).value();
        int64_t low = s.auto_pad == "SAME_UPPER" ? half : total.value() - half;
        crop.low.push_back(low);
        crop.high.push_back(total.value() - low - extra[i]);
    }
    s.auto_pad.clear();
    return crop;
}

} // namespace

nv::ILayer* build_conv_transpose(const NodeView& r) {
    onnx::Sliding s =
        onnx::sliding(r.c, onnx::spatial_dims(r.c.type(0)), onnx::kernel_sizes(r.c, 1));
    std::optional<int64_t> per_group = r.size(1, 1);
    std::optional<Crop> crop = crop_of(r, s);
    if (!per_group || !crop) {
        return nullptr;
    }
    int64_t groups = onnx::positive(r.c, "group", 1);
    nv::ITensor& x = r.tensor(0);
    Parameters p(r);
    nv::IDeconvolutionLayer* layer =
        r.n.addDeconvolutionNd(x, *per_group * groups, dims_of(s.kernel),
                               p.kernel.value_or(nv::Weights{}), p.bias.value_or(nv::Weights{}));
    if (layer != nullptr) {
        p.set_inputs(*layer);
        set_steps(*layer, s, crop->low, crop->high);
        layer->setDilationNd(dims_of(s.dilations));
        layer->setNbGroups(groups);
    }
    return layer;
}

namespace {

// Whether the layer's rounding up adds no window that ONNX leaves out.
bool rounds_alike(const NodeView& r, const onnx::Sliding& s) {
    for (size_t i = 0; i < s.count(); ++i) {
        if (s.high[i].value() + s.strides[i] <= s.span(i)) {
            continue;
        }
        std::optional<int64_t> size = r.size(0, static_cast<int64_t>(i) + 2);
        if (!size) {
            return false;
        }
        int64_t whole = *size + s.low[i].value() + s.high[i].value() - s.span(i);
        int64_t windows = (whole + s.strides[i] - 1) / s.strides[i] + 1;
        if ((windows - 1) * s.strides[i] >= *size + s.low[i].value()) {
            return false;
        }
    }
    return true;
}

} // namespace

nv::ILayer* build_pool(const NodeView& r) {
    onnx::Sliding s = onnx::sliding(r.c, onnx::spatial_dims(r.c.type(0)));
    bool max = r.c.node.op_type == "MaxPool";
    bool ceil = r.c.i("ceil_mode", 0) != 0 && !is_same(s) && s.auto_pad != "VALID";
    if (r.c.wants(1) || !all_are(s.dilations, 1) || (ceil && !rounds_alike(r, s))) {
        return nullptr;
    }
    nv::IPoolingLayer* layer = r.n.addPoolingNd(
        r.tensor(0), max ? nv::PoolingType::kMAX : nv::PoolingType::kAVERAGE, dims_of(s.kernel));
    if (layer != nullptr) {
        Shape none(s.count(), 0);
        set_steps(*layer, s, is_same(s) ? none : *as_const(s.low),
                  is_same(s) ? none : *as_const(s.high));
        if (ceil) {
            layer->setPaddingMode(nv::PaddingMode::kEXPLICIT_ROUND_UP);
        }
        layer->setAverageCountExcludesPadding(r.c.i("count_include_pad", 0) == 0);
    }
    return layer;
}

nv::ILayer* build_global_pool(const NodeView& r) {
    bool max = r.c.node.op_type == "GlobalMaxPool";
    std::vector<int64_t> axes;
    for (int64_t i = 2; i < r.c.rank(0); ++i) {
        axes.push_back(i);
    }
    return axes.empty() ? nullptr
                        : r.n.addReduce(r.tensor(0),
                                        max ? nv::ReduceOperation::kMAX : nv::ReduceOperation::kAVG,
                                        mask_of(axes), true);
}

// --- sampling ------------------------------------------------------------------------------------

namespace {

template <class E>
struct Word {
    std::string_view word;
    E value;
};

template <class E, size_t n>
std::optional<E> find(const Word<E> (&words)[n], std::string_view word) {
    for (const Word<E>& w : words) {
        if (w.word == word) {
            return w.value;
        }
    }
    return std::nullopt;
}

constexpr Word<nv::InterpolationMode> interpolations[] = {
    {"nearest", nv::InterpolationMode::kNEAREST}, {"linear", nv::InterpolationMode::kLINEAR},
    {"bilinear", nv::InterpolationMode::kLINEAR}, {"cubic", nv::InterpolationMode::kCUBIC},
    {"bicubic", nv::InterpolationMode::kCUBIC},
};

constexpr Word<nv::ResizeCoordinateTransformation> transformations[] = {
    {"half_pixel", nv::ResizeCoordinateTransformation::kHALF_PIXEL},
    {"pytorch_half_pixel", nv::ResizeCoordinateTransformation::kHALF_PIXEL},
    {"asymmetric", nv::ResizeCoordinateTransformation::kASYMMETRIC},
    {"align_corners", nv::ResizeCoordinateTransformation::kALIGN_CORNERS},
};

constexpr Word<nv::ResizeRoundMode> roundings[] = {
    {"round_prefer_ceil", nv::ResizeRoundMode::kHALF_UP},
    {"round_prefer_floor", nv::ResizeRoundMode::kHALF_DOWN},
    {"floor", nv::ResizeRoundMode::kFLOOR},
    {"ceil", nv::ResizeRoundMode::kCEIL},
};

// One value per input dimension, from the values of some of them.
template <class T>
std::vector<T> for_all(const NodeView& r, const std::vector<T>& some, const std::vector<T>& rest) {
    std::vector<int64_t> axes = r.c.ints("axes");
    if (axes.empty()) {
        return some;
    }
    axes = normalize_axes(axes, r.c.rank(0));
    std::vector<T> out = rest;
    for (size_t i = 0; i < axes.size(); ++i) {
        out.at(static_cast<size_t>(axes[i])) = some.at(i);
    }
    return out;
}

std::vector<float> numbers(const Tensor& t) {
    std::vector<float> out;
    for (int64_t i = 0; i < t.count(); ++i) {
        out.push_back(static_cast<float>(t.get_f64(i)));
    }
    return out;
}

/// The target of a resize: one of them is set.
struct Target {
    std::vector<float> scales;
    std::vector<int64_t> sizes;
    nv::ITensor* input = nullptr;
};

std::optional<Target> target_of(const NodeView& r, int scales, int sizes) {
    auto rank = static_cast<size_t>(r.c.rank(0));
    Target t;
    bool by_scales = r.c.has(scales) && !product(r.c.type(scales).dims).is_const(0);
    if (by_scales) {
        std::optional<Tensor> known = r.constant(scales);
        if (known) {
            t.scales = for_all(r, numbers(*known), std::vector<float>(rank, 1));
        }
        return known && t.scales.size() == rank ? std::optional(t) : std::nullopt;
    }
    if (!r.c.has(sizes)) {
        return std::nullopt;
    }
    std::optional<std::vector<int64_t>> known = r.constant_ints(sizes);
    if (!known) {
        t.input = r.c.ints("axes").empty() ? &r.tensor(sizes) : nullptr;
        return t.input != nullptr ? std::optional(t) : std::nullopt;
    }
    std::vector<int64_t> rest(rank, -1);
    for (size_t i = 0; i < rank; ++i) {
        rest[i] = r.size(0, static_cast<int64_t>(i)).value_or(-1);
    }
    t.sizes = for_all(r, *known, rest);
    bool complete = std::find(t.sizes.begin(), t.sizes.end(), -1) == t.sizes.end();
    return complete && t.sizes.size() == rank ? std::optional(t) : std::nullopt;
}

nv::IResizeLayer* add_resize(const NodeView& r, const Target& t) {
    nv::IResizeLayer* layer = r.n.addResize(r.tensor(0));
    if (layer == nullptr) {
        return nullptr;
    }
    if (t.input != nullptr) {
        layer->setInput(1, *t.input);
    } else if (!t.scales.empty()) {
        layer->setScales(t.scales.data(), static_cast<int32_t>(t.scales.size()));
    } else {
        layer->setOutputDimensions(dims_of(t.sizes));
    }
    return layer;
}

} // namespace

nv::ILayer* build_resize(const NodeView& r) {
    if (r.c.opset < 11) {
        return build_upsample(r);
    }
    std::string coordinates = r.c.s("coordinate_transformation_mode", "half_pixel");
    auto mode = find(interpolations, r.c.s("mode", "nearest"));
    auto transformation = find(transformations, coordinates);
    auto rounding = find(roundings, r.c.s("nearest_mode", "round_prefer_floor"));
    bool plain =
        r.c.i("antialias", 0) == 0 && r.c.s("keep_aspect_ratio_policy", "stretch") == "stretch";
    if (!mode || !transformation || !rounding || !plain) {
        return nullptr;
    }
    std::optional<Target> target = target_of(r, 2, 3);
    nv::IResizeLayer* layer = target ? add_resize(r, *target) : nullptr;
    if (layer != nullptr) {
        layer->setResizeMode(*mode);
        layer->setCoordinateTransformation(*transformation);
        layer->setSelectorForSinglePixel(coordinates == "pytorch_half_pixel"
                                             ? nv::ResizeSelector::kUPPER
                                             : nv::ResizeSelector::kFORMULA);
        layer->setNearestRounding(*rounding);
        layer->setCubicCoeff(static_cast<float>(r.c.f("cubic_coeff_a", -0.75)));
        layer->setExcludeOutside(r.c.i("exclude_outside", 0) != 0);
    }
    return layer;
}

// Also Resize of opset 10, which rounds up when it shrinks.
nv::ILayer* build_upsample(const NodeView& r) {
    auto mode = find(interpolations, r.c.s("mode", "nearest"));
    if (!mode) {
        return nullptr;
    }
    std::optional<Target> target;
    if (r.c.node.op_type == "Upsample" && r.c.opset < 9) {
        std::vector<double> scales = r.c.floats("scales");
        target = Target{{scales.begin(), scales.end()}, {}, nullptr};
    } else {
        target = target_of(r, 1, -1);
    }
    if (!target ||
        (r.c.node.op_type == "Resize" && std::any_of(target->scales.begin(), target->scales.end(),
                                                     [](float s) { return s < 1; }))) {
        return nullptr;
    }
    nv::IResizeLayer* layer = add_resize(r, *target);
    if (layer != nullptr) {
        layer->setResizeMode(*mode);
        layer->setCoordinateTransformation(nv::ResizeCoordinateTransformation::kASYMMETRIC);
        layer->setNearestRounding(nv::ResizeRoundMode::kFLOOR);
    }
    return layer;
}

nv::ILayer* build_grid_sample(const NodeView& r) {
    constexpr Word<nv::SampleMode> paddings[] = {{"zeros", nv::SampleMode::kFILL},
                                                 {"border", nv::SampleMode::kCLAMP},
                                                 {"reflection", nv::SampleMode::kREFLECT}};
    auto mode = find(interpolations, r.c.s("mode", "linear"));
    auto padding = find(paddings, r.c.s("padding_mode", "zeros"));
    if (!mode || !padding || r.c.rank(0) != 4) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::IGridSampleLayer* layer = r.n.addGridSample(x, r.tensor(1));
    if (layer != nullptr) {
        layer->setInterpolationMode(*mode);
        layer->setSampleMode(*padding);
        layer->setAlignCorners(r.c.i("align_corners", 0) != 0);
    }
    return layer;
}

} // namespace ingot::api
