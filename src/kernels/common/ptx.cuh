// SPDX-License-Identifier: Apache-2.0
// A function for every PTX instruction that kernels use. The emulator replaces this file by one
// with the same functions for the host, so kernels use no other intrinsics. Shared memory is
// addressed by u32 offsets (smem_addr) wherever an instruction takes such an address.
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
#define SHARED(name) extern __shared__ __align__(1024) u8 name[]
struct __align__(64) TensorMap {
    u64 v[16];
};

// --- order of kernels: every block waits before its first access to activations or workspace. Once
// all blocks have waited, those of the next kernel start where there is room, up to their own wait;
// before that in a launch that says so: its dynamic shared memory is an odd multiple of 16 bytes.
DEVICE void grid_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .pred p;.reg .b32 r;mov.u32 r,%%dynamic_smem_size;and.b32 r,r,%0;"
                 "setp.ne.b32 p,r,0;@p griddepcontrol.launch_dependents;griddepcontrol.wait;"
                 "griddepcontrol.launch_dependents;}" ::"n"(16)
                 : "memory");
#endif
}
/// Marks for timelines (timeline.cuh): the first statement of each kernel, and the end of its main
/// loop if it has one.
DEVICE void begin_kernel() {}
DEVICE void end_main_loop() {}
/// Keeps the loads through a pointer behind this point: the compiler forgets where it came from.
template <class Pointer>
DEVICE void opaque(Pointer& p) {
    asm volatile("" : "+l"(p)::"memory");
}
/// Keeps arithmetic with x behind this point.
DEVICE void opaque(float& x) {
    asm volatile("" : "+f"(x));
}

// --- barriers and warp exchange
DEVICE void sync() {
    asm volatile("bar.sync 0;" ::: "memory");
}
DEVICE void sync_some(int barrier, int threads) {
    asm volatile("bar.sync %0,%1;" ::"r"(barrier), "r"(threads) : "memory");
}
DEVICE void sync_warp() {
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}
DEVICE u32 shfl_xor(u32 v, int lane_mask) {
    u32 r;
    asm volatile("shfl.sync.bfly.b32 %0,%1,%2,0x1f,0xffffffff;" : "=r"(r) : "r"(v), "r"(lane_mask));
    return r;
}
DEVICE u32 shfl(u32 v, int lane) {
    u32 r;
    asm volatile("shfl.sync.idx.b32 %0,%1,%2,0x1f,0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
    return r;
}
/// Among four adjacent lanes, which need not agree with the others of their warp.
DEVICE float quad_xor(float v, int lane_mask) {
    u32 r;
    asm volatile("shfl.sync.bfly.b32 %0,%1,%2,0x1f,%3;"
                 : "=r"(r)
                 : "r"(__float_as_uint(v)), "r"(lane_mask), "r"(0xfu << (threadIdx.x & 28)));
    return __uint_as_float(r);
}
/// The value of lane - delta; lanes below delta keep their own.
DEVICE u32 shfl_up(u32 v, int delta) {
    u32 r;
    asm volatile("shfl.sync.up.b32 %0,%1,%2,0x0,0xffffffff;" : "=r"(r) : "r"(v), "r"(delta));
    return r;
}
DEVICE u32 ballot(bool p) {
    u32 r;
    asm volatile("{.reg .pred q; setp.ne.u32 q,%1,0; vote.sync.ballot.b32 %0,q,0xffffffff;}"
                 : "=r"(r)
                 : "r"((u32)p));
    return r;
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
    u32 a;
    asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}" : "=r"(a) : "l"(p));
    return a;
}
DEVICE void cp_async16(u32 to, const void* from, int bytes) { // bytes < 16: the rest becomes zero
    asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}
