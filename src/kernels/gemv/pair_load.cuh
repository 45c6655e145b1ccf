// SPDX-License-Identifier: Apache-2.0
// Follows wgmma_core.cuh, for pairs of columns of B: TMA fetches one column of each half of B in
// turn, as a box of two halves.
struct LoadPairs {
    const TensorMap* map;
    i64 pair;
    int batch;
    DEVICE LoadPairs(const TensorMap* map_, const Place& at, int, i32 batched, const Patch&)
        : map(map_), pair(at.n0 / 2), batch(batched * (int)at.batch) {}
    DEVICE void operator()(u32 to, int k, u32 bar) {
        tma_load4(to, map, k * SLAB_K, 0, (int)pair, batch, bar);
    }
};

#define LoadB LoadPairs
