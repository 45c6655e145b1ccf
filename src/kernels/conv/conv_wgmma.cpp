// SPDX-License-Identifier: Apache-2.0
// Convolution by wgmma: a tile's rows are a patch of result positions (width x height x images);
// for every kernel position TMA fetches its inputs as a shifted box of x. Where windows walk three
// axes of one volume, positions along the first one take the place of images.
#include "kernels/contraction/cost.h"
#include "kernels/contraction/persistent.h"
#include "kernels/conv/algorithms.h"
#include "kernels/conv/patch_maps.h"
#include "kernels/conv/window_runs.h"

#include <optional>

namespace ingot::kernels {

namespace {

/// `struct Patch` of wgmma_core.cuh.
struct PatchArg {
    Sizes tiles, size, out;
    std::array<int64_t, 3> kernel, dilation, first;
    int64_t channel_steps = 0;
    int64_t channels = 0, results = 0; // of a group
    int64_t column_step = 0;

    int64_t count() const { return tiles[0] * tiles[1] * tiles[2]; }
};

/// The patch of at most `rows` positions that covers the results with the fewest tiles. In a volume
/// it may have any depth, else several images only where these are whole.
Sizes best_patch(const Sizes& out, int64_t rows, bool volume) {
    Sizes best = {1, 1, 1};
    int64_t fewest = INT64_MAX;
    for (int64_t w = 1; w <= std::min(rows, out[0]); ++w) {
        for (int64_t h = 1; h <= std::min(rows / w, out[1]); ++h) {
            bool whole = w == out[0] && h == out[1];
            int64_t n = whole || volume ? std::min(rows / (w * h), out[2]) : 1;
            int64_t count = div_up(out[0], w) * div_up(out[1], h) * div_up(out[2], n);
            // Among equals the wider one: its rows are closer in memory. In a volume, the smallest.
            bool better = volume ? w * h * n <= best[0] * best[1] * best[2] : w > best[0];
            if (count < fewest || (count == fewest && better)) {
                fewest = count;
                best = {w, h, n};
            }
        }
    }
    return best;
}

PatchArg patch_of(const ConvShape& s, int64_t rows) {
    const WindowArg& w = s.window;
    PatchArg p;
    bool volume = !w.flat();
    p.out = {w.out[2], w.out[1], volume ? w.out[0] : s.images};
    p.size = best_patch(p.out, rows, volume);
    for (size_t i = 0; i < 3; ++i) {
        p.tiles[i] = div_up(p.out[i], p.size[i]);
    }
    p.kernel = {w.kernel[2], w.kernel[1], w.kernel[0]};
    p.dilation = {w.dilation[2], w.dilation[1], w.dilation[0]};
    p.first = {-w.low[2], -w.low[1], -w.low[0]};
    p.channel_steps = div_up(w.channels, slab_elements(s.x.dtype));
    p.channels = w.channels;
    p.results = s.results / s.groups;
    p.column_step = w.step[2];
    return p;
}

bool runs(const ConvShape& s, const Arch& arch, bool tf32) {
    const WindowArg& w = s.window;
    bool types = wgmma_types(s.x.dtype, s.w.dtype, tf32);
    int64_t chunk = chunk_elements(s.x.dtype);
    auto chunked = [chunk](int64_t v) { return v % chunk == 0 && v >= 0; };
    bool places = w.flat() || (s.images == 1 && chunked(w.step[0]));
    bool steps = true;
    bool near = true;
    for (size_t i = 0; i < 3; ++i) {
        // Windows with steps between them must be single elements without padding.
        steps = steps && (w.stride[i] == 1 || (w.kernel[i] == 1 && w.low[i] == 0 &&
                                               (w.out[i] - 1) * w.stride[i] < w.in[i]));
        near = near && w.dilation[i] * w.kernel[i] < 1000;
    }
    // A step multiplies a whole slab of channels: narrower groups waste more than `mma.sync` does
    // (measured: 8 and 16 channels a group).
    bool filled = s.groups == 1 || 2 * w.channels >= slab_elements(s.x.dtype);
    return arch.has_wgmma() && types && filled && places && near && (steps || in_pairs(s)) &&
           w.step_c == 1 && chunked(w.step_n) && chunked(w.step[1]) && chunked(w.step[2]) &&
           chunked(s.x.view.offset) && chunked(s.w.view.offset) && chunked(s.w.view.strides[0]) &&
           chunked(s.tap_step) && s.w.view.strides[1] == 1 && w.channels % chunk == 0;
}

TensorMap input_map(const ConvShape& s, const PatchArg& p) {
    const WindowArg& w = s.window;
    DType type = s.x.dtype;
    TensorMap m = wgmma_map(type, 4);
    int64_t channels = w.channels * s.groups;
    if (in_pairs(s)) {
        auto size = [](int64_t v) { return static_cast<uint64_t>(v); };
        auto box = [](int64_t v) { return static_cast<uint32_t>(v); };
        int64_t rows = std::min<int64_t>(w.in[1], 2); // of a pair
        m.rank = 5;
        m.sizes = {size(p.column_step + channels), size(w.in[2] / 2), size(rows),
                   size(w.in[1] / rows), size(s.images)};
        int64_t element = bit_width(type) / 8;
        int64_t row = w.in[1] > 1 ? w.step[1] : channels;
        m.strides = {size(2 * element * p.column_step), size(element * row),
                     size(rows * element * row),
                     bytes_of_stride(type, w.step_n, s.images, w.in[1] * row)};
        m.box = {m.box[0], box(p.size[0]), 1, box(p.size[1]), box(p.size[2])};
        return m;
    }
    int64_t width = w.stride[2] == 1 ? w.in[2] : w.out[2];
    int64_t height = w.stride[1] == 1 ? w.in[1] : w.out[1];
    bool volume = !w.flat();
    int64_t depth = !volume ? s.images : w.stride[0] == 1 ? w.in[0] : w.out[0];
    int64_t step = volume ? w.step[0] * w.stride[0] : w.step_n;
    m.sizes = {static_cast<uint64_t>(channels), static_cast<uint64_t>(width),
               static_cast<uint64_t>(height), static_cast<uint64_t>(depth), 1};
    m.strides = {bytes_of_stride(type, w.step[2] * w.stride[2], width, channels),
                 bytes_of_stride(type, w.step[1] * w.stride[1], height, channels),
                 bytes_of_stride(type, step, depth, channels), 16};
    m.box = {m.box[0], static_cast<uint32_t>(p.size[0]), static_cast<uint32_t>(p.size[1]),
             static_cast<uint32_t>(p.size[2]), 1};
    return m;
}

/// Maps for panels of patches of stored view v, and for the last panel if it is narrower.
void add_panel_maps(Args& args, const WgmmaTile& t, const Contraction& c, size_t v,
                    const PatchArg& p) {
    const Operand& o = v == 0 ? c.out : c.epilogue.operands[v - 1];
    Sizes strides = *strides_along(c, v, p.out);
    TensorMap m;
    m.dtype = o.dtype;
    m.rank = 4;
    m.sizes[0] = static_cast<uint64_t>(c.n());
    m.box = {static_cast<uint32_t>(slab_elements(o.dtype)), 1, 1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
        m.sizes[i + 1] = static_cast<uint64_t>(p.out[i]);
        m.strides[i] = bytes_of_stride(o.dtype, strides[i], p.out[i], c.n());
        m.box[i + 1] = static_cast<uint32_t>(p.size[i]);
    }
    m.sizes[4] = 1;
    m.strides[3] = 16;
    args.map(o, m);
    if (t.tail(c) > 0) {
        m.box[0] = static_cast<uint32_t>(t.tail(c));
        m.swizzle128 = false;
        args.map(o, m);
    }
}

} // namespace

void add_wgmma_conv(std::vector<Tactic>& out, const ConvShape& shape, const Arch& arch, bool tf32) {
    ConvShape s = runs_as_channels(shape);
    if (s.out.view.count() == 0 || !runs(s, arch, tf32)) {
        return;
    }
    Contraction c = window_contraction(shape);
    std::span<const WgmmaTile> tiles = wgmma_tiles();
    bool tma_store = can_store_by_tma(c, patch_of(s, 1).out);
    // Measured: products of bytes in slabs that few channels fill, and the end of wide tiles.
    const double bytes_factor =
        is_integer(s.x.dtype) && s.channels < slab_elements(s.x.dtype) ? 1.6 : 1;
    constexpr double wide_bytes_us = 2;
    for (size_t i = 0; i < tiles.size(); ++i) {
        const WgmmaTile& t = tiles[i];
        PatchArg p = patch_of(s, t.bm());
        int64_t count = s.groups * p.count() * div_up(p.results, t.bn);
        int64_t steps = s.taps() * p.channel_steps;
        for (int split : wgmma_splits()) {
            if (!t.takes(c, steps, split, tma_store)) {
                continue;
            }
            double us = (1.03 + (t.groups == 1 ? 0.02 * static_cast<double>(i) : 0.0)) *
                            bytes_factor *
                            wgmma_cost_us(t, c, count, steps, split, bytes_moved(s), arch) +
                        (is_integer(s.x.dtype) && t.groups > 1 && !t.ping_pong ? wide_bytes_us : 0);
            out.push_back(make_tactic(ConvWgmma{{t.name(), split}}, us));
        }
    }
}

Emitted emit_wgmma_conv(const ConvShape& shape, const Arch& arch, const ConvWgmma& parameters,
                        int variant) {
    const WgmmaTile& form = parameters.form();
    int splits = parameters.splits;
    Contraction c = generalised(window_contraction(shape), form.variant(variant));
    ConvShape s = runs_as_channels(shape);
    PatchArg p = patch_of(s, form.bm());
    int64_t count = s.groups * p.count() * div_up(p.results, form.bn);
    WgmmaTile tile = fitted(form, c, count, splits, arch);
    Launch l = wgmma_launch(tile, c, count, splits, in_pairs(s) ? 2 : 1, arch);
    l.args.map(s.x, input_map(s, p));
    l.args.map(s.w, weight_map(s, tile.bn));
    if (tile.persistent) {
        PersistentEpilogue e = persistent_epilogue(c);
        add_panel_maps(l.args, tile, c, 0, p);
        if (e.full >= 0) {
            add_panel_maps(l.args, tile, c, static_cast<size_t>(e.full) + 1, p);
        }
    } else {
        l.args.pointer(s.out);
    }
    add_wgmma_numbers(l.args, tile,
                      {.splits = splits, .b_constant = s.w_constant, .backwards = s.backwards});
    std::vector<int64_t> words;
    for (const Sizes* a : {&p.tiles, &p.size, &p.out}) {
        words.insert(words.end(), a->begin(), a->end());
    }
    for (const auto* a : {&p.kernel, &p.dilation, &p.first}) {
        words.insert(words.end(), a->begin(), a->end());
    }
    words.insert(words.end(), {p.channel_steps, p.channels, p.results, p.column_step});
    add_words(l.args, words);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