DEVICE void cp_async8(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0],[%1],8,%2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}
DEVICE void cp_async4(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0],[%1],4,%2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}
DEVICE void cp_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
DEVICE void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
DEVICE void st_shared2(u32 at, float a, float b) {
    asm volatile("st.shared.v2.f32 [%0],{%1,%2};" ::"r"(at), "f"(a), "f"(b) : "memory");
}
DEVICE void ld_shared4(float* v, u32 at) {
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(at)
                 : "memory");
}
DEVICE void ldmatrix4(u32* r, u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
DEVICE void ldmatrix4_trans(u32* r, u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

// --- global memory
/// Asks for the line in L2, whatever is there now or will be: it reads nothing.
DEVICE void prefetch_l2(const void* p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}
/// Read once, by this kernel only: kept out of L1.
DEVICE uint4 ld_stream(const void* p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
/// Order between blocks: writes before the release are visible after the acquire.
DEVICE u32 atomic_add_acq_rel(u32* p, u32 v) {
    u32 r;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0,[%1],%2;"
                 : "=r"(r)
                 : "l"(p), "r"(v)
                 : "memory");
    return r;
}
DEVICE u64 ld_acquire(const u64* p) {
    u64 v;
    asm volatile("ld.acquire.gpu.global.u64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
DEVICE void st_release(u64* p, u64 v) {
    asm volatile("st.release.gpu.global.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory");
}

// --- matrix instructions: d += a * b, f32 (or i32) accumulation
DEVICE void mma_f16(float* c, const u32* a, u32 b0, u32 b1) { // m16n8k16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void mma_bf16(float* c, const u32* a, u32 b0, u32 b1) { // m16n8k16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void mma_tf32(float* c, const u32* a, u32 b0,
                     u32 b1) { // m16n8k8; operands rounded by cvt_tf32
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void mma_s8(i32* c, const u32* a, u32 b0, u32 b1) { // m16n8k32, signed by signed
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void mma_u8s8(i32* c, const u32* a, u32 b0, u32 b1) { // m16n8k32, a is unsigned
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// sum + the products of the four bytes of a and b, each signed or not.
template <bool A_SIGNED, bool B_SIGNED>
DEVICE u32 dot_bytes(u32 a, u32 b, u32 sum) {
    u32 r;
    if (A_SIGNED && B_SIGNED)
        asm("dp4a.s32.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
    else if (A_SIGNED)
        asm("dp4a.s32.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
    else if (B_SIGNED)
        asm("dp4a.u32.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
    else
        asm("dp4a.u32.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
    return r;
}
DEVICE u32 cvt_tf32(float x) {
    u32 r;
    asm("cvt.rna.tf32.f32 %0,%1;" : "=r"(r) : "f"(x));
    return r;
}

// --- conversions
DEVICE u32 pack_f16(float x, float y) { // x in the low half
    u32 r;
    asm("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(y), "f"(x));
    return r;
}
DEVICE u32 pack_bf16(float x, float y) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(y), "f"(x));
    return r;
}
DEVICE u16 f16_of(float x) {
    u16 r;
    asm("cvt.rn.f16.f32 %0,%1;" : "=h"(r) : "f"(x));
    return r;
}
DEVICE u16 f16_of(double x) {
    u16 r;
    asm("cvt.rn.f16.f64 %0,%1;" : "=h"(r) : "d"(x));
    return r;
}
DEVICE float f32_of_f16(u16 x) {
    float r;
    asm("cvt.f32.f16 %0,%1;" : "=f"(r) : "h"(x));
    return r;
}
DEVICE u16 bf16_of(float x) {
    u16 r;
    asm("cvt.rn.bf16.f32 %0,%1;" : "=h"(r) : "f"(x));
    return r;
}
DEVICE float ex2(float x) { // 2^x, approximate, denormals flushed
    float r;
    asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE float rcp(float x) { // 1 / x, likewise
    float r;
    asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x));
    return r;
}

// --- clusters (9.0 and later)
DEVICE u32 cluster_rank() {
    u32 r;
    asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(r));
    return r;
}
DEVICE void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
/// The two halves of cluster_sync: writes before the first are visible after the second.
DEVICE void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
/// As cluster_arrive, for initialised mbarriers (mbar_init_fence) alone: waits for no other writes.
DEVICE void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
DEVICE void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Stores four floats in another block of the cluster, which must have started.
DEVICE void st_cluster4(u32 at, u32 rank, const float* v) {
    u32 a;
    asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(a) : "r"(at), "r"(rank));
    asm volatile("st.shared::cluster.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(a), "f"(v[0]), "f"(v[1]),
                 "f"(v[2]), "f"(v[3])
                 : "memory");
}
/// Four floats of another block of the cluster, at its address for them.
DEVICE void ld_cluster4(float* v, u32 at, u32 rank) {
    u32 a;
    asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(a) : "r"(at), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3},[%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(a)
                 : "memory");
}

/// The address, for the whole cluster, of what another of its blocks has at `at`.
DEVICE u32 cluster_address(u32 at, u32 rank) {
    u32 a;
    asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(a) : "r"(at), "r"(rank));
    return a;
}

#if __CUDA_ARCH__ >= 900
// --- mbarriers and TMA
DEVICE void mbar_init(u32 bar, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;" ::"r"(bar), "r"(arrivals) : "memory");
}
/// Makes initialised mbarriers visible to TMA and the cluster.
DEVICE void mbar_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DEVICE void mbar_expect(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}
DEVICE void mbar_arrive(u32 bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(bar) : "memory");
}
DEVICE void mbar_wait(u32 bar, u32 phase) {
    asm volatile(
        "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p,[%0],%1; @!p bra W;}" ::"r"(
            bar),
        "r"(phase)
        : "memory");
}
/// Sees what other blocks of the cluster have sent: their bytes count at the mbarrier.
DEVICE void mbar_wait_cluster(u32 bar, u32 phase) {
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
                 "p,[%0],%1; @!p bra W;}" ::"r"(bar),
                 "r"(phase)
                 : "memory");
}
/// Sends four floats to a block of the cluster, which must have started; they count at its
/// mbarrier. Both addresses are those of cluster_address.
DEVICE void st_async4(u32 to, const float* v, u32 bar) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0],{%1,%2,%3,%4},[%5];" ::"r"(to),
                 "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(bar)
                 : "memory");
}
DEVICE void prefetch_map(const TensorMap* m) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(m) : "memory");
}
DEVICE void tma_load2(u32 to, const TensorMap* m, int x, int y, u32 bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0],[%1,{%2,%3}],[%4];" ::"r"(to),
                 "l"(m), "r"(x), "r"(y), "r"(bar)
                 : "memory");
}
DEVICE void tma_load4(u32 to, const TensorMap* m, int x, int y, int z, int w, u32 bar) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0],[%1,{%2,%3,%4,%5}],[%6];" ::"r"(to),
                 "l"(m), "r"(x), "r"(y), "r"(z), "r"(w), "r"(bar)
                 : "memory");
}
DEVICE void tma_load5(u32 to, const TensorMap* m, int x, int y, int z, int w, int v, u32 bar) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0],[%1,{%2,%3,%4,%5,%6}],[%7];" ::"r"(to),
                 "l"(m), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(bar)
                 : "memory");
}
/// Contiguous bytes; addresses and `bytes` are multiples of 16.
DEVICE void bulk_load(u32 to, const void* from, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0],[%1],%2,[%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}
DEVICE void tma_store2(const TensorMap* m, int x, int y, u32 from) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0,{%1,%2}],[%3];" ::"l"(m),
        "r"(x), "r"(y), "r"(from)
        : "memory");
}
DEVICE void tma_store4(const TensorMap* m, int x, int y, int z, int w, u32 from) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
                 "[%0,{%1,%2,%3,%4}],[%5];" ::"l"(m),
                 "r"(x), "r"(y), "r"(z), "r"(w), "r"(from)
                 : "memory");
}
DEVICE void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N>
DEVICE void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
DEVICE void bulk_wait_all() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
/// Makes ordinary stores to shared memory visible to TMA and the tensor cores.
DEVICE void async_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DEVICE void stmatrix4(u32 at, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(a),
                 "r"(b), "r"(c), "r"(d)
                 : "memory");
}
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(INGOT_EMULATED)
// --- warpgroup matrix instructions (9.0a); wgmma itself is in wgmma.cuh, by tile width
template <int N>
DEVICE void regs_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
DEVICE void regs_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
DEVICE void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/// K-major operand with 128-byte swizzle: 1024 bytes between groups of 8 rows.
DEVICE u64 wgmma_desc(u32 at) {
    return (u64)((at & 0x3FFFF) >> 4) | ((u64)1 << 16) | ((u64)64 << 32) | ((u64)1 << 62);
}
#endif
