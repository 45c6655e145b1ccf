// SPDX-License-Identifier: Apache-2.0
#include "lower/packed_transpose.h"

#include "base/thread_pool.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::plan {

namespace {

/// Rows and columns of a tile: 8 bytes of two elements in both directions.
constexpr int64_t tile = 16;
constexpr int64_t tile_bytes = tile / 2;

using Words = std::array<uint64_t, tile_bytes>;

/// Exchanges the bits `low` of a word with the complementary bits of the word `step` rows away.
void exchange(Words& w, size_t step, unsigned bits, uint64_t low) {
    for (size_t i = 0; i < w.size(); ++i) {
        if ((i & step) == 0) {
            uint64_t differ = ((w[i] >> bits) ^ w[i + step]) & low;
            w[i] ^= differ << bits;
            w[i + step] ^= differ;
        }
    }
}

/// 8 x 8 bytes, one word per row.
void transpose_bytes(Words& w) {
    exchange(w, 4, 32, 0x00000000ffffffffU);
    exchange(w, 2, 16, 0x0000ffff0000ffffU);
    exchange(w, 1, 8, 0x00ff00ff00ff00ffU);
}

/// 16 x 16 elements; steps between rows in bytes.
void transpose_tile(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step) {
    constexpr uint64_t first = 0x0f0f0f0f0f0f0f0fU; // first elements of the bytes
    Words even{}; // columns: word i holds those of rows 2 i and 2 i + 1
    Words odd{};
    for (size_t i = 0; i < even.size(); ++i) {
        uint64_t a = 0;
        uint64_t b = 0;
        const std::byte* row = from + static_cast<int64_t>(2 * i) * from_step;
        std::memcpy(&a, row, sizeof a);
        std::memcpy(&b, row + from_step, sizeof b);
        even[i] = (a & first) | (b & first) << 4;
        odd[i] = (a >> 4 & first) | (b & ~first);
    }
    transpose_bytes(even);
    transpose_bytes(odd);
    for (size_t i = 0; i < even.size(); ++i) {
        std::byte* row = to + static_cast<int64_t>(2 * i) * to_step;
        std::memcpy(row, &even[i], sizeof even[i]);
        std::memcpy(row + to_step, &odd[i], sizeof odd[i]);
    }
}

struct Matrix {
    const std::byte* from;
    std::byte* to;
    int64_t rows, columns; // of the source

    /// Moves elements one by one; `to` holds zeros there.
    void move(int64_t r0, int64_t r1, int64_t c0, int64_t c1) const {
        for (int64_t c = c0; c < c1; ++c) {
            for (int64_t r = r0; r < r1; ++r) {
                int64_t f = r * columns + c;
                int64_t at = c * rows + r;
                auto bits = static_cast<uint32_t>(from[f / 2]) >> (f % 2 * 4) & 15U;
                to[at / 2] |= static_cast<std::byte>(bits << (at % 2 * 4));
            }
        }
    }

    /// Columns of whole bytes on both sides.
    void move_tiles(int64_t c0, int64_t c1) const {
        int64_t whole = rows / tile * tile;
        for (int64_t r = 0; r < whole; r += tile) {
            for (int64_t c = c0; c < c1; c += tile) {
                transpose_tile(to + (c * rows + r) / 2, rows / 2, from + (r * columns + c) / 2,
                               columns / 2);
            }
        }
        move(whole, rows, c0, c1);
    }
};

} // namespace

Tensor transposed_packed(const Tensor& t) {
    int64_t rows = t.shape()[0];
    int64_t columns = t.shape()[1];
    Tensor out = Tensor::zeros(t.dtype(), {columns, rows});
    Matrix m{t.bytes().data(), out.mutable_bytes().data(), rows, columns};
    if (rows % 2 != 0 || columns % 2 != 0) { // a byte may hold parts of two columns
        m.move(0, rows, 0, columns);
        return out;
    }
    // A task writes whole rows of some columns, a few pages at a time, and reads whole cache lines.
    constexpr int64_t task_columns = 128;
    int64_t whole = columns / tile * tile;
    ThreadPool::shared().parallel_for(
        (whole + task_columns - 1) / task_columns, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                m.move_tiles(i * task_columns, std::min(whole, (i + 1) * task_columns));
            }
        });
    m.move(0, rows, whole, columns);
    return out;
}

} // namespace ingot::plan
