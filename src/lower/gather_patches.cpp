// SPDX-License-Identifier: Apache-2.0
// gather_patches: a convolution whose windows lie side by side becomes a product over patches,
// where a row of a window is no whole number of 16 bytes (14 pixels of 3 channels): kernels for
// windows would copy it in small pieces, tile after tile. The patches are gathered once instead.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

namespace ingot::plan {

namespace {

/// Fewer taps are gathered as fast by the convolution.
constexpr int64_t least_taps = 16;

struct Patches {
    int64_t channels, height, width; // of a window
    int64_t rows, columns;           // windows of an image
    int64_t results;
};

std::optional<Patches> patches_of(const Graph& g, const Node& n, std::span<const Value> in) {
    const Type& x = g.type(in[0]);
    const Dims& w = g.type(in[1]).dims;
    const auto& a = n.as<ops::Conv>();
    bool plain = a.groups == 1 && x.rank() == 4 && is_float(x.dtype) && bit_width(x.dtype) >= 16 &&
                 a.dtype == x.dtype && a.strides.size() == 2;
    for (size_t i = 0; plain && i < 2; ++i) {
        plain = w[i + 2].is_const(a.strides[i]) && a.dilations[i] == 1 && a.low[i].is_const(0) &&
                a.high[i].is_const(0) && x.dims[i + 2].as_const();
    }
    std::optional<int64_t> channels = x.dims[1].as_const();
    std::optional<int64_t> results = w[0].as_const();
    if (!plain || !channels || !results) {
        return std::nullopt;
    }
    Patches p{*channels,
              a.strides[0],
              a.strides[1],
              *x.dims[2].as_const() / a.strides[0],
              *x.dims[3].as_const() / a.strides[1],
              *results};
    constexpr int64_t chunk = 128; // bits
    bool chunks = p.channels * p.width * bit_width(x.dtype) % chunk == 0;
    bool any = p.rows > 0 && p.columns > 0;
    return !chunks && any && p.height * p.width >= least_taps ? std::optional(p) : std::nullopt;
}

std::optional<Values> gather(Rewriter& r, const Node& n, std::span<const Value> in) {
    std::optional<Patches> p = n.is(ops::conv_def) ? patches_of(r.out(), n, in) : std::nullopt;
    if (!p) {
        return std::nullopt;
    }
    Graph& g = r.out();
    Dim images = g.type(in[0]).dims[0];
    DType type = g.type(in[0]).dtype;
    Value x = ops::slice(g, in[0], 2, 0, p->rows * p->height);
    x = ops::slice(g, x, 3, 0, p->columns * p->width);
    x = ops::reshape(g, x, {images, p->channels, p->rows, p->height, p->columns, p->width});
    x = ops::permute(g, x, {0, 2, 4, 1, 3, 5});
    int64_t depth = p->channels * p->height * p->width;
    x = ops::reshape(g, x, {images, p->rows, p->columns, depth});
    const Tensor* constant = g.constant(in[1]);
    Value w = constant == nullptr ? ops::reshape(g, in[1], {p->results, depth})
                                  : ops::constant(g, constant->reshaped({p->results, depth}));
    Dot d;
    d.a_contract = {3};
    d.b_contract = {1};
    d.dtype = type;
    return Values{ops::permute(g, ops::dot(g, d, x, w), {0, 3, 1, 2})};
}

} // namespace

Pass gather_patches(const KernelSet&) {
    return {
        .name = "gather_patches",
        .summary = "convolutions over windows side by side become products of patches",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, gather)); },
    };
}

} // namespace ingot::plan
