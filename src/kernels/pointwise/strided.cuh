// SPDX-License-Identifier: Apache-2.0
// Functions of generated loops over strided operands: division by an argument, 4-bit elements. n /
// d for n below 2^31, where m = ceil(2^h / d) and h = 31 + ceil(log2(d)).
DEVICE u32 quotient(u32 n, u32 m, u32 h) {
    return (u32)(((u64)n * m) >> h);
}

template <class T>
DEVICE T load_nibble(const u8* p, i64 at) {
    T r;
    r.bits = (u8)((p[at >> 1] >> ((at & 1) * 4)) & 15);
    return r;
}
/// N elements from an even position; their N / 2 bytes are aligned (to 16 at most).
template <class T, int N>
DEVICE void load_nibbles(T* v, const u8* p, i64 at) {
    u8 b[N / 2];
    load_pack<u8, N / 2>(b, p + (at >> 1));
#pragma unroll
    for (int n = 0; n < N; ++n)
        v[n].bits = (u8)((b[n / 2] >> (n % 2 * 4)) & 15);
}
