// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels for products of at most MR rows: a warp makes MR x NR results; `share`
// warps of a block split the depth and sum through shared memory in a fixed order.
struct Gemv {
    int lane, warp, groups, part;
    u32 batch;
    i64 n0; // the warp's first column
    DEVICE Gemv(const Geometry& g, int share) {
        lane = threadIdx.x & 31, warp = threadIdx.x >> 5, groups = 8 / share, part = warp % share;
        u32 tn = (u32)((g.n + groups * NR - 1) / (groups * NR));
        batch = blockIdx.x / tn;
        n0 = ((i64)(blockIdx.x - batch * tn) * groups + warp / share) * NR;
    }
    /// Rows and columns past the edge repeat the last one.
    DEVICE i64 row(int i, const Geometry& g) const {
        return offset_of<RM>((u32)(i < g.m ? i : g.m - 1), g.rows, g.am);
    }
    DEVICE u32 column(int j, const Geometry& g) const {
        return (u32)(n0 + j < g.n ? n0 + j : g.n - 1);
    }

    /// The sums of each warp, in shared memory.
    DEVICE void gather(const ACC (&acc)[MR][NR], ACC* sums) const {
        end_main_loop();
#pragma unroll
        for (int i = 0; i < MR; i++)
#pragma unroll
            for (int j = 0; j < NR; j++) {
                ACC v = acc[i][j];
#pragma unroll
                for (int m = 16; m > 0; m >>= 1)
                    v += shfl_xor(v, m);
                if (lane == 0)
                    sums[warp * MR * NR + i * NR + j] = v;
            }
        sync();
    }

    DEVICE void store_by_epilogue(const ACC (&acc)[MR][NR], ACC* sums, int share, const Geometry& g,
                                  OUT* out EPI_PARAMS) const {
        gather(acc, sums);
        int m = lane / NR;
        i64 n = n0 + lane % NR;
        if (part != 0 || lane >= MR * NR || m >= g.m || n >= g.n)
            return;
        ACC v[1] = {(ACC)0};
#pragma unroll 1
        for (int s = 0; s < share; s++)
            v[0] += sums[(warp + s) * MR * NR + lane];
        Spot s;
        s.batch(g, batch);
        s.add_row(g, (u32)m);
        s.add_column(g, (u32)n);
        deliver(v, s.at, g, out EPI_PASS);
    }
};
