// SPDX-License-Identifier: Apache-2.0
// Follows gemv_core.cuh, for pairs of columns with one result each: a warp has whole pairs.
static_assert(NR % 2 == 0, "whole pairs");

struct PairGemv : Gemv {
    DEVICE PairGemv(const Geometry& g, int share) : Gemv(g, share) {}

    DEVICE void store_by_epilogue(const ACC (&acc)[MR][NR], ACC* sums, int share, const Geometry& g,
                                  OUT* out EPI_PARAMS) const {
        gather(acc, sums);
        int first = 2 * lane, m = first / NR;
        i64 n = n0 + first % NR;
        if (part != 0 || first >= MR * NR || m >= g.m || n >= g.n)
            return;
        ACC v[2] = {(ACC)0, (ACC)0};
#pragma unroll 1
        for (int s = 0; s < share; s++)
#pragma unroll
            for (int k = 0; k < 2; k++)
                v[k] += sums[(warp + s) * MR * NR + first + k];
        Spot s;
        s.batch(g, batch);
        s.add_row(g, (u32)m);
        s.add_column(g, (u32)n);
        deliver(v, s.at, g, out EPI_PASS);
    }
};

#define Gemv PairGemv
