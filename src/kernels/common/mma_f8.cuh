// SPDX-License-Identifier: Apache-2.0
// mma.sync of e4m3 (8.9 and later): m16n8k32. Where it is an instruction of its own, it keeps about
// 14 bits of a sum: each product of 32 of the depth starts from zero and is added in f32
// (mma_promoted_e4m3). 9.0 converts to f16, whose sums are those of f32.
#ifndef INGOT_EMULATED
DEVICE void mma_e4m3(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
DEVICE void mma_promoted_e4m3(float* c, const u32* a, u32 b0, u32 b1) {
    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    mma_e4m3(part, a, b0, b1);
#pragma unroll
    for (int i = 0; i < 4; i++)
        c[i] += part[i];
}
