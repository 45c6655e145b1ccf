// SPDX-License-Identifier: Apache-2.0
// Nests of loops with strides, and exchange of values between the threads of a warp or block, for
// families that work on rows. Sizes of the axes in use and their strides in each view; the host
// fills the same struct.
struct Nest {
    i64 count;
    i64 sizes[8];
    i64 strides[8][8];
};
/// Offsets of element `index` in NV views.
template <int KR, int NV>
DEVICE void locate(const Nest& n, i64 index, i64* at) {
#pragma unroll
    for (int v = 0; v < NV; v++)
        at[v] = 0;
    if (index >> 32) {
#pragma unroll
        for (int k = KR - 1; k >= 0; k--) {
            i64 q = k ? index / n.sizes[k] : 0, r = index - q * n.sizes[k];
#pragma unroll
            for (int v = 0; v < NV; v++)
                at[v] += r * n.strides[v][k];
            index = q;
        }
        return;
    }
    u32 i = (u32)index;
#pragma unroll
    for (int k = KR - 1; k >= 0; k--) {
        u32 q = k ? i / (u32)n.sizes[k] : 0u, r = i - q * (u32)n.sizes[k];
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] += (i64)r * n.strides[v][k];
        i = q;
    }
}

union Bits64 {
    double f;
    i64 i;
    u64 u;
};
DEVICE i32 exchange(i32 v, int m) {
    return (i32)shfl_xor((u32)v, m);
}
DEVICE u32 exchange(u32 v, int m) {
    return shfl_xor(v, m);
}
DEVICE float exchange(float v, int m) {
    return shfl_xor(v, m);
}
DEVICE u64 exchange(u64 v, int m) {
    return shfl_xor(v, m);
}
DEVICE i64 exchange(i64 v, int m) {
    return (i64)shfl_xor((u64)v, m);
}
DEVICE double exchange(double v, int m) {
    Bits64 b;
    b.f = v;
    b.u = shfl_xor(b.u, m);
    return b.f;
}
