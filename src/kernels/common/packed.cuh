// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two 16-bit floats in a word, the first in its low half.
#ifdef INGOT_EMULATED
/// Bytes of b:a selected by the four nibbles of `order`, lowest first.
template <u32 ORDER>
DEVICE u32 pick_bytes(u32 a, u32 b) {
    const u64 both = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++)
        r |= (u32)(both >> (8 * (ORDER >> (4 * i) & 7u)) & 255u) << (8 * i);
    return r;
}
/// (a & mask) ^ bits in one instruction.
DEVICE u32 and_xor(u32 a, u32 mask, u32 bits) {
    return (a & mask) ^ bits;
}
DEVICE u32 sub_f16x2(u32 a, u32 b) {
    return pack_f16(f32_of_f16((u16)a) - f32_of_f16((u16)b),
                    f32_of_f16((u16)(a >> 16)) - f32_of_f16((u16)(b >> 16)));
}
DEVICE u32 fma_f16x2(u32 a, u32 b, u32 c) {
    return pack_f16(f32_of_f16((u16)a) * f32_of_f16((u16)b) + f32_of_f16((u16)c),
                    f32_of_f16((u16)(a >> 16)) * f32_of_f16((u16)(b >> 16)) +
                        f32_of_f16((u16)(c >> 16)));
}
DEVICE u32 fma_bf16x2(u32 a, u32 b, u32 c) {
    return pack_bf16(__uint_as_float(a << 16) * __uint_as_float(b << 16) + __uint_as_float(c << 16),
                     __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u) +
                         __uint_as_float(c & 0xffff0000u));
}
DEVICE u32 f16x2_of_f8e4m3(u32 two) {
    return pack_f16(f32_of_f8e4m3((u8)two), f32_of_f8e4m3((u8)(two >> 8)));
}
#else
template <u32 ORDER>
DEVICE u32 pick_bytes(u32 a, u32 b) {
    u32 r;
    asm("prmt.b32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "n"(ORDER));
    return r;
}
DEVICE u32 and_xor(u32 a, u32 mask, u32 bits) {
    u32 r;
    asm("lop3.b32 %0,%1,%2,%3,0x6a;" : "=r"(r) : "r"(a), "r"(mask), "r"(bits));
    return r;
}
DEVICE u32 sub_f16x2(u32 a, u32 b) {
    u32 r;
    asm("sub.rn.f16x2 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
DEVICE u32 fma_f16x2(u32 a, u32 b, u32 c) {
    u32 r;
    asm("fma.rn.f16x2 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
DEVICE u32 fma_bf16x2(u32 a, u32 b, u32 c) {
    u32 r;
    asm("fma.rn.bf16x2 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
/// Exact; converts the low 16 bits. 8.9 and later.
DEVICE u32 f16x2_of_f8e4m3(u32 two) {
    u32 r;
    asm("cvt.rn.f16x2.e4m3x2 %0,%1;" : "=r"(r) : "h"((u16)two));
    return r;
}
#endif
