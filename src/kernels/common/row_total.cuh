// SPDX-License-Identifier: Apache-2.0

/// Sums v over the `threads` threads of a row of a block, whole warps, in a fixed order. parts: a
/// float per warp of the block.
template <int threads>
DEVICE float row_total(float v, float* parts) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        v += shfl_xor(v, m);
    sync();
    if ((threadIdx.x & 31) == 0)
        parts[threadIdx.x / 32] = v;
    sync();
    const float* own = parts + threadIdx.x / threads * (threads / 32);
    v = own[0];
#pragma unroll
    for (int w = 1; w < threads / 32; w++)
        v += own[w];
    return v;
}
