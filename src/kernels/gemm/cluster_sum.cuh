// SPDX-License-Identifier: Apache-2.0
// The blocks of a cluster that share a tile add their sums, in order of their ranks: each adds the
// rows [first, first + count) into its own tile, which the others do not read there.
DEVICE void cluster_sum(u8* tile, int splits, int first, int count, int tid, int threads) {
    constexpr int across = BN / 4;
    u32 base = smem_addr(tile);
#pragma unroll 1
    for (int e = tid; e < count * across; e += threads) {
        u32 at = ((first + e / across) * tile_pitch + e % across * 4) * 4;
        union {
            float f[4];
            ACC v[4];
        } x;
        Pack<ACC, 4> sum;
#pragma unroll
        for (int k = 0; k < 4; k++)
            sum.v[k] = (ACC)0;
#pragma unroll 1
        for (int s = 0; s < splits; s++) {
            ld_cluster4(x.f, base + at, s);
#pragma unroll
            for (int k = 0; k < 4; k++)
                sum.v[k] += x.v[k];
        }
        *(Pack<ACC, 4>*)(tile + at) = sum;
    }
}
