// SPDX-License-Identifier: Apache-2.0
// Maxima of two elements in a word, the first in its low half. Bytes are widened to 16 bits for
// them. NaN wins. KIND: the elements are 1 f16, 2 bf16, 3 i8, 4 u8.
template <int KIND>
struct Maxima {
    static constexpr int bytes = KIND > 2 ? 1 : 2; // of an element
    static constexpr u32 none = KIND == 1 ? 0xfc00fc00u : KIND == 4 ? 0u : 0xff80ff80u;
};
#ifdef INGOT_EMULATED
template <int KIND>
DEVICE u32 larger_16(u32 a, u32 b) {
    a &= 0xffffu;
    b &= 0xffffu;
    if (KIND > 2)
        return (i16)a > (i16)b ? a : b;
    const float x = KIND == 1 ? f32_of_f16((u16)a) : __uint_as_float(a << 16);
    const float y = KIND == 1 ? f32_of_f16((u16)b) : __uint_as_float(b << 16);
    return x != x || y != y ? 0x7fffu : x > y ? a : b;
}
template <int KIND>
DEVICE u32 larger(u32 a, u32 b) {
    return larger_16<KIND>(a, b) | larger_16<KIND>(a >> 16, b >> 16) << 16;
}
/// Bytes 2 * HALF and the next as numbers of 16 bits.
template <int KIND, int HALF>
DEVICE u32 two_of_four(u32 four) {
    const u32 first = four >> (16 * HALF) & 255u, second = four >> (16 * HALF + 8) & 255u;
    return KIND == 3 ? (u16)(i16)(i8)first | (u32)(u16)(i16)(i8)second << 16 : first | second << 16;
}
#else
template <int KIND>
DEVICE u32 larger(u32 a, u32 b) {
    u32 r;
    if constexpr (KIND == 1)
        asm("max.NaN.f16x2 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    else if constexpr (KIND == 2)
        asm("max.NaN.bf16x2 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    else
        asm("max.s16x2 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b)); // 9.0 and later
    return r;
}
template <int KIND, int HALF>
DEVICE u32 two_of_four(u32 four) {
    constexpr u32 order = KIND == 3 ? (HALF ? 0xb3a2 : 0x9180) : (HALF ? 0x4342 : 0x4140);
    u32 r;
    asm("prmt.b32 %0,%1,%2,%3;" : "=r"(r) : "r"(four), "r"(0), "n"(order));
    return r;
}
#endif
/// The words of V elements join the maxima so far, two elements a word.
template <int KIND, int V, class Words>
DEVICE void join_maxima(u32* best, const Words& words) {
#pragma unroll
    for (int i = 0; i < V / 2; i++) {
        u32 two = words.v[Maxima<KIND>::bytes == 2 ? i : i / 2];
        if (Maxima<KIND>::bytes == 1)
            two = i % 2 ? two_of_four<KIND, 1>(two) : two_of_four<KIND, 0>(two);
        best[i] = larger<KIND>(best[i], two);
    }
}
/// Element k of the maxima.
template <int KIND, class C>
DEVICE C maximum_of(const u32* best, int k) {
    const u32 bits = best[k / 2] >> (16 * (k % 2)) & 0xffffu;
    return KIND == 1   ? (C)f32_of_f16((u16)bits)
           : KIND == 2 ? (C)__uint_as_float(bits << 16)
                       : (C)(i16)bits;
}
