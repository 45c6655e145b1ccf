// SPDX-License-Identifier: Apache-2.0
// Every function of kernels/common/ptx.cuh for the host, with the same names and meaning; the
// emulator's runtime (abi.h) implements those of more than one thread. All architectures have all
// functions here, so that one compilation serves all; the runtime refuses those that the launch's
// architecture lacks.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
#define DEVICE __device__ __forceinline__
#define KERNEL extern "C" __global__
#define SHARED(name) u8* const name = ingot_current->shared
struct __align__(64) TensorMap {
    u64 v[16];
};

// --- order of kernels
DEVICE void grid_wait() {
    INGOT_RUNTIME.grid_wait();
}
DEVICE void begin_kernel() {}
DEVICE void end_main_loop() {}
template <class Pointer>
DEVICE void opaque(Pointer&) {}

// --- barriers and warp exchange
DEVICE void sync() {
    INGOT_RUNTIME.sync(0, -1);
}
DEVICE void sync_some(int barrier, int threads) {
    INGOT_RUNTIME.sync(barrier, threads);
}
DEVICE void sync_warp() {
    INGOT_RUNTIME.sync_warp();
}
DEVICE u32 shfl_xor(u32 v, int lane_mask) {
    return INGOT_RUNTIME.exchange(Exchange::Xor, v, lane_mask);
}
DEVICE u32 shfl(u32 v, int lane) {
    return INGOT_RUNTIME.exchange(Exchange::Index, v, lane);
}
DEVICE float quad_xor(float v, int lane_mask) {
    return __uint_as_float(INGOT_RUNTIME.exchange(Exchange::Quad, __float_as_uint(v), lane_mask));
}
DEVICE u32 shfl_up(u32 v, int delta) {
    return INGOT_RUNTIME.exchange(Exchange::Up, v, delta);
}
DEVICE u32 ballot(bool p) {
    return INGOT_RUNTIME.ballot(0xffffffffu, p);
}
DEVICE float shfl_xor(float v, int m) {
    return __uint_as_float(shfl_xor(__float_as_uint(v), m));
}
DEVICE float shfl(float v, int l) {
    return __uint_as_float(shfl(__float_as_uint(v), l));
}
DEVICE u64 shfl_xor(u64 v, int m) {
    return ((u64)shfl_xor((u32)(v >> 32), m) << 32) | shfl_xor((u32)v, m);
}
DEVICE u64 shfl(u64 v, int l) {
    return ((u64)shfl((u32)(v >> 32), l) << 32) | shfl((u32)v, l);
}
DEVICE u64 shfl_up(u64 v, int d) {
    return ((u64)shfl_up((u32)(v >> 32), d) << 32) | shfl_up((u32)v, d);
}

// --- shared memory
DEVICE u32 smem_addr(const void* p) {
    return INGOT_RUNTIME.smem_addr(p);
}
DEVICE void cp_async16(u32 to, const void* from, int bytes) {
    INGOT_RUNTIME.cp_async(to, from, 16, bytes);
}
DEVICE void cp_async8(u32 to, const void* from, int bytes) {
    INGOT_RUNTIME.cp_async(to, from, 8, bytes);
}
DEVICE void cp_async4(u32 to, const void* from, int bytes) {
    INGOT_RUNTIME.cp_async(to, from, 4, bytes);
}
DEVICE void cp_async_commit() {
    INGOT_RUNTIME.cp_async_commit();
}
template <int N>
DEVICE void cp_async_wait() {
    INGOT_RUNTIME.cp_async_wait(N);
}
DEVICE void st_shared2(u32 at, float a, float b) {
    float* p = (float*)INGOT_RUNTIME.smem(at, 8, -1);
    p[0] = a, p[1] = b;
}
DEVICE void ld_shared4(float* v, u32 at) {
    memcpy(v, INGOT_RUNTIME.smem(at, 16, -1), 16);
}
DEVICE void ldmatrix4(u32* r, u32 at) {
    INGOT_RUNTIME.ldmatrix(r, at, 4, 0);
}
DEVICE void ldmatrix4_trans(u32* r, u32 at) {
    INGOT_RUNTIME.ldmatrix(r, at, 4, 1);
}

// --- global memory
DEVICE void prefetch_l2(const void*) {}
DEVICE uint4 ld_stream(const void* p) {
    INGOT_RUNTIME.global_access(p, 16);
    return *(const uint4*)p;
}
DEVICE u32 atomic_add_acq_rel(u32* p, u32 v) {
    return atomicAdd(p, v);
}
DEVICE u64 ld_acquire(const u64* p) {
    INGOT_RUNTIME.poll();
    return *(const volatile u64*)p;
}
DEVICE void st_release(u64* p, u64 v) {
    *(volatile u64*)p = v;
}

