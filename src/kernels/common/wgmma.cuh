// SPDX-License-Identifier: Apache-2.0
// wgmma by tile width: d[64 x N] (+)= a[64 x K] * b[N x K] with f32 sums, or with those of
// integers, modulo 2^32. WGMMA_TYPE names the operand type: K is 16 for "f16" and "bf16", 8 for
// "tf32" (WGMMA_TF32 for the preprocessor), 32 for "e4m3" (WGMMA_F8) and for "s8" and "u8"
// (WGMMA_WHOLE, and WGMMA_TYPE_B for b's type), always 32 bytes. N is a multiple of 16 up to 256. A
// is in shared memory (by descriptor) or in registers (wgmma_ra); B_ROWS, for 16-bit types: N is
// innermost in B's shared memory, not the depth. accumulate == 0 starts from zero. A thread's d[4 *
// j + i] is row (lane / 4) + 8 * (i / 2) of its warp's 16, column 8 * j + 2 * (lane % 4) + i % 2.
#ifdef WGMMA_WHOLE
typedef u32 WgmmaSum;
#else
typedef float WgmmaSum;
#define WGMMA_TYPE_B WGMMA_TYPE
#endif
#ifdef INGOT_EMULATED
template <int N, int B_ROWS = 0>
DEVICE void wgmma(WgmmaSum* d, u64 a, u64 b, int accumulate) {
    emulated_wgmma(WGMMA_TYPE, WGMMA_TYPE_B, d, N, (const u32*)0, a, b, accumulate, B_ROWS);
}
template <int N, int B_ROWS = 0>
DEVICE void wgmma_ra(WgmmaSum* d, const u32* a, u64 b, int accumulate) {
    emulated_wgmma(WGMMA_TYPE, WGMMA_TYPE_B, d, N, a, 0, b, accumulate, B_ROWS);
}
#else
template <int N, int B_ROWS>
struct Wgmma;
template <int N, int B_ROWS = 0>
DEVICE void wgmma(WgmmaSum* d, u64 a, u64 b, int accumulate) {
    Wgmma<N, B_ROWS>::run(d, a, b, accumulate);
}
template <int N, int B_ROWS = 0>
DEVICE void wgmma_ra(WgmmaSum* d, const u32* a, u64 b, int accumulate) {
    Wgmma<N, B_ROWS>::run(d, a, b, accumulate);
}
#if defined(WGMMA_WHOLE) // without immediates for signs
DEVICE void opaque(u32& x) {
    asm volatile("" : "+r"(x));
}
#define WGMMA_TYPES "k32.s32." WGMMA_TYPE "." WGMMA_TYPE_B
#define WGMMA_SIGNS ""
#define WGMMA_SUM "+r"
#elif defined(WGMMA_F8)
#define WGMMA_TYPES "k32.f32." WGMMA_TYPE "." WGMMA_TYPE
#elif defined(WGMMA_TF32)
#define WGMMA_TYPES "k8.f32.tf32.tf32"
#else
#define WGMMA_TYPES "k16.f32." WGMMA_TYPE "." WGMMA_TYPE
#define WGMMA_MAJOR(a, b) a b
#endif
#ifndef WGMMA_MAJOR // takes the depth innermost only, and no immediates that would say so
#define WGMMA_MAJOR(a, b) ""
#endif
#ifndef WGMMA_SUM
#define WGMMA_SIGNS ",1,1"
#define WGMMA_SUM "+f"
#endif
#define WGMMA_8(i)                                                                                 \
    WGMMA_SUM(d[i]), WGMMA_SUM(d[i + 1]), WGMMA_SUM(d[i + 2]), WGMMA_SUM(d[i + 3]),                \
        WGMMA_SUM(d[i + 4]), WGMMA_SUM(d[i + 5]), WGMMA_SUM(d[i + 6]), WGMMA_SUM(d[i + 7])
