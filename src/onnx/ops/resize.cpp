// SPDX-License-Identifier: Apache-2.0
// Resize in all opsets, and Upsample.
#include "base/error.h"
#include "ir/value_reads.h"
#include "onnx/importer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot::onnx {

namespace {

// floor(size * scale): for a constant size in the f32 arithmetic of the operator's definition; else
// for scales that are fractions p / q with a small q.
Dim scaled_size(const NodeContext& c, const Dim& size, double scale) {
    c.ensure(scale >= 0x1p-31 && scale <= 0x1p31, "a scale is ", scale,
             ", expected a number from 2^-31 to 2^31");
    if (size.is_const()) {
        float product = static_cast<float>(size.value()) * static_cast<float>(scale);
        c.ensure(product < 0x1p53F, "an axis of size ", size, " times ", scale, " is too large");
        return static_cast<int64_t>(std::floor(product));
    }
    for (int64_t q = 1; q <= 4096; ++q) {
        auto p = static_cast<int64_t>(std::llround(scale * static_cast<double>(q)));
        if (p > 0 && static_cast<float>(static_cast<double>(p) / static_cast<double>(q)) ==
                         static_cast<float>(scale)) {
            return floor_div(size * Dim(p), q);
        }
    }
    c.refuse(RefusalKind::Dynamic, "a scale of ", scale, " for an axis of size ", size,
             ", which is not known; expected a simple fraction");
}

// The parameters of a Resize node, one entry for each of `axes`.
struct Request {
    std::vector<int64_t> axes;
    Dims sizes;
    std::vector<double> scales; // 0: derived from the sizes
    Value run_scales;           // when known only at run time
};

std::vector<int64_t> resized_axes(const NodeContext& c) {
    std::vector<int64_t> axes = c.ints("axes");
    if (axes.empty()) {
        axes.resize(static_cast<size_t>(c.rank(0)));
        std::iota(axes.begin(), axes.end(), 0);
    }
    return normalize_axes(axes, c.rank(0));
}

// For computed scales: sizes become symbols, and factors the ratios of the sizes.
Dims computed_sizes(NodeContext& c, int input, const std::vector<int64_t>& axes) {
    ingot::Graph& g = c.g;
    if (HostRef h = g.host(c.in(input)); h != nullptr && h->elements.size() == axes.size()) {
        ValueReads::note(g, c.in(input));
        Dims sizes;
        for (size_t i = 0; i < axes.size() && h->elements[i]; ++i) {
            sizes.push_back(floor_div(c.dim(0, axes[i]) * h->elements[i]->numerator,
                                      h->elements[i]->denominator));
        }
        if (sizes.size() == axes.size()) {
            return sizes;
        }
    }
    Dims in;
    for (int64_t a : axes) {
        in.push_back(c.dim(0, a));
    }
    Value product = ops::mul(g, ops::cast(g, ops::dims_tensor(g, in), c.dtype(input)), c.in(input));
    return ops::dims_from(g, ops::cast(g, ops::unary(g, ExprOp::Floor, product), DType::I64));
}

Request from_scales(NodeContext& c, int input, Request r) {
    auto known = c.maybe_constant(input);
    if (!known) {
        r.sizes = computed_sizes(c, input, r.axes);
        c.ensure(r.sizes.size() == r.axes.size(), "got ", r.sizes.size(), " scales for ",
                 r.axes.size(), " axes");
        r.scales.assign(r.axes.size(), 0);
        r.run_scales = c.in(input);
        return r;
    }
    c.ensure(known->count() == static_cast<int64_t>(r.axes.size()), "got ", known->count(),
             " scales for ", r.axes.size(), " axes");
    for (size_t i = 0; i < r.axes.size(); ++i) {
        double scale = known->get_f64(static_cast<int64_t>(i));
        r.scales.push_back(scale);
        r.sizes.push_back(scaled_size(c, c.dim(0, r.axes[i]), scale));
    }
    return r;
}

// The same for sizes known only at run time.
void keep_ratio_at_run(NodeContext& c, Request& r, bool smallest) {
    ingot::Graph& g = c.g;
    Dims in;
    for (int64_t a : r.axes) {
        in.push_back(c.dim(0, a));
    }
    Value have = ops::cast(g, ops::dims_tensor(g, in), DType::F64);
    Value want = ops::cast(g, ops::dims_tensor(g, r.sizes), DType::F64);
    Value scale = ops::reduce(g, smallest ? "min" : "max", ops::div(g, want, have), {0}, true);
    Value size = ops::unary(g, ExprOp::Floor, ops::add(g, ops::mul(g, have, scale), 0.5));
    r.sizes = ops::dims_from(g, ops::cast(g, size, DType::I64));
    r.run_scales = ops::broadcast_to(g, scale, {static_cast<int64_t>(r.axes.size())});
}

// Keeps the aspect ratio: a single scale for all axes, the smallest or the largest of the ratios.
void keep_ratio(NodeContext& c, Request& r, bool smallest) {
    double scale = 0;
    bool known = true;
    for (size_t i = 0; i < r.axes.size(); ++i) {
        const Dim& in = c.dim(0, r.axes[i]);
        known = known && in.is_const() && r.sizes[i].is_const();
        c.ensure(!in.is_const(0), "an axis of size 0 has no aspect ratio to keep");
    }
    if (!known) {
        return keep_ratio_at_run(c, r, smallest);
    }
    for (size_t i = 0; i < r.axes.size(); ++i) {
        const Dim& in = c.dim(0, r.axes[i]);
        double ratio = static_cast<double>(r.sizes[i].value()) / static_cast<double>(in.value());
        bool better = smallest ? ratio < scale : ratio > scale;
        scale = i == 0 || better ? ratio : scale;
    }
    for (size_t i = 0; i < r.axes.size(); ++i) {
        double size = scale * static_cast<double>(c.dim(0, r.axes[i]).value());
        c.ensure(size < 0x1p53, "an axis of size ", c.dim(0, r.axes[i]), " times ", scale,
                 " is too large");
        r.sizes[i] = static_cast<int64_t>(std::floor(size + 0.5));
        r.scales[i] = scale;
    }
}

Request from_sizes(NodeContext& c, int input, Request r) {
    r.sizes = ops::dims_from(c.g, c.in(input));
    c.ensure(r.sizes.size() == r.axes.size(), "got ", r.sizes.size(), " sizes for ", r.axes.size(),
             " axes");
    r.scales.assign(r.axes.size(), 0);
    std::string policy = c.s("keep_aspect_ratio_policy", "stretch");
    c.ensure(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
             "attribute 'keep_aspect_ratio_policy' is '", policy,
             "', expected stretch, not_larger or not_smaller");
    if (policy != "stretch") {
        keep_ratio(c, r, policy == "not_larger");
    }
    return r;
}

// The region that a resize reads, unless it is the whole input: starts, then ends.
struct Region {
    std::vector<double> known;
    Value run; // when known only at run time
};

// Omits axes that keep size and scale, unless a region of them is read or everything is known only
// at run time.
ops::Resize attributes_for(const NodeContext& c, const Request& r, const Region& roi) {
    ops::Resize a;
    std::vector<double> ends;
    size_t n = r.axes.size();
    for (size_t i = 0; i < n; ++i) {
        bool whole = roi.known.empty() || (roi.known[i] == 0 && roi.known[i + n] == 1);
        bool same_scale = r.scales[i] == 0 || r.scales[i] == 1;
        bool fixed = !r.run_scales.valid() && !roi.run.valid();
        if (fixed && whole && same_scale && r.sizes[i] == c.dim(0, r.axes[i])) {
            continue;
        }
        a.axes.push_back(r.axes[i]);
        a.sizes.push_back(r.sizes[i]);
        a.scales.push_back(r.scales[i]);
        if (!roi.known.empty()) {
            a.roi.push_back(roi.known[i]);
            ends.push_back(roi.known[i + n]);
        }
    }
    a.roi.insert(a.roi.end(), ends.begin(), ends.end());
    return a;
}

// Adds the node; parameters known only at run time become inputs.
Value resized(NodeContext& c, const ops::Resize& a, const Request& r, const Region& roi = {}) {
    Value scales = r.run_scales;
    if (roi.run.valid() && !scales.valid()) {
        auto count = static_cast<int64_t>(r.scales.size());
        scales = ops::constant(c.g, ingot::Tensor::of<double>(DType::F64, {count}, r.scales));
    }
    return ops::resize(c.g, a, c.in(0), scales, roi.run);
}

bool present(const NodeContext& c, int input) {
    return c.has(input) && !product(c.type(input).dims).is_const(0);
}

Region region(const NodeContext& c, size_t axes) {
    Region roi;
    auto t = c.maybe_constant(1);
    if (!t) {
        roi.run = c.in(1);
        return roi;
    }
    c.ensure(t->count() == static_cast<int64_t>(2 * axes), "roi has ", t->count(),
             " elements, expected ", 2 * axes);
    for (int64_t i = 0; i < t->count(); ++i) {
        roi.known.push_back(t->get_f64(i));
    }
    return roi;
}

Values resize11(NodeContext& c) {
    Request r{resized_axes(c), {}, {}, {}};
    bool by_scales = present(c, 2);
    c.ensure(by_scales != c.has(3), "expected either scales or sizes");
    r = by_scales ? from_scales(c, 2, std::move(r)) : from_sizes(c, 3, std::move(r));
    std::string coordinates = c.s("coordinate_transformation_mode", "half_pixel");
    Region roi;
    if (coordinates == "tf_crop_and_resize") {
        roi = region(c, r.axes.size());
    }
    ops::Resize a = attributes_for(c, r, roi);
    a.mode = c.s("mode", "nearest");
    a.coordinates = coordinates;
    a.nearest = c.s("nearest_mode", "round_prefer_floor");
    a.cubic = c.f("cubic_coeff_a", -0.75);
    a.extrapolation = c.f("extrapolation_value", 0);
    a.antialias = c.i("antialias", 0) != 0 && a.mode != "nearest";
    a.exclude_outside = c.i("exclude_outside", 0) != 0 && a.mode != "nearest";
    return {resized(c, a, r, roi)};
}

Values upsampled(NodeContext& c, const Request& r) {
    ops::Resize a = attributes_for(c, r, {});
    std::string mode = c.s("mode", "nearest");
    a.mode = mode == "bilinear" ? "linear" : mode;
    a.coordinates = "asymmetric";
    a.nearest = "floor";
    return {resized(c, a, r)};
}

Values upsample9(NodeContext& c) {
    return upsampled(c, from_scales(c, 1, {resized_axes(c), {}, {}, {}}));
}

// Like Upsample, but shrinking axes take the next element, others the previous one.
Values resize10(NodeContext& c) {
    Request all = from_scales(c, 1, {resized_axes(c), {}, {}, {}});
    if (c.s("mode", "nearest") != "nearest" || all.run_scales.valid()) {
        return upsampled(c, all);
    }
    Value x = c.in(0);
    for (bool shrinking : {false, true}) {
        Request some;
        for (size_t i = 0; i < all.axes.size(); ++i) {
            if ((all.scales[i] != 0 && all.scales[i] < 1) == shrinking) {
                some.axes.push_back(all.axes[i]);
                some.sizes.push_back(all.sizes[i]);
                some.scales.push_back(all.scales[i]);
            }
        }
        ops::Resize a = attributes_for(c, some, {});
        a.coordinates = "asymmetric";
        a.nearest = shrinking ? "ceil" : "floor";
        x = ops::resize(c.g, a, x);
    }
    return {x};
}

Values upsample7(NodeContext& c) {
    Request r{resized_axes(c), {}, {}, {}};
    r.scales = c.floats("scales");
    c.ensure(r.scales.size() == r.axes.size(), "got ", r.scales.size(), " scales for ",
             r.axes.size(), " axes");
    for (size_t i = 0; i < r.axes.size(); ++i) {
        r.sizes.push_back(scaled_size(c, c.dim(0, r.axes[i]), r.scales[i]));
    }
    return upsampled(c, r);
}

const ImporterRow rows[] = {
    {"", "Resize", 10, resize10, no_shapes},
    {"", "Resize", 11, resize11, shape_inputs({3})},
    {"", "Upsample", 7, upsample7, no_shapes},
    {"", "Upsample", 9, upsample9, no_shapes},
};

} // namespace

extern const ImporterTable resize_importers;
const ImporterTable resize_importers = rows;

} // namespace ingot::onnx