// --- matrix instructions
DEVICE void mma_f16(float* c, const u32* a, u32 b0, u32 b1) {
    u32 b[2] = {b0, b1};
    INGOT_RUNTIME.mma(Mma::F16, c, a, b);
}
DEVICE void mma_bf16(float* c, const u32* a, u32 b0, u32 b1) {
    u32 b[2] = {b0, b1};
    INGOT_RUNTIME.mma(Mma::BF16, c, a, b);
}
DEVICE void mma_tf32(float* c, const u32* a, u32 b0, u32 b1) {
    u32 b[2] = {b0, b1};
    INGOT_RUNTIME.mma(Mma::Tf32, c, a, b);
}
DEVICE void mma_s8(i32* c, const u32* a, u32 b0, u32 b1) {
    u32 b[2] = {b0, b1};
    INGOT_RUNTIME.mma(Mma::S8, c, a, b);
}
DEVICE void mma_e4m3(float* c, const u32* a, u32 b0, u32 b1) {
    u32 b[2] = {b0, b1};
    INGOT_RUNTIME.mma(Mma::E4M3, c, a, b);
}
DEVICE void mma_u8s8(i32* c, const u32* a, u32 b0, u32 b1) {
    u32 b[2] = {b0, b1};
    INGOT_RUNTIME.mma(Mma::U8S8, c, a, b);
}
template <bool A_SIGNED, bool B_SIGNED>
DEVICE u32 dot_bytes(u32 a, u32 b, u32 sum) {
    for (int i = 0; i < 32; i += 8) {
        u32 x = A_SIGNED ? (u32)(i32)(i8)(a >> i) : (u32)(u8)(a >> i);
        u32 y = B_SIGNED ? (u32)(i32)(i8)(b >> i) : (u32)(u8)(b >> i);
        sum += x * y;
    }
    return sum;
}
DEVICE u32 cvt_tf32(float x) { // ties away from zero
    u32 u = __float_as_uint(x);
    return x != x ? 0x7fffffffu : (u + 0x1000u) & 0xffffe000u;
}

