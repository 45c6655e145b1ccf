// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for the host: keywords, vector types and the built-in functions that NVRTC knows without
// headers. Device text includes it inside a namespace of its own; no other header is needed, so
// that texts compile in tens of milliseconds.
#pragma once

#define INGOT_EMULATED 1
#define __device__
#define __host__
#define __constant__
#define __global__ __attribute__((visibility("hidden")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// A block runs alone, so its shared variables are static ones; nothing else is in .bss.
#define __shared__ static

extern "C" {
void* memcpy(void*, const void*, __SIZE_TYPE__) noexcept;
void* memset(void*, int, __SIZE_TYPE__) noexcept;
}

static Thread* ingot_current = (Thread*)1; // initialised, so not in .bss
#define threadIdx (ingot_current->thread)
#define blockIdx (ingot_current->block)
#define blockDim (ingot_current->block_size)
#define gridDim (ingot_current->grid)
#define INGOT_RUNTIME (*ingot_current->services)
static const int warpSize = 32;

#define INGOT_VECTOR(type, name, align)                                                            \
    struct name##2 {                                                                               \
        type x, y;                                                                                 \
    }                                                                                              \
    __attribute__((aligned(2 * sizeof(type))));                                                    \
    struct name##3 {                                                                               \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct name##4 {                                                                               \
        type x, y, z, w;                                                                           \
    }                                                                                              \
    __attribute__((aligned(align)));                                                               \
    inline name##2 make_##name##2(type x, type y) {                                                \
        return {x, y};                                                                             \
    }                                                                                              \
    inline name##3 make_##name##3(type x, type y, type z) {                                        \
        return {x, y, z};                                                                          \
    }                                                                                              \
    inline name##4 make_##name##4(type x, type y, type z, type w) {                                \
        return {x, y, z, w};                                                                       \
    }
INGOT_VECTOR(signed char, char, 4)
INGOT_VECTOR(unsigned char, uchar, 4)
INGOT_VECTOR(short, short, 8)
INGOT_VECTOR(unsigned short, ushort, 8)
INGOT_VECTOR(int, int, 16)
INGOT_VECTOR(unsigned, uint, 16)
INGOT_VECTOR(long long, longlong, 16)
INGOT_VECTOR(unsigned long long, ulonglong, 16)
INGOT_VECTOR(float, float, 16)
INGOT_VECTOR(double, double, 16)
#undef INGOT_VECTOR
typedef uint3 dim3;

// --- functions of one or more floats: the C library's, and the overloads that CUDA has
#include "emulator/cuda_math.h"

// --- bits
#include "emulator/cuda_bits.h"

// --- conversions: out of range saturates, NaN gives 0 (to 64 bits: the smallest)
#define INGOT_CONVERT(name, from, to, round, low, high, nan)                                       \
    inline to name(from x) {                                                                       \
        x = round(x);                                                                              \
        return x != x              ? (to)(nan)                                                     \
               : x <= (from)(low)  ? (to)(low)                                                     \
               : x >= (from)(high) ? (to)(high)                                                    \
                                   : (to)x;                                                        \
    }
