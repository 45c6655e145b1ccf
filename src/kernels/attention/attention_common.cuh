// SPDX-License-Identifier: Apache-2.0
// Shared by the attention kernels: extents, strides, masks, and the kernel that merges splits. The
// query heads that share keys are rows of one tile: row r of `share * queries` is query r % queries
// of head r / queries in its group.
struct Attn {
    i64 q[4], k[4], v[4], o[4], m[4]; // strides of [B,H,S,D], and of the mask over [B,H,S,T]
    double scale, softcap;
    i32 groups, share, queries, keys, depth, values, causal, offset, splits, part;
};
/// The keys [first, last) that are visible to some row of a tile in this split.
DEVICE void key_range(const Attn& a, int split, int m0, int rows, int& first, int& last) {
    first = split * a.part;
    last = first + a.part < a.keys ? first + a.part : a.keys;
    if (a.causal) {
        int s0 = m0 % a.queries, top = s0 + rows - 1 < a.queries ? s0 + rows - 1 : a.queries - 1;
        int end = top + a.offset + 1;
        if (end < last)
            last = end;
    }
    if (last < first)
        last = first;
}
/// The first key that is hidden from some row of a tile.
DEVICE int first_hidden(const Attn& a, int m0, int rows, int last) {
    int least = m0 % a.queries;
    if (least + rows > a.queries)
        least = 0;
    return a.causal && least + a.offset + 1 < last ? least + a.offset + 1 : last;
}
