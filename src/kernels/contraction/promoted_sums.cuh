// SPDX-License-Identifier: Apache-2.0
// Follows wgmma_core.cuh, for operands of e4m3: wgmma keeps about 14 bits of their sums, so a slab
// is summed from zero, and its sums are added to those of the depth in f32. With two PARTS a
// warpgroup adds one slab while the next one is multiplied; with one, other warpgroups multiply
// meanwhile, if there are any.

/// The sums of 64 rows over a slab.
struct Part {
    float d[BN / 2];
};
/// Starts the products of the stage at `at`: the 64 rows of A that begin at byte `rows` of it, by
/// all of B.
DEVICE void start_part(Part& part, u32 at, int rows) {
    wgmma_fence();
    u64 a = wgmma_desc(at + rows), b = wgmma_desc(at + slab_a);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        wgmma<BN>(part.d, a + kk * 2, b + kk * 2, kk > 0);
    wgmma_commit();
}
DEVICE void add_part(float* sums, Part& part) {
#pragma unroll
    for (int j = 0; j < BN / 2; j++) {
        opaque(part.d[j]); // is read behind the wait
        sums[j] += part.d[j];
    }
}

template <bool ON, class Stages>
DEVICE void accumulate(Sums& sums, u32 pipeline, u32 full, int begin, int end, int rows, int lane,
                       Turn turn, u32 other, Stages& stages) {
    static_assert(K_BLOCKS == 1 && PARTS <= (ON ? 1 : 2) && PARTS * MB <= 2, "a slab per stage");
    (void)stages;
    int before = turn.stage;
    auto release = [&](int stage) {
        if (lane == 0)
            mbar_arrive(full + 8 * (ST + stage));
    };
#if PARTS == 2
    (void)other;
    auto start = [&](Part& part) {
        mbar_wait(full + 8 * turn.stage, turn.phase);
        start_part(part, pipeline + turn.stage * stage_bytes, rows);
        before = turn.stage;
        turn.advance();
    };
    Part even, odd;
    auto exchange = [&](Part& next, Part& last) {
        int done = before;
        start(next);
        wgmma_wait<1>();
        release(done);
        add_part(sums.d[0], last);
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
        add_part(sums.d[0], odd);
    } else {
        wgmma_wait<0>();
        add_part(sums.d[0], even);
    }
#else
    (void)before;
    if (ON)
        sums = Sums();
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        mbar_wait(full + 8 * turn.stage, turn.phase);
        if (other != 0 && k == end - 1 && lane == 0)
            mbar_arrive(other);
#pragma unroll
        for (int i = 0; i < MB; i++) {
            Part part;
            start_part(part, pipeline + turn.stage * stage_bytes, rows + i * 8192);
            wgmma_wait<0>();
            if (i == MB - 1)
                release(turn.stage);
            add_part(sums.d[i], part);
        }
        turn.advance();
    }
#endif
}
