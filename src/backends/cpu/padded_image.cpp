// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/padded_image.h"

#include "plan/program.h"

#include <algorithm>
#include <cstring>

namespace ingot::cpu {

constexpr int64_t grain_elements = 16 << 10;

int64_t product(const Shape& s) {
    int64_t n = 1;
    for (int64_t d : s) {
        n *= d;
    }
    return n;
}

PaddedImage::PaddedImage(const std::vector<SpatialAxis>& axes, int64_t image_channels)
    : channels(image_channels) {
    for (const SpatialAxis& a : axes) {
        sizes.push_back(a.in + a.low + a.high);
        pads = pads || a.low != 0 || a.high != 0;
    }
    strides.resize(sizes.size());
    int64_t stride = image_channels;
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= sizes[i];
    }
}

// Rows are runs along the innermost spatial axis.
void pad_image(const std::vector<SpatialAxis>& axes, const PaddedImage& image,
               const std::byte* from, std::byte* to, int64_t width, ThreadPool& pool) {
    size_t last = axes.size() - 1;
    int64_t rows = 1;
    for (size_t i = 0; i < last; ++i) {
        rows *= image.sizes[i];
    }
    const SpatialAxis& inner = axes[last];
    int64_t pixel = image.channels * width;
    int64_t row_bytes = image.sizes[last] * pixel;
    pool.parallel_for(rows, std::max<int64_t>(1, grain_elements / std::max<int64_t>(row_bytes, 1)),
                      [&](int64_t begin, int64_t end) {
                          for (int64_t r = begin; r < end; ++r) {
                              int64_t source = 0;
                              int64_t rest = r;
                              bool inside = true;
                              int64_t scale = 1;
                              for (size_t i = last; i-- > 0;) {
                                  int64_t at = rest % image.sizes[i] - axes[i].low;
                                  rest /= image.sizes[i];
                                  inside = inside && at >= 0 && at < axes[i].in;
                                  source += at * scale;
                                  scale *= axes[i].in;
                              }
                              std::byte* row = to + r * row_bytes;
                              if (!inside) {
                                  std::memset(row, 0, static_cast<size_t>(row_bytes));
                                  continue;
                              }
                              std::memset(row, 0, static_cast<size_t>(inner.low * pixel));
                              std::memcpy(row + inner.low * pixel, from + source * inner.in * pixel,
                                          static_cast<size_t>(inner.in * pixel));
                              std::memset(row + (inner.low + inner.in) * pixel, 0,
                                          static_cast<size_t>(inner.high * pixel));
                          }
                      });
}

std::vector<int64_t> multiples(int64_t n, int64_t stride) {
    return plan::offsets_of({n}, {stride});
}

std::vector<int64_t> sums(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    std::vector<int64_t> out;
    out.reserve(a.size() * b.size());
    for (int64_t x : a) {
        for (int64_t y : b) {
            out.push_back(x + y);
        }
    }
    return out;
}

} // namespace ingot::cpu
