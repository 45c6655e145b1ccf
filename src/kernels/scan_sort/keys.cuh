// SPDX-License-Identifier: Apache-2.0
// Keys whose unsigned order is the order of elements: NaN largest, zeros of both signs equal; and
// the warp functions of sorts, scans and compactions.
template <int BITS, class KEY>
DEVICE KEY float_key(KEY raw, KEY infinity) {
    const KEY sign = (KEY)1 << (BITS - 1), all = sign | (sign - 1);
    KEY size = raw & (sign - 1);
    if (size > infinity)
        return all;
    if (size == 0)
        return sign;
    return raw & sign ? ~raw & all : raw | sign;
}
DEVICE u32 key_of(bool v) {
    return v;
}
DEVICE u32 key_of(u8 v) {
    return v;
}
DEVICE u32 key_of(u16 v) {
    return v;
}
DEVICE u32 key_of(u32 v) {
    return v;
}
DEVICE u64 key_of(u64 v) {
    return v;
}
DEVICE u32 key_of(i8 v) {
    return (u8)v ^ 0x80u;
}
DEVICE u32 key_of(i16 v) {
    return (u16)v ^ 0x8000u;
}
DEVICE u32 key_of(i32 v) {
    return (u32)v ^ 0x80000000u;
}
DEVICE u64 key_of(i64 v) {
    return (u64)v ^ ((u64)1 << 63);
}
DEVICE u32 key_of(F16 v) {
    return float_key<16>((u32)v.bits, 0x7c00u);
}
DEVICE u32 key_of(BF16 v) {
    return float_key<16>((u32)v.bits, 0x7f80u);
}
DEVICE u32 key_of(F8E5M2 v) {
    return float_key<8>((u32)v.bits, 0x7cu);
}
DEVICE u32 key_of(F8E4M3 v) {
    return float_key<8>((u32)v.bits, 0x7eu);
}
DEVICE u32 key_of(float v) {
    return float_key<32>(__float_as_uint(v), 0x7f800000u);
}
DEVICE u64 key_of(double v) {
    Bits64 b;
    b.f = v;
    return float_key<64>(b.u, (u64)0x7ff << 52);
}

DEVICE u32 lanes_below(int lane) {
    return (1u << lane) - 1u;
}
/// Inclusive sum over the lanes up to this one.
DEVICE u32 warp_scan(u32 v, int lane) {
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        u32 u = shfl_up(v, d);
        if (lane >= d)
            v += u;
    }
    return v;
}
DEVICE u64 warp_scan(u64 v, int lane) {
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        u64 u = shfl_up(v, d);
        if (lane >= d)
            v += u;
    }
    return v;
}
/// Exclusive sum over the threads of a block of WARPS warps; `all` receives the total. `memory`:
/// one element per warp.
template <int WARPS = 8, class I>
DEVICE I block_scan(I v, I* memory, I& all) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    I sum = warp_scan(v, lane), before = 0;
    sync();
    if (lane == 31)
        memory[warp] = sum;
    sync();
    all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        I part = memory[w];
        if (w < warp)
            before += part;
        all += part;
    }
    return before + sum - v;
}