// --- conversions
DEVICE u16 f16_of(float x) {
    return x != x ? (u16)0x7fff : INGOT_RUNTIME.f16_of_f32(x);
}
DEVICE u16 f16_of(double x) {
    return x != x ? (u16)0x7fff : INGOT_RUNTIME.f16_of_f64(x);
}
DEVICE float f32_of_f16(u16 x) {
    return INGOT_RUNTIME.f32_of_f16[x];
}
DEVICE u16 bf16_of(float x) {
    u32 u = __float_as_uint(x);
    return x != x ? (u16)0x7fff : (u16)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
DEVICE u32 pack_f16(float x, float y) {
    return (u32)f16_of(x) | (u32)f16_of(y) << 16;
}
DEVICE u32 pack_bf16(float x, float y) {
    return (u32)bf16_of(x) | (u32)bf16_of(y) << 16;
}
DEVICE float ex2(float x) {
    float r = exp2f(fabsf(x) < 1.17549435e-38f ? 0.0f : x);
    return r < 1.17549435e-38f ? 0.0f : r;
}
DEVICE float rcp(float x) {
    float r = 1.0f / (fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x);
    return fabsf(r) < 1.17549435e-38f ? copysignf(0.0f, r) : r;
}

// --- clusters
DEVICE u32 cluster_rank() {
    return INGOT_RUNTIME.cluster_rank();
}
DEVICE void cluster_sync() {
    INGOT_RUNTIME.cluster_sync();
}
DEVICE void cluster_arrive() {
    INGOT_RUNTIME.cluster_arrive();
}
DEVICE void cluster_arrive_relaxed() {
    INGOT_RUNTIME.cluster_arrive();
}
DEVICE void cluster_wait() {
    INGOT_RUNTIME.cluster_wait();
}
DEVICE void st_cluster4(u32 at, u32 rank, const float* v) {
    memcpy(INGOT_RUNTIME.smem(at, 16, (int)rank), v, 16);
}
DEVICE void ld_cluster4(float* v, u32 at, u32 rank) {
    memcpy(v, INGOT_RUNTIME.smem(at, 16, (int)rank), 16);
}
DEVICE u32 cluster_address(u32 at, u32 rank) {
    return INGOT_RUNTIME.cluster_address(at, rank);
}

// --- mbarriers and TMA
DEVICE void mbar_init(u32 bar, u32 arrivals) {
    INGOT_RUNTIME.mbar_init(bar, arrivals);
}
DEVICE void mbar_init_fence() {}
DEVICE void mbar_expect(u32 bar, u32 bytes) {
    INGOT_RUNTIME.mbar_expect(bar, bytes, 1);
}
DEVICE void mbar_arrive(u32 bar) {
    INGOT_RUNTIME.mbar_arrive(bar, -1);
}
DEVICE void mbar_wait(u32 bar, u32 phase) {
    INGOT_RUNTIME.mbar_wait(bar, phase);
}
DEVICE void mbar_wait_cluster(u32 bar, u32 phase) {
    INGOT_RUNTIME.mbar_wait(bar, phase);
}
DEVICE void st_async4(u32 to, const float* v, u32 bar) {
    INGOT_RUNTIME.st_async(to, v, 16, bar);
}
DEVICE void prefetch_map(const TensorMap*) {}
DEVICE void tma_load2(u32 to, const TensorMap* m, int x, int y, u32 bar) {
    int at[2] = {x, y};
    INGOT_RUNTIME.tma_load(to, m, 2, at, bar, 0);
}
DEVICE void tma_load4(u32 to, const TensorMap* m, int x, int y, int z, int w, u32 bar) {
    int at[4] = {x, y, z, w};
    INGOT_RUNTIME.tma_load(to, m, 4, at, bar, 0);
}
DEVICE void tma_load5(u32 to, const TensorMap* m, int x, int y, int z, int w, int v, u32 bar) {
    int at[5] = {x, y, z, w, v};
    INGOT_RUNTIME.tma_load(to, m, 5, at, bar, 0);
}
DEVICE void bulk_load(u32 to, const void* from, u32 bytes, u32 bar) {
    INGOT_RUNTIME.bulk_load(to, from, bytes, bar);
}
DEVICE void tma_store2(const TensorMap* m, int x, int y, u32 from) {
    int at[2] = {x, y};
    INGOT_RUNTIME.tma_store(m, 2, at, from);
}
DEVICE void tma_store4(const TensorMap* m, int x, int y, int z, int w, u32 from) {
    int at[4] = {x, y, z, w};
    INGOT_RUNTIME.tma_store(m, 4, at, from);
}
DEVICE void bulk_commit() {
    INGOT_RUNTIME.bulk_commit();
}
template <int N>
DEVICE void bulk_wait_read() {
    INGOT_RUNTIME.bulk_wait(N);
}
DEVICE void bulk_wait_all() {
    INGOT_RUNTIME.bulk_wait(0);
}
DEVICE void async_fence() {}
DEVICE void stmatrix4(u32 at, u32 a, u32 b, u32 c, u32 d) {
    u32 r[4] = {a, b, c, d};
    INGOT_RUNTIME.stmatrix(at, r, 4, 0);
}

// --- warpgroup matrix instructions
template <int N>
DEVICE void regs_dec() {}
template <int N>
DEVICE void regs_inc() {}
DEVICE void wgmma_fence() {
    INGOT_RUNTIME.wgmma_fence();
}
DEVICE void wgmma_commit() {
    INGOT_RUNTIME.wgmma_commit();
}
template <int N>
DEVICE void wgmma_wait() {
    INGOT_RUNTIME.wgmma_wait(N);
}
DEVICE u64 wgmma_desc(u32 at) {
    return (u64)((at & 0x3FFFF) >> 4) | ((u64)1 << 16) | ((u64)64 << 32) | ((u64)1 << 62);
}
/// Implements wgmma.cuh here: d (+)= a * b over one step of 32 bytes of the depth, of type "f16",
/// "bf16", "tf32", "e4m3", "s8" or "u8", or of u8 by s8. A comes from registers where `a` is given,
/// else by descriptor.
DEVICE void emulated_wgmma(const char* type, const char* type_b, void* d, int n, const u32* a,
                           u64 a_desc, u64 b_desc, int accumulate, int b_rows) {
    Mma kind = type[0] == 'b'     ? Mma::BF16
               : type[0] == 't'   ? Mma::Tf32
               : type[0] == 'e'   ? Mma::E4M3
               : type[0] == 's'   ? Mma::S8
               : type[0] == 'f'   ? Mma::F16
               : type_b[0] == 's' ? Mma::U8S8
                                  : Mma::U8;
    INGOT_RUNTIME.wgmma(kind, d, n, a, a_desc, b_desc, accumulate, b_rows ? 2 : 0);
}
