// SPDX-License-Identifier: Apache-2.0
// CUDA's functions of bits for the host; a part of cuda_host.h.
#pragma once

template <class To, class From>
inline To ingot_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline float __uint_as_float(unsigned x) {
    return ingot_bits<float>(x);
}
inline unsigned __float_as_uint(float x) {
    return ingot_bits<unsigned>(x);
}
inline float __int_as_float(int x) {
    return ingot_bits<float>(x);
}
inline int __float_as_int(float x) {
    return ingot_bits<int>(x);
}
inline double __longlong_as_double(long long x) {
    return ingot_bits<double>(x);
}
inline long long __double_as_longlong(double x) {
    return ingot_bits<long long>(x);
}
inline int __double2loint(double x) {
    return (int)(unsigned)ingot_bits<unsigned long long>(x);
}
inline int __double2hiint(double x) {
    return (int)(ingot_bits<unsigned long long>(x) >> 32);
}
inline double __hiloint2double(int high, int low) {
    return ingot_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
// The builtin calls a library where the processor is not known to count bits.
inline int __popc(unsigned x) {
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (int)((x + (x >> 4) & 0x0F0F0F0Fu) * 0x01010101u >> 24);
}
inline int __popcll(unsigned long long x) {
    return __popc((unsigned)x) + __popc((unsigned)(x >> 32));
}
inline int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
inline int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i)
        r |= (x >> i & 1u) << (31 - i);
    return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
inline int __mulhi(int a, int b) {
    return (int)((long long)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
    return (long long)((__int128)a * b >> 64);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i)
        r |= (unsigned)(bytes >> (8 * (s >> (4 * i) & 7)) & 255) << (8 * i);
    return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned s) {
    return (unsigned)((((unsigned long long)high << 32 | low) << (s & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned s) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (s & 31));
}
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i)
        c += (int)(signed char)(a >> (8 * i)) * (int)(signed char)(b >> (8 * i));
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i)
        c += (a >> (8 * i) & 255) * (b >> (8 * i) & 255);
    return c;
}
