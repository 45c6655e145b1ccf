// SPDX-License-Identifier: Apache-2.0
// Floats rounded to 8 bits, and bounded before: an instruction each. NaN stays until it is rounded,
// to 0 where the result is an integer.
#ifdef INGOT_EMULATED
DEVICE float bound_below(float x, float bound) {
    return x > bound || x != x ? x : bound;
}
DEVICE float bound_above(float x, float bound) {
    return x < bound || x != x ? x : bound;
}
DEVICE i8 round_to_i8(float x) {
    return (i8)(x != x ? 0.0f : rintf(bound_above(bound_below(x, -128.0f), 127.0f)));
}
DEVICE u8 round_to_u8(float x) {
    return (u8)(x != x ? 0.0f : rintf(bound_above(bound_below(x, 0.0f), 255.0f)));
}
DEVICE u32 pack_i8(float x, float y) {
    return (u32)(u8)round_to_i8(x) | (u32)(u8)round_to_i8(y) << 8;
}
DEVICE u32 pack_u8(float x, float y) {
    return (u32)round_to_u8(x) | (u32)round_to_u8(y) << 8;
}
DEVICE u32 pack_f8e4m3(float x, float y) {
    return (u32)f8e4m3_of(x) | (u32)f8e4m3_of(y) << 8;
}
#else
DEVICE float bound_below(float x, float bound) {
    float r;
    asm("max.NaN.f32 %0,%1,%2;" : "=f"(r) : "f"(x), "f"(bound));
    return r;
}
DEVICE float bound_above(float x, float bound) {
    float r;
    asm("min.NaN.f32 %0,%1,%2;" : "=f"(r) : "f"(x), "f"(bound));
    return r;
}
/// The nearest whole number, the even one of two, within the type's range.
DEVICE i8 round_to_i8(float x) {
    i32 r;
    asm("cvt.rni.s8.f32 %0,%1;" : "=r"(r) : "f"(x));
    return (i8)r;
}
DEVICE u8 round_to_u8(float x) {
    u32 r;
    asm("cvt.rni.u8.f32 %0,%1;" : "=r"(r) : "f"(x));
    return (u8)r;
}
/// The same of two, x in the low byte: ptxas makes one instruction of it.
DEVICE u32 pack_i8(float x, float y) {
    u32 r;
    asm("{.reg .s32 a, b; cvt.rni.s32.f32 a,%1; cvt.rni.s32.f32 b,%2; "
        "cvt.pack.sat.s8.s32.b32 %0,b,a,0;}"
        : "=r"(r)
        : "f"(x), "f"(y));
    return r;
}
DEVICE u32 pack_u8(float x, float y) {
    u32 r;
    asm("{.reg .s32 a, b; cvt.rni.s32.f32 a,%1; cvt.rni.s32.f32 b,%2; "
        "cvt.pack.sat.u8.s32.b32 %0,b,a,0;}"
        : "=r"(r)
        : "f"(x), "f"(y));
    return r;
}
/// Two as f8e4m3_of rounds them, x in the low byte.
DEVICE u32 pack_f8e4m3(float x, float y) {
#if __CUDA_ARCH__ >= 890
    u16 two;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0,%1,%2;" : "=h"(two) : "f"(y), "f"(x));
    return two;
#else
    return (u32)f8e4m3_of(x) | (u32)f8e4m3_of(y) << 8;
#endif
}
#endif
