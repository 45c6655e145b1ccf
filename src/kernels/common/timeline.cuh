// SPDX-License-Identifier: Apache-2.0
// Records when each block of a launch passes its marks: seven u64 a block, zero before the launch.
// `timeline_times` is the last parameter of the launched kernel; the functions that it calls read
// it by its name in PTX, TIMELINE_PARAMETER.
#ifdef INGOT_EMULATED
static u64* timeline_parameter; // of the launch: its blocks run alone
DEVICE u64 timeline_clock() {
    return INGOT_RUNTIME.time();
}
DEVICE u64 timeline_ns() {
    return INGOT_RUNTIME.time();
}
DEVICE u32 timeline_sm() {
    return blockIdx.x % 4;
}
DEVICE bool timeline_leads() {
    return true;
}
DEVICE void timeline_keep(u64* times) {
    timeline_parameter = times;
}
DEVICE u64* timeline_kept() {
    return timeline_parameter;
}
#else
DEVICE u64 timeline_clock() {
    u64 t;
    asm volatile("mov.u64 %0,%%clock64;" : "=l"(t)::"memory");
    return t;
}
DEVICE u64 timeline_ns() {
    u64 t;
    asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(t)::"memory");
    return t;
}
DEVICE u32 timeline_sm() {
    u32 n;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(n));
    return n;
}
/// One of the warp's threads that run this together.
DEVICE bool timeline_leads() {
    u32 active, lane;
    asm volatile("activemask.b32 %0;" : "=r"(active));
    asm volatile("mov.u32 %0,%%laneid;" : "=r"(lane));
    return (active & (0u - active)) == 1u << lane;
}
DEVICE void timeline_keep(u64*) {}
DEVICE u64* timeline_kept() {
    u64 p;
    asm volatile("ld.param.u64 %0,[" TIMELINE_PARAMETER "];" : "=l"(p));
    return (u64*)p;
}
#endif

enum TimelineMark {
    timeline_of_sm,  // plus one
    timeline_of_ns,  // of %globaltimer at the start
    timeline_start,  // this and the following by the multiprocessor's clock
    timeline_arrive, // the first thread begins to wait for the kernels before (complement)
    timeline_ready,  // the first one goes on, and dependents may start (complement)
    timeline_main,   // the last has left the main loop
    timeline_end
};
/// The meaning of `timeline_times` where no parameter has that name: in functions, and in the other
/// kernels of the text.
enum TimelineOfCaller { timeline_times };
DEVICE u64* timeline_at(u64* times) {
    return times;
}
DEVICE u64* timeline_at(TimelineOfCaller) {
    return timeline_kept();
}

DEVICE u64* timeline_block(u64* times) {
    return times + 7 * (blockIdx.x + (u64)gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
}
DEVICE void timeline_note(u64* times, int mark, bool first) {
    if (times && timeline_leads()) {
        u64 now = timeline_clock();
        atomicMax(timeline_block(times) + mark, first ? ~now : now);
    }
}
/// Only the launched kernel is compiled: there is no parameter that others could read.
DEVICE constexpr bool timeline_is_launched(u64*) {
    return true;
}
DEVICE constexpr bool timeline_is_launched(TimelineOfCaller) {
    return false;
}
/// Ends with each thread.
struct TimelineScope {
    u64* times;
    DEVICE explicit TimelineScope(u64* t) : times(t) {
        timeline_keep(t);
        if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
            u64* block = timeline_block(t);
            block[timeline_start] = timeline_clock();
            block[timeline_of_ns] = timeline_ns();
            block[timeline_of_sm] = timeline_sm() + 1;
        }
    }
    DEVICE ~TimelineScope() { timeline_note(times, timeline_end, false); }
};
DEVICE void timeline_grid_wait(u64* times) {
    timeline_note(times, timeline_arrive, true);
    grid_wait();
    timeline_note(times, timeline_ready, true);
}
#define begin_kernel()                                                                             \
    if (!timeline_is_launched(timeline_times))                                                     \
        return;                                                                                    \
    TimelineScope timeline_scope(timeline_at(timeline_times))
#define grid_wait() timeline_grid_wait(timeline_at(timeline_times))
#define end_main_loop() timeline_note(timeline_at(timeline_times), timeline_main, false)
