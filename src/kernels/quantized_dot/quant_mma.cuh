// SPDX-License-Identifier: Apache-2.0
// Contraction with a quantised B on tensor cores: B is dequantised on its way into shared memory,
// where it has the layout of any other operand. Its packed bytes are fetched one step ahead.
struct Copies {
    static constexpr int rows_at_once = threads / chunks, na = BM / rows_at_once;
    static constexpr int groups = BK / 16; // of 16 elements, in a row of a step
    static constexpr int columns_at_once = threads / groups;
    static constexpr int nb = (BN + columns_at_once - 1) / columns_at_once;
    static constexpr int group_chunks = 16 / per_chunk;
    const IN* a;
    const u8* q;
    const SCALE* scales;
    const ZERO* zeros;
    u8* memory;
    i64 m0, n0;
    const Blocks& blocks;
    const Geometry& g;
    u32 oa[RM > 1 ? na : 1]; // offsets of the rows, kept where they take more than a product
    u32 words[nb][q_words];
    Scale scale[nb];
    bool inside; // the group that was fetched is
    DEVICE Copies(const IN* a_, const u8* q_, const SCALE* scales_, const ZERO* zeros_, u8* memory_,
                  const Tile& t, const Blocks& blocks_, const Geometry& g_)
        : a(a_), q(q_), scales(scales_), zeros(zeros_), memory(memory_), m0(t.m), n0(t.n),
          blocks(blocks_), g(g_) {
#if RM > 1
#pragma unroll
        for (int i = 0; i < na; i++)
            oa[i] = row_of_a(i);
#endif
        fetch(t.begin);
    }
    // Rows and columns past the edge repeat the last one.
    DEVICE u32 row_of_a(int i) const {
        i64 m = m0 + threadIdx.x / chunks + i * rows_at_once;
        return (u32)offset_of<RM>((u32)(m < g.m ? m : g.m - 1), g.rows, g.am);
    }
    DEVICE u32 column(int i) const {
        i64 n = n0 + threadIdx.x / groups + i * columns_at_once;
        return column_of_b((u32)(n < g.n ? n : g.n - 1), g);
    }
    DEVICE void fetch(int step) {
        i64 k = (i64)step * BK + threadIdx.x % groups * 16;
        inside = k < g.k;
        if (!inside)
            return;
#pragma unroll
        for (int i = 0; i < nb; i++) {
            q_read(words[i], q_bytes(q, column(i) * g.bn[0] + k));
            scale[i].read(scales, zeros, blocks, column(i), k);
        }
    }
    /// Stores the fetched elements, one column of the thread after another.
    DEVICE void dequantise(u32 to) {
        int row = threadIdx.x / groups;
#pragma unroll 1
        for (int i = 0; i < nb; i++, row += columns_at_once) {
            float v[16];
            q_widen(v, words[0], scale[0].origin());
            float step = scale[0].step();
            if (BN % columns_at_once == 0 || row < BN) {
#pragma unroll
                for (int c = 0; c < group_chunks; c++) {
                    Pack<IN, per_chunk> p;
#pragma unroll
                    for (int e = 0; e < per_chunk; e++)
                        p.v[e] = narrow<IN>(inside ? v[c * per_chunk + e] * step : 0.0f);
                    int chunk = threadIdx.x % groups * group_chunks + c;
                    *(Pack<IN, per_chunk>*)(memory + to + swizzled<row_bytes>(row, chunk)) = p;
                }
            }
#pragma unroll
            for (int j = 0; j + 1 < nb; j++) { // so that the next one has constant places
                scale[j] = scale[j + 1];
#pragma unroll
                for (int w = 0; w < q_words; w++)
                    words[j][w] = words[j + 1][w];
            }
        }
    }
    /// Steps come in order.
    DEVICE void operator()(int stage, int step) {
        u32 to = stage * stage_bytes;
        int chunk = threadIdx.x % chunks;
        i64 k = (i64)step * BK + chunk * per_chunk;
        int count = (int)(g.k - k < per_chunk ? g.k - k : per_chunk);
        if (count < 0)
            count = 0;
#pragma unroll
        for (int i = 0; i < na; i++)
            copy_chunk<16>(
                memory, to + swizzled<row_bytes>(threadIdx.x / chunks + i * rows_at_once, chunk),
                a + (count > 0 ? k : 0) + (RM > 1 ? oa[RM > 1 ? i : 0] : row_of_a(i)), 1, count);
        dequantise(to + a_bytes);
        fetch(step + 1);
    }
};

KERNEL void __launch_bounds__(threads, 1)
    quant_mma(const IN* __restrict__ a, const u8* __restrict__ q, const SCALE* __restrict__ scales,
              const ZERO* __restrict__ zeros, OUT* __restrict__ out, ACC* __restrict__ partial,
              i32 splits, const __grid_constant__ Blocks blocks,
              const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Tile t(g, splits);
    grid_wait();
    Copies copies(a, q, scales, zeros, memory, t, blocks, g);
    Sums sums;
    multiply(sums, smem_addr(memory), t.begin, t.end, copies);
    store_by_epilogue(sums, memory, t, splits, partial, g, out EPI_PASS);
}
