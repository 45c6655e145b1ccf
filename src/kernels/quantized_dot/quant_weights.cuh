// SPDX-License-Identifier: Apache-2.0
// Quantised elements of B: Q_BITS wide, of Q_KIND 0 (unsigned), 1 (signed), 2 (e4m3) or 3 (e5m2),
// with a scale of type SCALE and, under HAS_ZERO, a zero point of type ZERO for each block of the
// depth of a column. They are read in groups of 16 from one block.
constexpr int q_words = Q_BITS / 2; // of 16 elements

/// The column of B for column n of the product: PAIRED ones alternate between its two halves.
DEVICE u32 column_of_b(u32 n, const Geometry& g) {
#if HEAD_PAIRS
    const u32 pair = n / 2, head = pair / HEAD_PAIRS;
    return (2 * head + n % 2) * HEAD_PAIRS + pair % HEAD_PAIRS;
#endif
    return PAIRED ? n / 2 + n % 2 * (u32)(g.n / 2) : n;
}

struct Blocks {
    i64 block; // elements of the depth that share a scale
    i64 scale_n, scale_k, zero_n, zero_k;
};

/// The bytes of the element with an (even, for 4 bits) index.
DEVICE const u8* q_bytes(const u8* q, i64 index) {
    return q + (Q_BITS == 4 ? index >> 1 : index);
}

struct Scale {
    SCALE scale;
#if HAS_ZERO
    ZERO zero;
#endif
    DEVICE void read(const SCALE* scales, const ZERO* zeros, const Blocks& b, u32 column, i64 k) {
        u32 at = (u32)k / (u32)b.block;
        scale = scales[column * b.scale_n + at * b.scale_k];
#if HAS_ZERO
        zero = zeros[column * b.zero_n + at * b.zero_k];
#endif
        (void)zeros;
    }
    DEVICE float step() const {
        return (float)widen(scale);
    }
    DEVICE float origin() const {
#if HAS_ZERO
        return (float)widen(zero);
#else
        return 0.0f;
#endif
    }
};

DEVICE float q_float(u8 bits) {
    return Q_KIND == 2 ? f32_of_f8e4m3(bits) : f32_of_f8e5m2(bits);
}

/// One element minus its zero point.
DEVICE float q_element(const u8* q, i64 index, float zero) {
    u32 bits = q[Q_BITS == 4 ? index >> 1 : index];
    if (Q_BITS == 4)
        bits = (bits >> (4 * (index & 1))) & 15u;
    if (Q_KIND >= 2)
        return q_float((u8)bits) - zero;
    const u32 sign = Q_KIND == 1 ? 1u << (Q_BITS - 1) : 0u;
    return (float)(i32)((bits ^ sign) - sign) - zero;
}

DEVICE void q_read(u32* words, const u8* from) {
#if Q_BITS == 4
    Pack<u32, 2> v = *(const Pack<u32, 2>*)from;
    words[0] = v.v[0], words[1] = v.v[1];
#else
    uint4 v = ld_stream(from);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
#endif
}

/// 16 elements minus their zero point, exact: an integer becomes the low bits of 2^23.
DEVICE void q_widen(float* to, const u32* words, float zero) {
    const u32 signs = Q_KIND != 1 ? 0u : Q_BITS == 4 ? 0x88888888u : 0x80808080u;
    const float offset = 8388608.0f + (Q_KIND != 1 ? 0.0f : Q_BITS == 4 ? 8.0f : 128.0f) + zero;
    constexpr int per_word = 32 / Q_BITS;
#pragma unroll
    for (int w = 0; w < q_words; w++) {
        u32 word = words[w] ^ signs;
#pragma unroll
        for (int e = 0; e < per_word; e++) {
            u32 bits = (word >> (e * Q_BITS)) & ((1u << Q_BITS) - 1u);
            to[w * per_word + e] = Q_KIND >= 2 ? q_float((u8)bits) - zero
                                               : __uint_as_float(bits | 0x4b000000u) - offset;
        }
    }
}
