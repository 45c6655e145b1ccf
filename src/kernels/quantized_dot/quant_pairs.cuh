// SPDX-License-Identifier: Apache-2.0
// Columns in the form of tensor cores: quantised elements, Q_BITS wide and of Q_KIND as in
// quant_weights.cuh, become pairs of 16-bit floats (of bfloat16 where TA_BF16), exactly. Elements
// of 16 bits stay unchanged. Zero points in the form in which they are subtracted: from an element
// in the low bits of a word's halves, and from one in the next four.
struct Origin {
    u32 low, high;
    DEVICE void set(i32 zero) {
        const i32 n = zero + (Q_KIND != 1 ? 0 : Q_BITS == 4 ? 8 : 128);
#if TA_BF16
        low = Q_BITS == 4 ? (u32)(0xc300 + n) * 0x10001u : __float_as_uint(8388608.0f + (float)n);
        high = 0;
#else
        low = (u32)(0x6400 + n) * 0x10001u;
        high = (u32)(0xd400 + 16 * n) * 0x10001u;
#endif
    }
};

/// 8 elements as 4 words of pairs, in order; of 4 bits the first and the fifth, the second and the
/// sixth,
/// ...; of 8 bits in order.
DEVICE void q_pairs(u32* to, const u32* words, const Origin& o) {
#if Q_BITS == 16
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = words[i];
    (void)o;
#elif Q_BITS == 4
    const u32 w = words[0], next = w >> 8;
#if TA_BF16
    const u32 one = 0x3f803f80u, base = Q_KIND == 1 ? 0x43084308u : 0x43004300u;
    to[0] = fma_bf16x2(and_xor(w, 0x000f000fu, base), one, o.low);
    to[1] = fma_bf16x2(and_xor(w >> 4, 0x000f000fu, base), one, o.low);
    to[2] = fma_bf16x2(and_xor(next, 0x000f000fu, base), one, o.low);
    to[3] = fma_bf16x2(and_xor(next >> 4, 0x000f000fu, base), one, o.low);
#else
    const u32 sixteenth = 0x2c002c00u, low = Q_KIND == 1 ? 0x64086408u : 0x64006400u,
              high = Q_KIND == 1 ? 0x64806480u : 0x64006400u;
    to[0] = sub_f16x2(and_xor(w, 0x000f000fu, low), o.low);
    to[1] = fma_f16x2(and_xor(w, 0x00f000f0u, high), sixteenth, o.high);
    to[2] = sub_f16x2(and_xor(next, 0x000f000fu, low), o.low);
    to[3] = fma_f16x2(and_xor(next, 0x00f000f0u, high), sixteenth, o.high);
#endif
#else
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 w = words[i];
#if TA_BF16 && Q_KIND >= 2
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const u32 half = Q_KIND == 3
                                 ? (e == 0 ? pick_bytes<0x1404>(w, 0u) : pick_bytes<0x3424>(w, 0u))
                                 : f16x2_of_f8e4m3(w >> (16 * e));
            to[2 * i + e] = pack_bf16(f32_of_f16((u16)half), f32_of_f16((u16)(half >> 16)));
        }
#elif TA_BF16
        float f[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const u32 byte = ((Q_KIND == 1 ? w ^ 0x80808080u : w) >> (8 * e)) & 255u;
            f[e] = __uint_as_float(byte | 0x4b000000u) - __uint_as_float(o.low);
        }
        to[2 * i] = pack_bf16(f[0], f[1]);
        to[2 * i + 1] = pack_bf16(f[2], f[3]);
#elif Q_KIND == 2
        to[2 * i] = f16x2_of_f8e4m3(w);
        to[2 * i + 1] = f16x2_of_f8e4m3(w >> 16);
#elif Q_KIND == 3
        to[2 * i] = pick_bytes<0x1404>(w, 0u);
        to[2 * i + 1] = pick_bytes<0x3424>(w, 0u);
#else
        w = Q_KIND == 1 ? w ^ 0x80808080u : w;
        to[2 * i] = sub_f16x2(pick_bytes<0x4140>(w, 0x64646464u), o.low);
        to[2 * i + 1] = sub_f16x2(pick_bytes<0x4342>(w, 0x64646464u), o.low);
#endif
    }
#endif
}
