// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/spatial.h"

#include "base/error.h"

namespace ingot::onnx {

namespace {

std::vector<int64_t> list_or(const NodeContext& c, std::string_view name, size_t n,
                             int64_t fallback) {
    std::vector<int64_t> v = c.ints(name);
    if (v.empty()) {
        v.assign(n, fallback);
    }
    c.ensure(v.size() == n, "attribute '", name, "' has ", v.size(), " entries, expected ", n);
    for (int64_t x : v) {
        c.ensure(x >= fallback && x <= largest_count, "attribute '", name, "' is ", v,
                 ", expected numbers from ", fallback, " to ", largest_count);
    }
    return v;
}

// Pads that give ceil(size / stride) positions.
void same_pads(Sliding& s, const Dims& spatial) {
    for (size_t i = 0; i < s.count(); ++i) {
        Dim positions = ceil_div(spatial[i], s.strides[i]);
        Dim total = max((positions - Dim(1)) * Dim(s.strides[i]) + Dim(s.span(i)) - spatial[i], 0);
        Dim smaller = floor_div(total, 2);
        Dim larger = total - smaller;
        s.low.push_back(s.auto_pad == "SAME_UPPER" ? smaller : larger);
        s.high.push_back(s.auto_pad == "SAME_UPPER" ? larger : smaller);
    }
}

} // namespace

int64_t positive(const NodeContext& c, std::string_view name) {
    int64_t v = c.i(name);
    c.ensure(v >= 1 && v <= largest_count, "attribute '", name, "' is ", v,
             ", expected a number from 1 to ", largest_count);
    return v;
}

int64_t positive(const NodeContext& c, std::string_view name, int64_t fallback) {
    return c.has_attribute(name) ? positive(c, name) : fallback;
}

Sliding sliding(const NodeContext& c, const Dims& spatial, std::vector<int64_t> kernel) {
    size_t n = spatial.size();
    c.ensure(n >= 1, "the input has no spatial axes, expected [N,C,spatial...]");
    std::vector<int64_t> given = c.ints("kernel_shape");
    c.ensure(kernel.empty() || given.empty() || given == kernel, "attribute 'kernel_shape' is ",
             given, ", but the weights have ", kernel);
    Sliding s;
    s.kernel = kernel.empty() ? given : std::move(kernel);
    c.ensure(s.kernel.size() == n, "the kernel has ", s.kernel.size(), " sizes, the input ", n,
             " spatial axes");
    for (int64_t k : s.kernel) {
        c.ensure(k >= 1 && k <= largest_count, "the kernel's sizes are ", s.kernel,
                 ", expected numbers from 1 to ", largest_count);
    }
    s.strides = list_or(c, "strides", n, 1);
    s.dilations = list_or(c, "dilations", n, 1);
    s.auto_pad = c.s("auto_pad", "NOTSET");
    c.ensure(s.auto_pad == "NOTSET" || s.auto_pad == "VALID" || s.auto_pad == "SAME_UPPER" ||
                 s.auto_pad == "SAME_LOWER" || s.auto_pad.empty(),
             "attribute 'auto_pad' is '", s.auto_pad,
             "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
    if (s.auto_pad == "SAME_UPPER" || s.auto_pad == "SAME_LOWER") {
        same_pads(s, spatial);
        return s;
    }
    std::vector<int64_t> pads(2 * n, 0);
    if (s.auto_pad != "VALID") {
        pads = list_or(c, "pads", 2 * n, 0);
    }
    s.low.assign(pads.begin(), pads.begin() + static_cast<int64_t>(n));
    s.high.assign(pads.begin() + static_cast<int64_t>(n), pads.end());
    return s;
}

Dims spatial_dims(const Type& t) {
    require(t.rank() >= 3, ErrorCode::InvalidModel, "the input is ", t,
            ", expected [N,C,spatial...]");
    return Dims(t.dims.begin() + 2, t.dims.end());
}

std::vector<int64_t> kernel_sizes(const NodeContext& c, int weights) {
    std::vector<int64_t> sizes;
    for (const Dim& d : spatial_dims(c.type(weights))) {
        if (!d.is_const()) {
            c.refuse(RefusalKind::Dynamic, "the weights are ", c.type(weights),
                     "; the kernel's size must be known");
        }
        sizes.push_back(d.value());
    }
    return sizes;
}

Value per_channel(ingot::Graph& g, Value v, size_t spatial) {
    Dims d(spatial + 1, Dim(1));
    d[0] = product(ops::dims(g, v));
    return ops::reshape(g, v, d);
}

Value channels_first(ingot::Graph& g, Value x) {
    int64_t rank = g.type(x).rank();
    std::vector<int64_t> perm = {0, rank - 1};
    for (int64_t i = 1; i + 1 < rank; ++i) {
        perm.push_back(i);
    }
    return ops::permute(g, x, perm);
}

Value channels_last(ingot::Graph& g, Value x) {
    std::vector<int64_t> perm = {0};
    for (int64_t i = 2; i < g.type(x).rank(); ++i) {
        perm.push_back(i);
    }
    perm.push_back(1);
    return ops::permute(g, x, perm);
}

ops::Conv conv_attributes(const NodeContext& c, const Sliding& s, DType result) {
    return {s.strides, s.dilations, s.low, s.high, positive(c, "group", 1), result};
}

} // namespace ingot::onnx
