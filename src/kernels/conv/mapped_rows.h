// SPDX-License-Identifier: Apache-2.0
// The host side of mapped_rows.cuh: groups whose last part is a pointwise convolution of what a map
// makes, in one launch. Families differ in where the map's operand comes from.
#pragma once

#include "kernels/conv/conv_shape.h"
#include "kernels/tactic.h"

#include <algorithm>

namespace ingot::kernels {

/// Channels of an aligned access, and those of a step of a matrix instruction.
inline constexpr int64_t row_vector = 8;
inline constexpr int64_t row_step = 16;

/// The parameters: a block makes bm positions x bn columns.
struct RowTile {
    int bm = 16, bn = 64;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("bm", self.bm);
        field("bn", self.bn);
    }
};

/// How the warps of a block share a tile, as in mapped_rows.cuh.
struct RowWarps {
    int m = 1, n = 1, k = 1;
    RowWarps(const RowTile& t, int threads);
    /// Sums of a result that are added up at the end: of every second step of each warp that shares
    /// the depth. Tiles with as many add in the same order.
    int sums(const RowTile& t) const { return t.bn / n <= 32 ? 2 * k : k; }
};

/// The tiles that suit so many results, of those that fit a block. `invariant`: those alone that
/// add in one order, which does not depend on the number of positions.
std::vector<RowTile> suited_tiles(std::vector<RowTile> tiles, int threads, int64_t results,
                                  bool invariant);
/// The tactics P of those tiles of which `shared` says at most `most` bytes, best first; the best
/// one alone where results must not depend on the batch.
template <class P, class Shared, class Cost>
std::vector<Tactic> row_tactics(std::span<const RowTile> tiles, int threads, int64_t results,
                                bool invariant, int64_t most, Shared shared, Cost cost_us) {
    std::vector<RowTile> fit(tiles.begin(), tiles.end());
    std::erase_if(fit, [&](const RowTile& t) { return shared(t) > most; });
    std::vector<Tactic> all;
    for (const RowTile& t : suited_tiles(std::move(fit), threads, results, invariant)) {
        all.push_back(make_tactic(P{t}, cost_us(t)));
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    all.resize(invariant ? std::min<size_t>(all.size(), 1) : all.size());
    return all;
}

/// Why x is no pictures of 16-bit floats, or why more than `most` elements are made of them, the
/// images of a batch of unknown size counted once.
std::optional<std::string> refuse_pictures(const Type& x, const Dims& made, int64_t most);
/// Why the map reads more than `main`, pictures, and a few operands by channel.
std::optional<std::string> refuse_channel_map(const Graph& g, const Node& map, Value main);
/// Why the nodes from `at` on are no pointwise convolution of the result before them, with at most
/// `most` results and at most one map behind it.
std::optional<std::string> refuse_pointwise(const Group& group, size_t at, int64_t most);
/// Whether channels are adjacent, in aligned vectors.
bool has_row_vectors(const View& x);

/// The convolution at `at` and what is behind it, as a problem of its own, which reads `between`.
ConvShape shape_behind(const Problem& p, size_t at, const Operand& between);
/// Whether all operands of the epilogue are constants of the graph.
bool has_constants(const Epilogue& e, const Problem& p);

/// Vectors of a row in shared memory, up to whole steps.
int64_t row_eights(int64_t channels);
/// Bytes of the tile's rows and columns there, which its sums overwrite.
int64_t row_bytes(int64_t channels, const RowTile& t, int threads);

/// `struct Rows` of mapped_rows.cuh.
struct RowsArg {
    uint64_t by_eights = 0;
    int32_t weight_step = 0, channels = 0, eights = 0, pitch = 0;
    int32_t blocks_n = 0, constant = 0;
};
RowsArg rows_arg(const ConvShape& s, const RowTile& t, bool constant);

/// A launch without its arguments: the map of rows, the product c and its epilogue.
Launch rows_launch(const Epilogue& map, const Contraction& c, const RowTile& t, int threads);
/// The map's operands, with their steps between channels, and those of the product's end.
void add_row_operands(Args& args, const Epilogue& map, const Contraction& c);

/// Counted for one block.
struct RowWork {
    int64_t blocks = 0; // in the grid
    int64_t shared = 0; // bytes
    int threads = 0;
    double chain = 0; // clocks from its start to its end
    double issue = 0; // clocks of an SM's schedulers
    double bytes = 0; // of DRAM, all blocks
};
double row_cost_us(const RowWork& w, const Arch& arch);
/// Instructions of a thread for its part of the end.
double end_instructions(const Epilogue& e, const RowTile& t, int threads);
double bytes_of(const Operand& o);

} // namespace ingot::kernels
