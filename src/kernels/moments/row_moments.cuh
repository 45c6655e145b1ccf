// SPDX-License-Identifier: Apache-2.0
// Moments of the chunks of rows. Four threads find those of a chunk. T x; KR axes outside a row;
// WHOLE: 8 elements are one aligned load.
KERNEL void __launch_bounds__(256)
    row_moments(const T* __restrict__ x, float* __restrict__ moments, Nest rows, i64 chunks,
                i64 x_step, i64 chunk_step, i64 part_step) {
    begin_kernel();
    grid_wait();
    i64 index = ((i64)blockIdx.x * 256 + threadIdx.x) / 4;
    if (index >= rows.count * chunks)
        return;
    i64 row = index / chunks, chunk = index - row * chunks, at[2];
    locate<KR, 2>(rows, row, at);
    const T* from = x + at[0] + (chunk * moment_chunk + (threadIdx.x & 3) * 8) * x_step;
    float v[8];
#if WHOLE
    Pack<T, 8> p = *(const Pack<T, 8>*)from;
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = widen(p.v[k]);
#else
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = widen(from[k * x_step]);
#endif
    end_main_loop();
    Moments m = chunk_moments(v);
    if ((threadIdx.x & 3) == 0) {
        float* to = moments + at[1] + chunk * chunk_step;
        to[0] = m.mean;
        to[part_step] = m.squares;
    }
}
