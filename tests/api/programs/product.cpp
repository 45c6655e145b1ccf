// SPDX-License-Identifier: Apache-2.0
// How programs distinguish the products.
#include "NvInferVersion.h"

#ifdef INGOT_TENSORRT_ENTERPRISE
#ifdef TRT_MAJOR_RTX
#error "TRT_MAJOR_RTX stands for the other product"
#endif
static_assert(NV_TENSORRT_MAJOR == 11 && NV_TENSORRT_MAJOR == TRT_MAJOR_ENTERPRISE, "");
static_assert(NV_TENSORRT_VERSION == 110100L, "");
#else
#ifndef TRT_MAJOR_RTX
#error "programs look for TRT_MAJOR_RTX"
#endif
static_assert(NV_TENSORRT_MAJOR == 1 && NV_TENSORRT_MINOR == TRT_MINOR_RTX, "");
static_assert(NV_TENSORRT_VERSION == 10600L, "");
#endif
#if NV_TENSORRT_VERSION < NV_TENSORRT_VERSION_INT(1, 6, 0)
#error "versions compare in the preprocessor"
#endif

int main() {
    return 0;
}
