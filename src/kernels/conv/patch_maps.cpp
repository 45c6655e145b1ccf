// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/patch_maps.h"

#include "kernels/contraction/cost.h"
#include "kernels/contraction/persistent.h"
#include "kernels/contraction/wgmma.h"

namespace ingot::kernels {

uint64_t bytes_of_stride(DType type, int64_t stride, int64_t size, int64_t otherwise) {
    return static_cast<uint64_t>((size > 1 ? stride : otherwise) * bit_width(type) / 8);
}

Sizes result_sizes(const ConvShape& s) {
    const WindowArg& w = s.window;
    return {w.out[2], w.out[1], w.flat() ? s.images : w.out[0]};
}

TensorMap halo_map(const ConvShape& s, int64_t width, int64_t height) {
    const WindowArg& w = s.window;
    int64_t planes = w.flat() ? s.images : w.in[0];
    int64_t step = w.flat() ? w.step_n : w.step[0];
    TensorMap m = wgmma_map(s.x.dtype, 4);
    m.sizes = {static_cast<uint64_t>(w.channels), static_cast<uint64_t>(w.in[2]),
               static_cast<uint64_t>(w.in[1]), static_cast<uint64_t>(planes), 1};
    m.strides = {bytes_of_stride(s.x.dtype, w.step[2], w.in[2], w.channels),
                 bytes_of_stride(s.x.dtype, w.step[1], w.in[1], w.channels),
                 bytes_of_stride(s.x.dtype, step, planes, w.channels), 16};
    m.box = {m.box[0], static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1, 1};
    return m;
}

TensorMap panel_map(const Contraction& c, const Operand& o, size_t v, const Sizes& out,
                    int64_t width, int64_t height) {
    Sizes strides = *strides_along(c, v, out);
    TensorMap m;
    m.dtype = o.dtype;
    m.rank = 4;
    m.sizes[0] = static_cast<uint64_t>(c.n());
    m.box = {64, static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1, 1};
    for (size_t i = 0; i < 3; ++i) {
        m.sizes[i + 1] = static_cast<uint64_t>(out[i]);
        m.strides[i] = bytes_of_stride(o.dtype, strides[i], out[i], c.n());
    }
    m.sizes[4] = 1;
    m.strides[3] = 16;
    return m;
}

TensorMap weight_map(const ConvShape& s, int bn) {
    const WindowArg& w = s.window;
    TensorMap m = wgmma_map(s.w.dtype, 4);
    m.sizes = {static_cast<uint64_t>(w.channels), static_cast<uint64_t>(s.taps()),
               static_cast<uint64_t>(s.results), 1, 1};
    uint64_t row =
        bytes_of_stride(s.w.dtype, s.w.view.strides[0], s.results, s.taps() * w.channels);
    m.strides = {bytes_of_stride(s.w.dtype, s.tap_step, s.taps(), w.channels), row, row, 16};
    m.box[2] = static_cast<uint32_t>(bn);
    return m;
}

std::optional<Sizes> strides_along(const Contraction& c, size_t v, const Sizes& out) {
    const Shape& stored = c.rows.stored[v];
    auto offset = [&](int64_t index) {
        int64_t sum = 0;
        for (auto i = stored.size(); i-- > 0;) {
            sum += index % c.rows.sizes[i] * stored[i];
            index /= c.rows.sizes[i];
        }
        return sum;
    };
    Sizes strides{};
    int64_t step = 1;
    int64_t last = 0;
    for (size_t i = 0; i < 3; ++i) {
        strides[i] = out[i] > 1 ? offset(step) : 0;
        for (int64_t k = 2; k < out[i]; ++k) {
            if (offset(k * step) != k * strides[i]) {
                return std::nullopt;
            }
        }
        last += (out[i] - 1) * strides[i];
        step *= out[i];
    }
    return last == offset(step - 1) ? std::optional(strides) : std::nullopt;
}

bool can_store_by_tma(const Contraction& c, const Sizes& out) {
    PersistentEpilogue s = persistent_epilogue(c);
    return s.possible && c.batches() == 1 && strides_along(c, 0, out) &&
           strides_along(c, static_cast<size_t>(s.full) + 1, out);
}

double bytes_moved(const ConvShape& s) {
    double bytes = operand_bytes(s.epilogue);
    for (const Operand* o : {&s.x, &s.w, &s.out}) {
        bytes += static_cast<double>(o->view.count()) * bit_width(o->dtype) / 8;
    }
    return bytes;
}

} // namespace ingot::kernels
