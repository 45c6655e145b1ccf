// SPDX-License-Identifier: Apache-2.0
// scatter that adds f32 where there are many indices, in no order and yet always the same: updates
// are multiples of a power of two, and sums of these are integers. The largest update of all fixes
// that power; an update that is no such multiple, or not finite, flags its element, and flagged
// elements are summed again by powers of their own. So what one pass sums is exact.
//   STEP 4  head.top: the largest exponent among finite updates, from 1.
//   STEP 5  sums of multiples; flags.
//   STEP 6  y = x + sum, rounded once; x and a fresh start where there is a flag.
//   STEP 7  flagged: the largest exponent of each; lists the updates that belong there.
//   STEP 8  flagged: sums of the listed updates. Where one is not finite, bits for +inf, -inf and
//           NaN instead.
//   STEP 9  flagged: y plus those sums.
// Scratch: head, sums and flags are cleared first. Traffic: updates twice, indices and x once, the
// result and 8 bytes for each element twice; with flags the indices once more.
struct Head {
    u32 top, flagged, listed;
};
DEVICE u32 exponent_of(float v) {
    return __float_as_uint(v) >> 23 & 255u;
}
/// `v` times the power of two that makes 2^bits of twice the exponent `top`.
DEVICE double scaled(float v, u32 top, i32 bits) {
    Bits64 scale;
    scale.u = (u64)(1023 + bits + 126 - (i32)top) << 52;
    return (double)v * scale.f;
}
DEVICE double unscaled(i64 sum, u32 top, i32 bits) {
    Bits64 scale;
    scale.u = (u64)(1023 - bits - 126 + (i32)top) << 52;
    return (double)sum * scale.f;
}
DEVICE u64 kind_of(float v) {
    return v != v ? 4u : v > 0.0f ? 1u : 2u;
}

