// SPDX-License-Identifier: Apache-2.0
// Rows without their mean, divided by their deviation. A warp makes a row, by the moments of its
// chunks; or, where VECTORS is not 0, by moments that it finds itself: a thread then holds VECTORS
// times 8 elements of the row. T x and result; KR axes outside a row; WHOLE: 8 elements are one
// aligned load and store.
DEVICE Pack<T, 8> read_8(const T* from, i64 step) {
#if WHOLE
    return *(const Pack<T, 8>*)from;
#else
    Pack<T, 8> p;
#pragma unroll
    for (int k = 0; k < 8; k++)
        p.v[k] = from[k * step];
    return p;
#endif
}
/// Stores 8 elements of a row without `mean`, times `factor`.
DEVICE void write_8(T* to, i64 step, Pack<T, 8> p, float mean, float factor) {
#pragma unroll
    for (int k = 0; k < 8; k++)
        p.v[k] = narrow<T>((widen(p.v[k]) - mean) * factor);
#if WHOLE
    *(Pack<T, 8>*)to = p;
#else
#pragma unroll
    for (int k = 0; k < 8; k++)
        to[k * step] = p.v[k];
#endif
}
DEVICE float warp_sum(float v) {
#pragma unroll
    for (int i = 16; i > 0; i >>= 1)
        v += shfl_xor(v, i);
    return v;
}

KERNEL void __launch_bounds__(256)
    moment_norm(const T* __restrict__ x, const float* __restrict__ moments, T* __restrict__ out,
                Nest rows, i64 chunks, i64 x_step, i64 chunk_step, i64 part_step, i64 out_step,
                float epsilon) {
    begin_kernel();
    grid_wait();
    i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= rows.count)
        return;
    const int lane = threadIdx.x & 31, count = (int)chunks * moment_chunk;
    i64 at[3];
    locate<KR, 3>(rows, row, at);
    const T* from = x + at[0];
    T* to = out + at[2];
#if VECTORS
    Pack<T, 8> held[VECTORS];
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int j = i * 256 + lane * 8;
        if (j < count)
            held[i] = read_8(from + j * x_step, x_step);
    }
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        if (i * 256 + lane * 8 < count) {
#pragma unroll
            for (int k = 0; k < 8; k++)
                sum += widen(held[i].v[k]);
        }
    const float share = 1.0f / (float)count, mean = warp_sum(sum) * share;
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        if (i * 256 + lane * 8 < count) {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                float d = widen(held[i].v[k]) - mean;
                squares += d * d;
            }
        }
    const float factor = 1.0f / ingot_sqrt(warp_sum(squares) * share + epsilon);
    end_main_loop();
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int j = i * 256 + lane * 8;
        if (j < count)
            write_8(to + j * out_step, out_step, held[i], mean, factor);
    }
#else
    const float* own = moments + at[1];
    MergedMoments m(own[0]);
    for (i64 c = lane; c < chunks; c += 32)
        m.add(own[c * chunk_step], own[c * chunk_step + part_step]);
    m.sum = warp_sum(m.sum);
    m.squares = warp_sum(m.squares);
    const float mean = m.mean((float)chunks), factor = m.factor((float)chunks, epsilon);
    end_main_loop();
    for (int j = lane * 8; j < count; j += 256)
        write_8(to + j * out_step, out_step, read_8(from + j * x_step, x_step), mean, factor);
#endif
}
