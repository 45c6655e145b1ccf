// SPDX-License-Identifier: Apache-2.0
#include "lower/centred_weights.h"

#include "base/thread_pool.h"
#include "ir/lazy_bytes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>

namespace ingot::plan {

namespace {

// Inline and without branches, so that loops over columns become vectors; for finite values.
struct Half {
    static constexpr float most = 65504.0F;
    static constexpr int16_t infinity = 0x7c00;
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
    static constexpr int16_t infinity = 0x7f80;
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
    if (step == 1 && count == block) { // in vectors, not as a string of bytes
        std::memcpy(row.data(), from, sizeof(row));
        return;
    }
    for (int64_t j = 0; j < count; ++j) {
        row[static_cast<size_t>(j)] = from[j * step];
    }
}

void store(uint16_t* to, const Row& row, int64_t count, int64_t step) {
    if (step == 1 && count == block) {
        std::memcpy(to, row.data(), sizeof(row));
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

/// Weights and the vectors that go into them.
struct Source {
    Tensor weights;
    bool depth_first = false;
    std::vector<float> scale, bias;

    int64_t depth() const { return weights.shape()[depth_first ? 0 : 1]; }
    int64_t columns() const { return weights.shape()[depth_first ? 1 : 0]; }
};

struct Centred {
    CentredWeights all;
    bool are_finite = false;
};

Centred centred_now(const Source& s, ThreadPool& pool) {
    CentredWeights out;
    out.weights = Tensor::empty(s.weights.dtype(), s.weights.shape());
    out.shift = Tensor::empty(DType::F32, {s.columns()});
    Work work{reinterpret_cast<const uint16_t*>(s.weights.bytes(pool).data()),
              reinterpret_cast<uint16_t*>(out.weights.mutable_bytes().data()),
              s.scale,
              s.bias,
              out.shift.as_mutable<float>(),
              s.depth(),
              s.columns(),
              s.depth_first ? s.columns() : 1,
              s.depth_first ? 1 : s.depth()};
    std::atomic<bool> finite = true;
    bool half = s.weights.dtype() == DType::F16;
    pool.parallel_for((work.columns + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t count = std::min(block, work.columns - i * block);
            bool good =
                half ? centre<Half>(work, i * block, count) : centre<Brain>(work, i * block, count);
            if (!good) {
                finite = false;
            }
        }
    });
    return {std::move(out), finite};
}

/// The bits of the largest magnitude. Magnitudes are in the order of their bits.
int16_t largest_magnitude(std::span<const int16_t> w, ThreadPool& pool) {
    constexpr int64_t piece = 1024; // rows
    auto larger = [](int16_t a, int16_t b) {
        auto magnitude = static_cast<int16_t>(b & 0x7fff);
        return a < magnitude ? magnitude : a;
    };
    std::atomic<int16_t> found = 0;
    pool.parallel_for(std::ssize(w) / block, piece, [&](int64_t begin, int64_t end) {
        std::array<int16_t, block> largest{};
        std::array<int16_t, block> row{};
        for (int64_t i = begin; i < end; ++i) {
            std::memcpy(row.data(), w.data() + i * block, sizeof(row));
            for (size_t j = 0; j < block; ++j) {
                largest[j] = larger(largest[j], row[j]);
            }
        }
        int16_t here = *std::max_element(largest.begin(), largest.end());
        for (int16_t known = found; known < here && !found.compare_exchange_weak(known, here);) {
        }
    });
    std::span<const int16_t> rest = w.last(w.size() % block);
    return std::accumulate(rest.begin(), rest.end(), found.load(), larger);
}

/// Whether the largest weight proves that no result of centre() is infinite or NaN.
template <class Type>
bool stays_finite(const Source& s, ThreadPool& pool) {
    constexpr double rounding = 2; // more than what roundings of so many terms add to a sum
    constexpr int64_t most_depth = int64_t{1} << 22;
    std::span<const std::byte> bytes = s.weights.bytes(pool);
    int16_t bits = largest_magnitude(
        {reinterpret_cast<const int16_t*>(bytes.data()), bytes.size() / sizeof(int16_t)}, pool);
    if (bits >= Type::infinity || s.depth() > most_depth) {
        return false;
    }
    double weight = static_cast<double>(Type::wide(static_cast<uint16_t>(bits)));
    double terms = 0; // of a column's sum of scaled weights
    double largest = 0;
    double shift = 0;
    for (size_t k = 0; k < s.scale.size(); ++k) {
        double scaled = std::abs(static_cast<double>(s.scale[k])) * weight;
        terms += scaled;
        largest = std::max(largest, scaled);
        shift += std::abs(static_cast<double>(s.bias[k])) * weight;
    }
    // An element less the mean, and a carried rounding, which is less than a hundredth of `most`.
    double centred = largest + rounding * terms / static_cast<double>(s.depth());
    constexpr double most = 0.9 * static_cast<double>(Type::most);
    constexpr double most_sum = std::numeric_limits<float>::max();
    return centred < most && rounding * terms < most_sum && rounding * shift < most;
}

/// Weights and shift of one source, made together.
class Centring {
public:
    explicit Centring(Source s) : source_(std::move(s)) {}
    const CentredWeights& get(ThreadPool& pool) {
        std::scoped_lock lock(mutex_);
        if (!made_.weights.defined()) {
            made_ = centred_now(source_, pool).all;
        }
        return made_;
    }

private:
    Source source_;
    std::mutex mutex_;
    CentredWeights made_;
};

/// Weights that are joined along their columns are centred part by part.
const JoinedTensors* columns_of(const Source& s) {
    const JoinedTensors* joined = s.weights.unjoined();
    bool by_columns =
        joined != nullptr &&
        std::all_of(joined->parts.begin(), joined->parts.end(), [&](const Tensor& part) {
            return part.rank() == 2 && part.shape()[s.depth_first ? 0 : 1] == s.depth();
        });
    return by_columns ? joined : nullptr;
}

} // namespace

std::optional<CentredWeights> centred_weights(const Tensor& w, bool depth_first,
                                              std::span<const float> scale,
                                              std::span<const float> bias) {
    Source s{w, depth_first, {scale.begin(), scale.end()}, {bias.begin(), bias.end()}};
    if (const JoinedTensors* joined = columns_of(s)) {
        std::vector<Tensor> weights;
        std::vector<Tensor> shifts;
        for (const Tensor& part : joined->parts) {
            std::optional<CentredWeights> c = centred_weights(part, depth_first, scale, bias);
            if (!c) {
                return std::nullopt;
            }
            weights.push_back(std::move(c->weights));
            shifts.push_back(std::move(c->shift));
        }
        return CentredWeights{Tensor::joined(std::move(weights), depth_first ? 1 : 0),
                              Tensor::joined(std::move(shifts), 0)};
    }
    ThreadPool& pool = ThreadPool::shared();
    if (w.dtype() == DType::F16 ? stays_finite<Half>(s, pool) : stays_finite<Brain>(s, pool)) {
        Shape columns = {s.columns()};
        auto both = std::make_shared<Centring>(std::move(s));
        return CentredWeights{Tensor::lazy(w.dtype(), w.shape(),
                                           [both](ThreadPool& p) { return both->get(p).weights; }),
                              Tensor::lazy(DType::F32, columns,
                                           [both](ThreadPool& p) { return both->get(p).shift; })};
    }
    Centred now = centred_now(s, pool);
    return now.are_finite ? std::optional(std::move(now.all)) : std::nullopt;
}

} // namespace ingot::plan
