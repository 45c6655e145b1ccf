// SPDX-License-Identifier: Apache-2.0
#include "lower/centred_weights.h"

#include "base/thread_pool.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

namespace ingot::plan {

namespace {

// Inline and without branches, so that loops over columns become vectors; for finite values.
struct Half {
    static constexpr float most = 65504.0F;
    static float wide(uint16_t h) {
        constexpr float up = 0x1p112F; // the difference of the exponents' biases
        float magnitude = std::bit_cast<float>((h & 0x7fffU) << 13) * up;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (h & 0x8000U) << 16);
    }
    static uint16_t narrow(float v) {
        constexpr float half = 0.5F; // its last place is that of denormals
        uint32_t bits = std::bit_cast<uint32_t>(v);
        uint32_t magnitude = bits & 0x7fffffffU;
        uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
        uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + half) -
                            std::bit_cast<uint32_t>(half);
        // All bits of `small` where it is so: compilers make a branch of a choice.
        auto small = static_cast<uint32_t>(-static_cast<int32_t>(magnitude < 113U << 23));
        return static_cast<uint16_t>((denormal & small) | (normal & ~small) |
                                     (bits >> 16 & 0x8000U));
    }
};
struct Brain {
    static constexpr float most = 0x1p127F;
    static float wide(uint16_t h) { return f32_from_bf16(h); }
    static uint16_t narrow(float v) {
        uint32_t u = std::bit_cast<uint32_t>(v);
        return static_cast<uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
    }
};

struct Work {
    const uint16_t* from;
    uint16_t* to;
    std::span<const float> scale, bias;
    std::span<float> shift;
    int64_t depth, columns;
    int64_t depth_step, column_step;
};

/// Columns of a pass: their sums stay in the first cache.
constexpr int64_t block = 64;

using Row = std::array<uint16_t, block>;
using Sums = std::array<float, block>;

/// One position of the depth: `count` columns.
void load(Row& row, const uint16_t* from, int64_t count, int64_t step) {
    if (step == 1) {
        std::memcpy(row.data(), from, static_cast<size_t>(count) * sizeof(uint16_t));
        return;
    }
    for (int64_t j = 0; j < count; ++j) {
        row[static_cast<size_t>(j)] = from[j * step];
    }
}

void store(uint16_t* to, const Row& row, int64_t count, int64_t step) {
    if (step == 1) {
        std::memcpy(to, row.data(), static_cast<size_t>(count) * sizeof(uint16_t));
        return;
    }
    for (int64_t j = 0; j < count; ++j) {
        to[j * step] = row[static_cast<size_t>(j)];
    }
}

/// Columns [first, first + count) of at most a block; whether they stay finite.
template <class Type>
bool centre(const Work& w, int64_t first, int64_t count) {
    Sums mean{};
    Sums shift{};
    Sums carry{};
    Sums largest{};
    Row row{};
    const uint16_t* from = w.from + first * w.column_step;
    uint16_t* to = w.to + first * w.column_step;
    for (int64_t k = 0; k < w.depth; ++k) {
        float scale = w.scale[static_cast<size_t>(k)];
        float bias = w.bias[static_cast<size_t>(k)];
        load(row, from + k * w.depth_step, count, w.column_step);
        for (size_t j = 0; j < block; ++j) {
            float x = Type::wide(row[j]);
            mean[j] += scale * x;
            shift[j] += bias * x;
        }
    }
    for (float& m : mean) {
        m /= static_cast<float>(w.depth);
    }
    for (int64_t k = 0; k < w.depth; ++k) {
        float scale = w.scale[static_cast<size_t>(k)];
        load(row, from + k * w.depth_step, count, w.column_step);
        for (size_t j = 0; j < block; ++j) {
            float exact = scale * Type::wide(row[j]) - mean[j] + carry[j];
            row[j] = Type::narrow(exact);
            carry[j] = exact - Type::wide(row[j]);
            float size = std::abs(exact);
            largest[j] = largest[j] < size ? size : largest[j];
        }
        store(to + k * w.depth_step, row, count, w.column_step);
    }
    bool finite = true;
    for (size_t j = 0; j < static_cast<size_t>(count); ++j) {
        w.shift[static_cast<size_t>(first) + j] = shift[j];
        // No comparison with NaN holds.
        finite = finite && largest[j] < Type::most && std::abs(mean[j]) < Type::most &&
                 std::abs(shift[j]) < Type::most;
    }
    return finite;
}

} // namespace

std::optional<CentredWeights> centred_weights(const Tensor& w, bool depth_first,
                                              std::span<const float> scale,
                                              std::span<const float> bias) {
    CentredWeights out;
    out.weights = Tensor::empty(w.dtype(), w.shape());
    int64_t depth = w.shape()[depth_first ? 0 : 1];
    int64_t columns = w.shape()[depth_first ? 1 : 0];
    out.shift.resize(static_cast<size_t>(columns));
    Work work{reinterpret_cast<const uint16_t*>(w.bytes().data()),
              reinterpret_cast<uint16_t*>(out.weights.mutable_bytes().data()),
              scale,
              bias,
              out.shift,
              depth,
              columns,
              depth_first ? columns : 1,
              depth_first ? 1 : depth};
    std::atomic<bool> finite = true;
    bool half = w.dtype() == DType::F16;
    ThreadPool::shared().parallel_for(
        (columns + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                int64_t count = std::min(block, columns - i * block);
                bool good = half ? centre<Half>(work, i * block, count)
                                 : centre<Brain>(work, i * block, count);
                if (!good) {
                    finite = false;
                }
            }
        });
    return finite ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace ingot::plan
