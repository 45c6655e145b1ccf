// SPDX-License-Identifier: Apache-2.0
// scatter with many indices: a thread for each element of the updates, no order between threads, so
// everything that they share is an integer whose value does not depend on order. y starts as x.
//   STEP 0  clears `words`, u64s.
//   STEP 1  last[row]: the largest number of an update of that row (from 1).
//   STEP 2  that update is stored.
//   STEP 3  integers: y combined in place.
//   STEP 4  f32 sums: top[element], the largest exponent among the updates.
//   STEP 5  updates as multiples of a power of two that the largest one fixes, summed as i64. Where
//           one is not finite, bits for +inf, -inf and NaN instead.
//   STEP 6  y plus those sums, rounded once.
// I: u32 or u64, numbers of elements; T of updates, A of y, Index; REST_PARAMS and rest_offsets as
// in scatter.cuh.
#if STEP == 0
KERNEL void __launch_bounds__(256) scatter_clear(u64* __restrict__ words, i64 n) {
    grid_wait();
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        words[i] = 0;
}
#else
struct Many {
    i64 updates; // elements of them
    i64 rows, rest, y_row, u_row, step;
    i32 bits; // of the largest exponent's multiple
};
DEVICE u32 exponent_of(float v) {
    return __float_as_uint(v) >> 23 & 255u;
}
DEVICE i64 multiple(float v, u32 top, i32 bits) {
    Bits64 scale;
    scale.u = (u64)(1023 + bits + 126 - (i32)top) << 52;
    return (i64)rint((double)v * scale.f);
}
DEVICE u64 kind_of(float v) {
    return v != v ? 4u : v > 0.0f ? 1u : 2u;
}

#if STEP == 6
KERNEL void __launch_bounds__(256)
    scatter_finish(float* y, const u32* __restrict__ top, const i64* __restrict__ sums,
                   Many m REST_PARAMS) {
    grid_wait();
    I t = (I)blockIdx.x * 256 + threadIdx.x;
    if (t >= (I)(m.rows * m.rest) || top[t] == 0)
        return;
    I row = t / (I)m.rest;
    i64 yo = 0, uo = 0;
    rest_offsets((u32)(t - row * (I)m.rest), yo, uo REST_ARGS);
    float* to = y + (i64)row * m.y_row + yo;
    const float v = *to;
    const u32 before = exponent_of(v), most = top[t] - 1;
    float r;
    if (most == 255u || before == 255u) {
        u64 kinds = (most == 255u ? (u64)sums[t] : 0) | (before == 255u ? kind_of(v) : 0);
        r = kinds == 1 ? ingot_inf() : kinds == 2 ? -ingot_inf() : ingot_nan();
    } else {
        Bits64 scale;
        scale.u = (u64)(1023 - m.bits - 126 + (i32)most) << 52;
        r = (float)((double)v + (double)sums[t] * scale.f);
    }
    *to = r;
}
#else
KERNEL void __launch_bounds__(256)
    scatter_many(A* y, const T* updates, const Index* indices, u32* __restrict__ words,
                 u64* __restrict__ sums, u32* error, Many m REST_PARAMS) {
    grid_wait();
    I t = (I)blockIdx.x * 256 + threadIdx.x;
    if (t >= (I)m.updates)
        return;
    I i = t / (I)m.rest;
    u32 r = (u32)(t - i * (I)m.rest);
    i64 row = (i64)indices[(i64)i * m.step];
    if (row < 0 || row >= m.rows) {
        *error = 1;
        return;
    }
#if STEP == 1
    if (r == 0)
        atomicMax(words + row, (u32)i + 1u);
#else
    i64 yo = 0, uo = 0;
    rest_offsets(r, yo, uo REST_ARGS);
    const T u = updates[(i64)i * m.u_row + uo];
    A* to = y + row * m.y_row + yo;
#if STEP == 2
    if (words[row] == (u32)i + 1u)
        *to = u;
#elif STEP == 3
    COMBINE(to, u);
#else
    const float v = (float)widen(u);
    const i64 at = row * m.rest + r;
#if STEP == 4
    atomicMax(words + at, exponent_of(v) + 1u);
#else
    const u32 top = words[at] - 1;
    if (top == 255u) {
        if (exponent_of(v) == 255u)
            atomicOr(sums + at, kind_of(v));
    } else {
        atomicAdd(sums + at, (u64)multiple(v, top, m.bits));
    }
#endif
#endif
#endif
}
#endif
#endif
