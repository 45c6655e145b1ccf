// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/patch_maps.h"

#include "kernels/contraction/cost.h"
#include "kernels/contraction/persistent.h"
#include "kernels/contraction/wgmma.h"

namespace ingot::kernels {

uint64_t bytes_of_stride(DType type, int64_t stride, int64_t size, int64_t otherwise) {
    return static_cast<uint64_t>((size > 1 ? stride : otherwise) * bit_width(type) / 8);
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