#if STEP == 4
KERNEL void __launch_bounds__(256)
    scatter_largest(const T* __restrict__ updates, Head* head, Many m REST_PARAMS) {
    begin_kernel();
    __shared__ u32 tops[8];
    grid_wait();
    I t = (I)blockIdx.x * 2048 + threadIdx.x;
    u32 top = 0;
#pragma unroll
    for (int e = 0; e < 8; e++, t += 256) {
        if (t < (I)m.updates) {
            u32 r;
            const I i = row_of<ONE>(t, m, r);
            i64 at[3];
            rest_offsets(r, at REST_ARGS);
            const u32 own = exponent_of(widen(updates[(i64)i * m.u_row + at[1]])) + 1u;
            top = own > top && own < 256u ? own : top;
        }
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        const u32 other = exchange(top, d);
        top = other > top ? other : top;
    }
    if (threadIdx.x % 32 == 0)
        tops[threadIdx.x / 32] = top;
    sync();
    if (threadIdx.x == 0) {
#pragma unroll
        for (int w = 1; w < 8; w++)
            top = tops[w] > top ? tops[w] : top;
        atomicMax(&head->top, top);
    }
}
#elif STEP == 5 || STEP == 7
KERNEL void __launch_bounds__(256)
    scatter_sums(const T* __restrict__ updates, const Index* __restrict__ indices, Head* head,
                 u64* __restrict__ sums, u32* __restrict__ flags, u32* __restrict__ tops,
                 u32* __restrict__ list, u32* error, Many m REST_PARAMS) {
    begin_kernel();
    grid_wait();
#if STEP == 7
    if (head->flagged == 0)
        return;
#endif
    const I t = (I)blockIdx.x * 256 + threadIdx.x;
    if (t >= (I)m.updates)
        return;
    u32 r;
    const I i = row_of<ONE>(t, m, r);
    const i64 row = target_of(indices, i, m, error);
    if (row < 0)
        return;
    const i64 element = row * m.rest + r;
    u32* word = flags + element / 32;
    const u32 bit = 1u << (element % 32);
#if STEP == 7
    if (!(*word & bit))
        return;
#endif
    i64 at[3];
    rest_offsets(r, at REST_ARGS);
    const float v = widen(updates[(i64)i * m.u_row + at[1]]);
#if STEP == 7
    atomicMax(tops + element, exponent_of(v) + 1u);
    list[atomicAdd(&head->listed, 1u)] = (u32)t;
#else
    bool whole = exponent_of(v) < 255u;
    if (whole) {
        const double d = scaled(v, head->top - 1u, m.bits), n = rint(d);
        whole = d == n;
        if (n != 0.0)
            atomicAdd(sums + element, (u64)(i64)n);
    }
    if (!whole) {
        atomicOr(word, bit);
        head->flagged = 1u;
    }
#endif
}
#elif STEP == 6
KERNEL void __launch_bounds__(256)
    scatter_finish(float* y, const float* x, const Head* __restrict__ head, u64* sums,
                   const u32* __restrict__ flags, u32* __restrict__ tops, Many m REST_PARAMS) {
    begin_kernel();
    grid_wait();
    I t = (I)blockIdx.x * 1024 + threadIdx.x;
    const u32 top = head->top ? head->top - 1u : 0u;
#pragma unroll
    for (int e = 0; e < 4; e++, t += 256) {
        if (t >= (I)(m.rows * m.rest))
            return;
        u32 r;
        const I row = row_of<ONE>(t, m, r);
        i64 at[3];
        rest_offsets(r, at REST_ARGS);
        float v = x[(i64)row * m.x_row + at[2]];
        const i64 sum = (i64)sums[t];
        if (flags[t / 32] >> (t % 32) & 1u) {
            sums[t] = 0;
            tops[t] = 0;
        } else if (sum != 0) {
            v = (float)((double)v + unscaled(sum, top, m.bits));
        }
        y[(i64)row * m.y_row + at[0]] = v;
    }
}
#elif STEP == 8
KERNEL void __launch_bounds__(256)
    scatter_listed(const T* __restrict__ updates, const Index* __restrict__ indices,
                   const Head* __restrict__ head, u64* __restrict__ sums,
                   const u32* __restrict__ tops, const u32* __restrict__ list, Many m REST_PARAMS) {
    begin_kernel();
    grid_wait();
    const u32 listed = head->listed;
    for (u32 n = blockIdx.x * 256 + threadIdx.x; n < listed; n += gridDim.x * 256) {
        u32 r;
        const I i = row_of<ONE>((I)list[n], m, r);
        i64 at[3];
        rest_offsets(r, at REST_ARGS);
        const float v = widen(updates[(i64)i * m.u_row + at[1]]);
        const i64 element = (i64)indices[(i64)i * m.step] * m.rest + r;
        const u32 top = tops[element] - 1u;
        if (top != 255u)
            atomicAdd(sums + element, (u64)(i64)rint(scaled(v, top, m.bits)));
        else if (exponent_of(v) == 255u)
            atomicOr(sums + element, kind_of(v));
    }
}
#else
KERNEL void __launch_bounds__(256)
    scatter_finish_flagged(float* y, const Head* __restrict__ head, const u64* __restrict__ sums,
                           const u32* __restrict__ flags, const u32* __restrict__ tops,
                           Many m REST_PARAMS) {
    begin_kernel();
    grid_wait();
    if (head->flagged == 0)
        return;
    const i64 words = (m.rows * m.rest + 31) / 32;
    for (i64 w = (i64)blockIdx.x * 256 + threadIdx.x; w < words; w += gridDim.x * 256) {
        for (u32 left = flags[w]; left; left &= left - 1) {
            const I t = (I)(w * 32 + (31 - __clz((i32)(left & (~left + 1)))));
            u32 r;
            const I row = row_of<ONE>(t, m, r);
            i64 at[3];
            rest_offsets(r, at REST_ARGS);
            float* to = y + (i64)row * m.y_row + at[0];
            const float v = *to;
            const u32 before = exponent_of(v), most = tops[t] - 1u;
            if (most == 255u || before == 255u) {
                const u64 kinds = (most == 255u ? sums[t] : 0) | (before == 255u ? kind_of(v) : 0);
                *to = kinds == 1 ? ingot_inf() : kinds == 2 ? -ingot_inf() : ingot_nan();
            } else {
                *to = (float)((double)v + unscaled((i64)sums[t], most, m.bits));
            }
        }
    }
}
#endif
