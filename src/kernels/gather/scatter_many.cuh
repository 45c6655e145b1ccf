// SPDX-License-Identifier: Apache-2.0
// scatter with many indices: a thread for each element of the updates, no order between threads, so
// everything that they share is an integer whose value does not depend on order.
//   STEP 0  clears `words`, u64s.
//   STEP 1  last[row]: the largest number of an update of that row (from 1); with PAYLOAD (rows of
//           one element) above the 32 bits of that update itself. A thread a row of the updates.
//   STEP 2  y: the last update of each row, or what x has there. With SPARSE only the updates'
//           threads look, where y starts as x.
//   STEP 3  integers: y, which starts as x, combined in place.
// I: u32 or u64, numbers of elements; T of updates, A of y and x, Index; ONE: rows of one element;
// REST_PARAMS and rest_offsets as in scatter.cuh.
#if STEP == 0
KERNEL void __launch_bounds__(256) scatter_clear(u64* __restrict__ words, i64 n) {
    begin_kernel();
    grid_wait();
    i64 i = (i64)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int e = 0; e < 4; e++, i += 256)
        if (i < n)
            words[i] = 0;
}
#else
#if STEP == 2 && !SPARSE
KERNEL void __launch_bounds__(256) scatter_last(A* y, const A* x, const T* __restrict__ updates,
                                                const void* __restrict__ last, Many m REST_PARAMS) {
    begin_kernel();
    grid_wait();
    I t = (I)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int e = 0; e < 4; e++, t += 256) {
        if (t >= (I)(m.rows * m.rest))
            return;
        u32 r;
        const I row = row_of<ONE>(t, m, r);
        i64 at[3];
        rest_offsets(r, at REST_ARGS);
        A v;
#if PAYLOAD
        const u64 word = ((const u64*)last)[row];
        union {
            u32 bits;
            T u;
        } value;
        value.bits = (u32)word;
        if (word != 0)
            v = value.u;
#else
        const u32 word = ((const u32*)last)[row];
        if (word != 0)
            v = updates[(i64)(word - 1) * m.u_row + at[1]];
#endif
        else
            v = x[(i64)row * m.x_row + at[2]];
        y[(i64)row * m.y_row + at[0]] = v;
    }
}
#else
KERNEL void __launch_bounds__(256)
    scatter_many(A* y, const T* __restrict__ updates, const Index* __restrict__ indices,
                 void* __restrict__ last, u32* error, Many m REST_PARAMS) {
    begin_kernel();
    grid_wait();
    const I t = (I)blockIdx.x * 256 + threadIdx.x;
#if STEP == 1
    if (t >= (I)(m.updates / m.rest))
        return;
    const I i = t;
    const u32 r = 0;
#else
    if (t >= (I)m.updates)
        return;
    u32 r;
    const I i = row_of<ONE>(t, m, r);
#endif
    const i64 row = target_of(indices, i, m, error);
    if (row < 0)
        return;
#if STEP == 1 && !PAYLOAD
    (void)r;
    atomicMax((u32*)last + row, (u32)i + 1u);
#else
    i64 at[3];
    rest_offsets(r, at REST_ARGS);
    const T u = updates[(i64)i * m.u_row + at[1]];
    A* to = y + row * m.y_row + at[0];
#if STEP == 1
    union {
        u32 bits;
        T u;
    } value;
    value.bits = 0;
    value.u = u;
    (void)to;
    atomicMax((u64*)last + row, (u64)(i + 1) << 32 | value.bits);
#elif STEP == 2
    if (((const u32*)last)[row] == (u32)i + 1u)
        *to = u;
#else
    COMBINE(to, u);
#endif
#endif
}
#endif
#endif