#define INGOT_CONVERT_ALL(suffix, round)                                                           \
    INGOT_CONVERT(__float2int_##suffix, float, int, round, -2147483647 - 1, 2147483647, 0)         \
    INGOT_CONVERT(__float2uint_##suffix, float, unsigned, round, 0, 4294967295u, 0)                \
    INGOT_CONVERT(__float2ll_##suffix, float, long long, round, -__LONG_LONG_MAX__ - 1,            \
                  __LONG_LONG_MAX__, -__LONG_LONG_MAX__ - 1)                                       \
    INGOT_CONVERT(__float2ull_##suffix, float, unsigned long long, round, 0, ~0ull, 1ull << 63)    \
    INGOT_CONVERT(__double2int_##suffix, double, int, round, -2147483647 - 1, 2147483647, 0)       \
    INGOT_CONVERT(__double2uint_##suffix, double, unsigned, round, 0, 4294967295u, 0)              \
    INGOT_CONVERT(__double2ll_##suffix, double, long long, round, -__LONG_LONG_MAX__ - 1,          \
                  __LONG_LONG_MAX__, -__LONG_LONG_MAX__ - 1)                                       \
    INGOT_CONVERT(__double2ull_##suffix, double, unsigned long long, round, 0, ~0ull, 1ull << 63)
INGOT_CONVERT_ALL(rn, rint)
INGOT_CONVERT_ALL(rz, trunc)
INGOT_CONVERT_ALL(rd, floor)
INGOT_CONVERT_ALL(ru, ceil)
#undef INGOT_CONVERT_ALL
#undef INGOT_CONVERT
inline float __int2float_rn(int x) {
    return (float)x;
}
inline float __uint2float_rn(unsigned x) {
    return (float)x;
}
inline float __ll2float_rn(long long x) {
    return (float)x;
}
inline float __double2float_rn(double x) {
    return (float)x;
}

// --- min, max, abs for the types that CUDA overloads them for
#define INGOT_MINMAX(type)                                                                         \
    inline type min(type a, type b) {                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    inline type max(type a, type b) {                                                              \
        return a < b ? b : a;                                                                      \
    }
INGOT_MINMAX(int)
INGOT_MINMAX(unsigned)
INGOT_MINMAX(long)
INGOT_MINMAX(unsigned long)
INGOT_MINMAX(long long)
INGOT_MINMAX(unsigned long long)
#undef INGOT_MINMAX
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}
inline double min(double a, double b) {
    return fmin(a, b);
}
inline double max(double a, double b) {
    return fmax(a, b);
}
extern "C" int abs(int) noexcept;
inline long long abs(long long x) {
    return x < 0 ? -x : x;
}
inline float abs(float x) {
    return fabsf(x);
}
inline double abs(double x) {
    return fabs(x);
}
inline long long llabs(long long x) {
    return x < 0 ? -x : x;
}
template <class T>
inline T __ldg(const T* p) {
    return *p;
}

// --- atomics; one thread runs at a time
#define INGOT_ATOMIC(name, result)                                                                 \
    template <class T, class U>                                                                    \
    inline T name(T* p, U operand) {                                                               \
        T old = *p, v = (T)operand;                                                                \
        *p = (T)(result);                                                                          \
        INGOT_RUNTIME.poll();                                                                      \
        return old;                                                                                \
    }
INGOT_ATOMIC(atomicAdd, old + v)
INGOT_ATOMIC(atomicSub, old - v)
INGOT_ATOMIC(atomicExch, v)
INGOT_ATOMIC(atomicMin, v < old ? v : old)
INGOT_ATOMIC(atomicMax, old < v ? v : old)
INGOT_ATOMIC(atomicAnd, old& v)
INGOT_ATOMIC(atomicOr, old | v)
INGOT_ATOMIC(atomicXor, old ^ v)
#undef INGOT_ATOMIC
template <class T, class U>
inline T atomicCAS(T* p, U compare, U operand) {
    T old = *p;
    if (old == (T)compare)
        *p = (T)operand;
    INGOT_RUNTIME.poll();
    return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {
    INGOT_RUNTIME.poll();
}
inline void __trap() {
    INGOT_RUNTIME.fail("trap");
}

// --- entries: how the runtime calls a kernel with its parameters
template <int...>
struct ingot_numbers {};
template <int N, int... I>
struct ingot_count : ingot_count<N - 1, N - 1, I...> {};
template <int... I>
struct ingot_count<0, I...> {
    typedef ingot_numbers<I...> type;
};
template <class... A>
struct ingot_arguments {
    static constexpr int count = (int)sizeof...(A);
    static constexpr unsigned sizes[sizeof...(A) + 1] = {(unsigned)sizeof(A)..., 0};
    template <int... I>
    static void call(void (*f)(A...), void* const* p, ingot_numbers<I...>) {
        f(*(A*)p[I]...);
    }
};
struct ingot_entry { // as in compile.cpp
    void (*call)(void* const*);
    const unsigned* sizes;
    int count;
    unsigned most_threads;
    Thread** current;
    char *shared, *shared_end;
};
extern "C" char __bss_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));
template <class... A>
inline void ingot_call(void (*f)(A...), void* const* p) {
    ingot_arguments<A...>::call(f, p, typename ingot_count<(int)sizeof...(A)>::type{});
}
template <class... A>
inline ingot_entry ingot_describe(void (*)(A...), void (*call)(void* const*), unsigned most) {
    return {call,
            ingot_arguments<A...>::sizes,
            ingot_arguments<A...>::count,
            most,
            &ingot_current,
            __bss_start,
            _end};
}
// For a name that the preprocessor left out of the text.
inline void ingot_call(ingot_missing, void* const*) {}
inline ingot_entry ingot_describe(ingot_missing, void (*)(void* const*), unsigned) {
    return {};
}
#define INGOT_FIRST(x, ...) x
#define INGOT_ENTRY_NAMED(name, most)                                                              \
    static void ingot_invoke_##name(void* const* p) {                                              \
        ingot_call(name, p);                                                                       \
    }                                                                                              \
    extern "C" __attribute__((visibility("default"))) void ingot_entry_##name(ingot_entry* e) {    \
        *e = ingot_describe(name, ingot_invoke_##name, most);                                      \
    }
#define INGOT_ENTRY(name, most) INGOT_ENTRY_NAMED(name, most)
