// SPDX-License-Identifier: Apache-2.0
// The blocks of a cluster that share a tile add their sums, in the order of their ranks: each adds
// the rows [first, first + count) to its own tile, where the others do not read them. A thread has
// `together` vectors in flight.
template <int together>
DEVICE void cluster_sum(u8* tile, int splits, int first, int count, int tid, int threads) {
    constexpr int across = BN / 4;
    u32 base = smem_addr(tile);
    int all = count * across;
#pragma unroll 1
    for (int e = tid; e < all; e += together * threads) {
        u32 at[together];
        Pack<ACC, 4> sum[together];
#pragma unroll
        for (int i = 0; i < together; i++) {
            int q = e + i * threads < all ? e + i * threads : e;
            at[i] = ((first + q / across) * tile_pitch + q % across * 4) * 4;
#pragma unroll
            for (int k = 0; k < 4; k++)
                sum[i].v[k] = (ACC)0;
        }
#pragma unroll 1
        for (int s = 0; s < splits; s++) {
            union {
                float f[4];
                ACC v[4];
            } x[together];
#pragma unroll
            for (int i = 0; i < together; i++)
                ld_cluster4(x[i].f, base + at[i], s);
#pragma unroll
            for (int i = 0; i < together; i++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum[i].v[k] += x[i].v[k];
        }
#pragma unroll
        for (int i = 0; i < together; i++)
            if (e + i * threads < all)
                *(Pack<ACC, 4>*)(tile + at[i]) = sum[i];
    }
}
