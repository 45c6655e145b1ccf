// SPDX-License-Identifier: Apache-2.0
// Follows wgmma_core.cuh, for operands of e4m3: wgmma keeps about 14 bits of their sums, so a slab
// is summed from zero, and its sums are added to those of the depth in f32. With two PARTS a
// warpgroup adds one slab while the next one is multiplied; with one, other warpgroups multiply
// meanwhile.

/// Starts the products of the stage at `at`: the rows of A that begin at byte `rows` of it, by all
/// of B.
DEVICE void start_part(Sums& part, u32 at, int rows) {
    wgmma_fence();
    u64 a = wgmma_desc(at + rows), b = wgmma_desc(at + slab_a);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
#pragma unroll
        for (int i = 0; i < MB; i++)
            wgmma<BN>(part.d[i], a + kk * 2 + i * 512, b + kk * 2, kk > 0);
    wgmma_commit();
}
DEVICE void add_part(Sums& sums, Sums& part) {
#pragma unroll
    for (int i = 0; i < MB; i++)
#pragma unroll
        for (int j = 0; j < BN / 2; j++) {
            opaque(part.d[i][j]); // is read behind the wait
            sums.d[i][j] += part.d[i][j];
        }
}

template <bool ON, class Stages>
DEVICE void accumulate(Sums& sums, u32 pipeline, u32 full, int begin, int end, int rows, int lane,
                       Turn turn, u32 other, Stages& stages) {
    static_assert(!ON && K_BLOCKS == 1, "a tile per block, a slab per stage");
    (void)other, (void)stages;
    int before = turn.stage;
    auto start = [&](Sums& part) {
        mbar_wait(full + 8 * turn.stage, turn.phase);
        start_part(part, pipeline + turn.stage * stage_bytes, rows);
        before = turn.stage;
        turn.advance();
    };
    auto release = [&](int stage) {
        if (lane == 0)
            mbar_arrive(full + 8 * (ST + stage));
    };
#if PARTS == 2
    Sums even = Unset(), odd = Unset();
    auto exchange = [&](Sums& next, Sums& last) {
        int done = before;
        start(next);
        wgmma_wait<1>();
        release(done);
        add_part(sums, last);
    };
    start(even);
    int k = begin + 1;
#pragma unroll 1
    for (; k + 1 < end; k += 2) {
        exchange(odd, even);
        exchange(even, odd);
    }
    if (k < end) {
        exchange(odd, even);
        wgmma_wait<0>();
        add_part(sums, odd);
    } else {
        wgmma_wait<0>();
        add_part(sums, even);
    }
#else
    Sums part = Unset();
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        start(part);
        wgmma_wait<0>();
        release(before);
        add_part(sums, part);
    }
#endif
}
