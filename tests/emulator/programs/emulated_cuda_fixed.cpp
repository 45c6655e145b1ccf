// SPDX-License-Identifier: Apache-2.0
// Functions of the emulated libcuda.so.1 that keep no state.
#include "backends/cuda/driver/driver.h"

#include <cstdio>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace ingot::cuda; // NOLINT(google-build-using-namespace): a program of its own

template <class T>
static CUresult answer(T* out, T value) {
    *out = value;
    return 0;
}

EXPORT CUresult cuInit(unsigned int) {
    return 0;
}
EXPORT CUresult cuDriverGetVersion(int* version) {
    return answer(version, 13000);
}
EXPORT CUresult cuDeviceGetName(char* text, int room, CUdevice i) {
    std::snprintf(text, static_cast<size_t>(room), "emulated GPU %d", i);
    return 0;
}
EXPORT CUresult cuDeviceGetPCIBusId(char* text, int room, CUdevice i) {
    std::snprintf(text, static_cast<size_t>(room), "0000:%02x:00.0", i + 1);
    return 0;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    return 0;
}
EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return 0;
}
EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
    constexpr size_t all = 16ULL << 30U;
    *free = all;
    *total = all;
    return 0;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction, int, int) {
    return 0;
}
EXPORT CUresult cuTensorMapEncodeTiled() {
    constexpr CUresult bad_value = 1;
    return bad_value; // compute capability 8.0 has no tensor maps
}
EXPORT CUresult cuStreamSetAttribute(CUstream, int, const void*) {
    return 0;
}
EXPORT CUresult cuThreadExchangeStreamCaptureMode(int*) {
    return 0;
}
EXPORT CUresult cuEventCreate(CUevent* out, unsigned) {
    return answer(out, static_cast<CUevent>(std::malloc(1)));
}
EXPORT CUresult cuEventDestroy_v2(CUevent e) {
    std::free(e);
    return 0;
}
EXPORT CUresult cuEventElapsedTime(float* ms, CUevent, CUevent) {
    return answer(ms, 0.25F);
}
EXPORT CUresult cuGetErrorName(CUresult r, const char** text) {
    *text = r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_EMULATED";
    return 0;
}
EXPORT CUresult cuGetErrorString(CUresult r, const char** text) {
    *text = r == 700 ? "an illegal memory access was encountered" : "the emulator refuses it";
    return 0;
}