#define WGMMA(N, list, a, b, p, q, t, r, s, ...)                                                   \
    template <int B_ROWS>                                                                          \
    struct Wgmma<N, B_ROWS> {                                                                      \
        static DEVICE void run(WgmmaSum* d, u64 x, u64 y, int accumulate) {                        \
            asm volatile("{.reg .pred p; setp.ne.b32 p,%" p                                        \
                         ",0; wgmma.mma_async.sync.aligned.m64n" #N WGMMA_TYPES " {" list "},%" a  \
                         ",%" b ",p" WGMMA_SIGNS WGMMA_MAJOR(",0,%", q) ";}"                       \
                         : __VA_ARGS__                                                             \
                         : "l"(x), "l"(y), "r"(accumulate), "n"(B_ROWS));                          \
        }                                                                                          \
        static DEVICE void run(WgmmaSum* d, const u32* x, u64 y, int accumulate) {                 \
            asm volatile("{.reg .pred p; setp.ne.b32 p,%" s                                        \
                         ",0; wgmma.mma_async.sync.aligned.m64n" #N WGMMA_TYPES " {" list "},{%" a \
                         ",%" b ",%" p ",%" q "},%" r ",p" WGMMA_SIGNS WGMMA_MAJOR(",%", t) ";}"   \
                         : __VA_ARGS__                                                             \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y), "r"(accumulate),    \
                           "n"(B_ROWS));                                                           \
        }                                                                                          \
    };
#define WGMMA_L16 "%0,%1,%2,%3,%4,%5,%6,%7"
#define WGMMA_L32 WGMMA_L16 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_L48 WGMMA_L32 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define WGMMA_L64 WGMMA_L48 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA_L80 WGMMA_L64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define WGMMA_L96 WGMMA_L80 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define WGMMA_L112 WGMMA_L96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define WGMMA_L128 WGMMA_L112 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define WGMMA_L144 WGMMA_L128 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define WGMMA_L160 WGMMA_L144 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define WGMMA_L176 WGMMA_L160 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define WGMMA_L192 WGMMA_L176 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define WGMMA_L208 WGMMA_L192 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define WGMMA_L224 WGMMA_L208 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define WGMMA_L240 WGMMA_L224 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define WGMMA_L256 WGMMA_L240 ",%120,%121,%122,%123,%124,%125,%126,%127"
WGMMA(16, WGMMA_L16, "8", "9", "10", "11", "14", "12", "13", WGMMA_8(0))
WGMMA(32, WGMMA_L32, "16", "17", "18", "19", "22", "20", "21", WGMMA_8(0), WGMMA_8(8))
WGMMA(48, WGMMA_L48, "24", "25", "26", "27", "30", "28", "29", WGMMA_8(0), WGMMA_8(8), WGMMA_8(16))
WGMMA(64, WGMMA_L64, "32", "33", "34", "35", "38", "36", "37", WGMMA_8(0), WGMMA_8(8), WGMMA_8(16),
      WGMMA_8(24))
WGMMA(80, WGMMA_L80, "40", "41", "42", "43", "46", "44", "45", WGMMA_8(0), WGMMA_8(8), WGMMA_8(16),
      WGMMA_8(24), WGMMA_8(32))
WGMMA(96, WGMMA_L96, "48", "49", "50", "51", "54", "52", "53", WGMMA_8(0), WGMMA_8(8), WGMMA_8(16),
      WGMMA_8(24), WGMMA_8(32), WGMMA_8(40))
WGMMA(112, WGMMA_L112, "56", "57", "58", "59", "62", "60", "61", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48))
WGMMA(128, WGMMA_L128, "64", "65", "66", "67", "70", "68", "69", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56))
WGMMA(144, WGMMA_L144, "72", "73", "74", "75", "78", "76", "77", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64))
WGMMA(160, WGMMA_L160, "80", "81", "82", "83", "86", "84", "85", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72))
WGMMA(176, WGMMA_L176, "88", "89", "90", "91", "94", "92", "93", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72), WGMMA_8(80))
WGMMA(192, WGMMA_L192, "96", "97", "98", "99", "102", "100", "101", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72), WGMMA_8(80), WGMMA_8(88))
WGMMA(208, WGMMA_L208, "104", "105", "106", "107", "110", "108", "109", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72), WGMMA_8(80), WGMMA_8(88), WGMMA_8(96))
WGMMA(224, WGMMA_L224, "112", "113", "114", "115", "118", "116", "117", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72), WGMMA_8(80), WGMMA_8(88), WGMMA_8(96), WGMMA_8(104))
WGMMA(240, WGMMA_L240, "120", "121", "122", "123", "126", "124", "125", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72), WGMMA_8(80), WGMMA_8(88), WGMMA_8(96), WGMMA_8(104), WGMMA_8(112))
WGMMA(256, WGMMA_L256, "128", "129", "130", "131", "134", "132", "133", WGMMA_8(0), WGMMA_8(8),
      WGMMA_8(16), WGMMA_8(24), WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56), WGMMA_8(64),
      WGMMA_8(72), WGMMA_8(80), WGMMA_8(88), WGMMA_8(96), WGMMA_8(104), WGMMA_8(112), WGMMA_8(120))
#endif
