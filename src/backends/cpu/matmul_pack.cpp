// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul_pack.h"

#include <algorithm>
#include <cstring>

namespace ingot::cpu {

namespace {

struct F8E4M3Bits {
    uint8_t bits;
    explicit operator float() const { return f32_from_f8e4m3(bits); }
};

struct F8E5M2Bits {
    uint8_t bits;
    explicit operator float() const { return f32_from_f8e5m2(bits); }
};

template <class T, class S>
T widen(S v) {
    if constexpr (std::is_integral_v<S>) {
        return static_cast<T>(static_cast<int64_t>(v));
    } else if constexpr (std::is_same_v<S, F8E4M3Bits> || std::is_same_v<S, F8E5M2Bits>) {
        return static_cast<T>(static_cast<float>(v));
    } else {
        return static_cast<T>(v);
    }
}

template <class T, class S>
void pack_rows(T* to, const S* base, std::span<const int64_t> depth, int64_t count, int64_t width) {
    for (size_t k = 0; k < depth.size(); ++k, to += width) {
        const S* from = base + depth[k];
        if constexpr (std::is_same_v<T, S>) {
            std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
        } else {
            for (int64_t i = 0; i < count; ++i) {
                to[i] = widen<T>(from[i]);
            }
        }
        std::fill(to + count, to + width, T(0));
    }
}

/// Sources contiguous along the depth are read in short runs, so that both sides stay in cache.
template <class T, class S>
void pack_columns(T* to, const S* base, std::span<const int64_t> outer, int64_t depth,
                  int64_t width) {
    constexpr int64_t run = 16;
    auto count = static_cast<int64_t>(outer.size());
    for (int64_t k0 = 0; k0 < depth; k0 += run) {
        int64_t n = std::min(run, depth - k0);
        T* block = to + k0 * width;
        for (int64_t i = 0; i < count; ++i) {
            const S* from = base + outer[static_cast<size_t>(i)] + k0;
            for (int64_t k = 0; k < n; ++k) {
                block[k * width + i] = widen<T>(from[k]);
            }
        }
        for (int64_t k = 0; k < n; ++k) {
            std::fill(block + k * width + count, block + (k + 1) * width, T(0));
        }
    }
}

template <class T, class S>
void pack_scattered(T* to, const S* base, std::span<const int64_t> outer,
                    std::span<const int64_t> depth, int64_t width) {
    auto count = static_cast<int64_t>(outer.size());
    for (int64_t d : depth) {
        const S* from = base + d;
        for (int64_t i = 0; i < count; ++i) {
            to[i] = widen<T>(from[outer[static_cast<size_t>(i)]]);
        }
        std::fill(to + count, to + width, T(0));
        to += width;
    }
}

template <class T, class S>
void pack(T* to, const void* memory, std::span<const int64_t> outer, std::span<const int64_t> depth,
          int64_t width) {
    const auto* base = static_cast<const S*>(memory);
    if (consecutive(outer)) {
        pack_rows<T, S>(to, base + outer[0], depth, static_cast<int64_t>(outer.size()), width);
    } else if (consecutive(depth)) {
        pack_columns<T, S>(to, base + depth[0], outer, static_cast<int64_t>(depth.size()), width);
    } else {
        pack_scattered<T, S>(to, base, outer, depth, width);
    }
}

/// Two elements of 16 bits, the first in the low half.
template <class S>
uint32_t pair_of(S first, S second) {
    auto low = static_cast<uint16_t>(static_cast<int16_t>(first));
    auto high = static_cast<uint16_t>(static_cast<int16_t>(second));
    return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
}

template <class S>
void pack_pairs(uint32_t* to, const void* memory, std::span<const int64_t> outer,
                std::span<const int64_t> depth, int64_t width) {
    const auto* base = static_cast<const S*>(memory);
    auto count = static_cast<int64_t>(outer.size());
    bool side_by_side = consecutive(outer);
    for (size_t k = 0; k < depth.size(); k += 2, to += width) {
        bool last = k + 1 == depth.size();
        const S* first = base + depth[k];
        const S* second = last ? first : base + depth[k + 1];
        if (side_by_side) {
            first += outer[0];
            second += outer[0];
            for (int64_t i = 0; i < count; ++i) {
                to[i] = pair_of<S>(first[i], second[i]);
            }
        } else {
            for (int64_t i = 0; i < count; ++i) {
                int64_t at = outer[static_cast<size_t>(i)];
                to[i] = pair_of<S>(first[at], second[at]);
            }
        }
        for (int64_t i = 0; last && i < count; ++i) {
            to[i] &= 0xFFFF;
        }
        std::fill(to + count, to + width, 0U);
    }
}

/// Where the bytes of a quad lie side by side, as they do in rows of activations.
void pack_whole_quads(uint32_t* to, const uint8_t* base, std::span<const int64_t> outer,
                      int64_t quads, int64_t width) {
    for (int64_t k = 0; k < quads; ++k, to += width, base += 4) {
        for (size_t i = 0; i < outer.size(); ++i) {
            std::memcpy(to + i, base + outer[i], 4);
        }
    }
}

} // namespace

void pack_quads(uint32_t* to, const void* memory, std::span<const int64_t> outer,
                std::span<const int64_t> depth, int64_t width) {
    const auto* base = static_cast<const uint8_t*>(memory);
    auto count = static_cast<int64_t>(outer.size());
    auto depths = static_cast<int64_t>(depth.size());
    int64_t whole = consecutive(depth) ? depths / 4 : 0;
    if (whole > 0) {
        pack_whole_quads(to, base + depth[0], outer, whole, width);
    }
    for (int64_t k = 0; k < depths; k += 4, to += width) {
        int64_t n = std::min<int64_t>(depths - k, 4);
        for (int64_t i = 0; k / 4 >= whole && i < count; ++i) {
            uint8_t quad[4] = {};
            for (int64_t j = 0; j < n; ++j) {
                quad[j] = base[outer[static_cast<size_t>(i)] + depth[static_cast<size_t>(k + j)]];
            }
            std::memcpy(to + i, quad, 4);
        }
        std::fill(to + count, to + width, 0U);
    }
}

PackPanel<uint32_t> pack_pairs_of(DType stored) {
    return stored == DType::I8 ? pack_pairs<int8_t> : pack_pairs<uint8_t>;
}

bool consecutive(std::span<const int64_t> offsets) {
    for (size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] != offsets[i - 1] + 1) {
            return false;
        }
    }
    return !offsets.empty();
}

template <class T>
PackPanel<T> pack_panel_of(DType stored) {
    if constexpr (std::is_same_v<T, double>) {
        return pack<T, double>;
    } else if constexpr (std::is_same_v<T, float>) {
        switch (stored) {
        case DType::F16:
            return pack<T, f16>;
        case DType::BF16:
            return pack<T, bf16>;
        case DType::F8E4M3:
            return pack<T, F8E4M3Bits>;
        case DType::F8E5M2:
            return pack<T, F8E5M2Bits>;
        default:
            return pack<T, float>;
        }
    } else {
        switch (stored) {
        case DType::I8:
            return pack<T, int8_t>;
        case DType::U8:
            return pack<T, uint8_t>;
        case DType::I16:
            return pack<T, int16_t>;
        case DType::U16:
            return pack<T, uint16_t>;
        case DType::I32:
            return pack<T, int32_t>;
        case DType::U32:
            return pack<T, uint32_t>;
        default:
            return pack<T, int64_t>;
        }
    }
}

template PackPanel<float> pack_panel_of<float>(DType);
template PackPanel<double> pack_panel_of<double>(DType);
template PackPanel<uint64_t> pack_panel_of<uint64_t>(DType);

} // namespace ingot::cpu
