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
#define INGOT_MATH1(name)                                                                          \
    extern "C" double name(double) noexcept;                                                       \
    extern "C" float name##f(float) noexcept;                                                      \
    inline float name(float x) {                                                                   \
        return name##f(x);                                                                         \
    }
INGOT_MATH1(sqrt)
INGOT_MATH1(cbrt)
INGOT_MATH1(exp)
INGOT_MATH1(exp2)
INGOT_MATH1(expm1)
INGOT_MATH1(log)
INGOT_MATH1(log2)
INGOT_MATH1(log10)
INGOT_MATH1(log1p)
INGOT_MATH1(sin)
INGOT_MATH1(cos)
INGOT_MATH1(tan)
INGOT_MATH1(asin)
INGOT_MATH1(acos)
INGOT_MATH1(atan)
INGOT_MATH1(sinh)
INGOT_MATH1(cosh)
INGOT_MATH1(tanh)
INGOT_MATH1(asinh)
INGOT_MATH1(acosh)
INGOT_MATH1(atanh)
INGOT_MATH1(erf)
INGOT_MATH1(erfc)
INGOT_MATH1(tgamma)
INGOT_MATH1(lgamma)
INGOT_MATH1(floor)
INGOT_MATH1(ceil)
INGOT_MATH1(trunc)
INGOT_MATH1(round)
INGOT_MATH1(rint)
INGOT_MATH1(nearbyint)
INGOT_MATH1(fabs)
#undef INGOT_MATH1
#define INGOT_MATH2(name)                                                                          \
    extern "C" double name(double, double) noexcept;                                               \
    extern "C" float name##f(float, float) noexcept;                                               \
    inline float name(float x, float y) {                                                          \
        return name##f(x, y);                                                                      \
    }
INGOT_MATH2(pow)
INGOT_MATH2(fmod)
INGOT_MATH2(remainder)
INGOT_MATH2(fmin)
INGOT_MATH2(fmax)
INGOT_MATH2(atan2)
INGOT_MATH2(copysign)
INGOT_MATH2(hypot)
INGOT_MATH2(fdim)
INGOT_MATH2(nextafter)
#undef INGOT_MATH2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float fma(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline float rsqrtf(float x) {
    return (float)(1.0 / sqrt((double)x));
}
inline double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
inline float rsqrt(float x) {
    return rsqrtf(x);
}
inline float exp10f(float x) {
    return powf(10.0f, x);
}
inline float fdividef(float a, float b) {
    return a / b;
}
inline bool isnan(float x) {
    return x != x;
}
inline bool isnan(double x) {
    return x != x;
}
inline bool isinf(float x) {
    return __builtin_isinf(x) != 0;
}
inline bool isinf(double x) {
    return __builtin_isinf(x) != 0;
}
inline bool isfinite(float x) {
    return __builtin_isfinite(x) != 0;
}
inline bool isfinite(double x) {
    return __builtin_isfinite(x) != 0;
}
inline bool signbit(float x) {
    return __builtin_signbit(x) != 0;
}
inline bool signbit(double x) {
    return __builtin_signbit(x) != 0;
}
inline float __expf(float x) {
    return expf(x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __log2f(float x) {
    return log2f(x);
}
inline float __exp10f(float x) {
    return exp10f(x);
}
inline float __sinf(float x) {
    return sinf(x);
}
inline float __cosf(float x) {
    return cosf(x);
}
inline float __tanf(float x) {
    return tanf(x);
}
inline float __powf(float x, float y) {
    return powf(x, y);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
inline float __frsqrt_rn(float x) {
    return rsqrtf(x);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline double __dadd_rn(double a, double b) {
    return a + b;
}
inline double __dsub_rn(double a, double b) {
    return a - b;
}
inline double __dmul_rn(double a, double b) {
    return a * b;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}
inline float __saturatef(float x) {
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

// --- bits
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
inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
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
