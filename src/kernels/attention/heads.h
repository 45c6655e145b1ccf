// SPDX-License-Identifier: Apache-2.0
// The host side of all attention algorithms: the problem as kernels see it, and the tactics and
// launches of each algorithm.
#pragma once

#include "kernels/common/expr_text.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <algorithm>
#include <functional>

namespace ingot::kernels::attention {

/// `struct Attn` of attention_common.cuh.
struct AttnArg {
    int64_t q[4], k[4], v[4], o[4], m[4];
    double scale, softcap;
    int32_t groups, share, queries, keys, depth, values, causal, offset, splits, part;
};

struct Heads {
    AttnArg arg{};
    Operand q, k, v, mask, out;
    bool has_mask = false;
    bool mask_of_keys = false; // the same for all rows of a tile
    int64_t batch = 0;
    int64_t rows = 0; // of a group: query heads that share keys are rows of one tile
    /// Rounds results to bytes, in the group: its map, and the operands of one element, by
    /// position; the result itself has none.
    const Map* byte_map = nullptr;
    std::vector<std::optional<Operand>> scalars;
    DType dtype = DType::F32;

    /// Softcap, or a mask for every row: kernels with more text and registers.
    bool heavy() const { return arg.softcap > 0 || (has_mask && !mask_of_keys); }
    int64_t blocks(int64_t tile_rows) const;
    /// Elements of a key or a value, whichever has more.
    int64_t width() const { return std::max<int64_t>(arg.depth, arg.values); }
    /// Elements of a key and a value.
    int64_t pair() const { return int64_t{arg.depth} + arg.values; }
};
Heads heads_of(const Problem& p);

/// Whether rows are vectors of `unit` elements: the innermost axis is contiguous, and all else is
/// divisible by it.
bool by_vectors(const View& v, int64_t unit);
/// The number of parts of the keys that fills the GPU; each of at least `least`.
int64_t splits_of(const Problem& p, const Heads& s, int64_t blocks, int64_t least);
/// Defines MASK and M, and the other parameters of attention_softmax.cuh.
void add_mask(Defines& d, const Heads& s);
void add_softmax(Defines& d, const Heads& s, bool fma_exp);

/// The execution parameters of a tactic.
struct Schedule {
    int64_t splits = 1;  // parts of the keys, at most; a second kernel merges them
    int64_t keys = 32;   // of one step, of which a split has a multiple
    int64_t cluster = 1; // blocks that share the keys of the same rows
    /// The main kernel with its arguments, of heads whose splits are set.
    std::function<Launch(const Heads& s)> launch;
};

void add_mma_tactics(std::vector<Tactic>& list, const Problem& p, const Heads& s);
void add_wgmma_tactics(std::vector<Tactic>& list, const Problem& p, const Heads& s);
Tactic simt_tactic(const Problem& p, const Heads& s);

/// nullopt for tactics of another algorithm.
std::optional<Schedule> mma_schedule(const Problem& p, const Heads& s, const Tactic& t);
std::optional<Schedule> wgmma_schedule(const Problem& p, const Heads& s, const Tactic& t);
std::optional<Schedule> simt_schedule(const Problem& p, const Heads& s, const Tactic& t);
/// The kernel that merges the splits of `count` rows.
Launch merge_launch(const Heads& s, int64_t count);
/// Arguments after q, k and v: mask, results, sums in scratch memory, struct Attn.
void add_arguments(Launch& l, const Heads& s);
/// The last arguments of kernels that store results.
void add_scalars(Launch& l, const Heads& s);

} // namespace ingot::kernels::attention
