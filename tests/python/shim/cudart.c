// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime on host memory, as far as programs call it that run engines on the CPU: a stand-in
// for libcudart.so on machines without a GPU. Streams are allocations: work is done when it is called.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, no_memory = 2 };

int cudaMalloc(void **memory, size_t bytes) {
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
    return *memory == NULL ? no_memory : success;
}

int cudaFree(void *memory) {
    free(memory);
    return success;
}

int cudaMallocAsync(void **memory, size_t bytes, void *stream) {
    (void)stream;
    return cudaMalloc(memory, bytes);
}

int cudaFreeAsync(void *memory, void *stream) {
    (void)stream;
    return cudaFree(memory);
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
    (void)kind;
    memmove(to, from, bytes);
    return success;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

int cudaStreamCreate(void **stream) {
    *stream = malloc(1);
    return *stream == NULL ? no_memory : success;
}

int cudaStreamCreateWithFlags(void **stream, unsigned flags) {
    (void)flags;
    return cudaStreamCreate(stream);
}

int cudaStreamSynchronize(void *stream) {
    (void)stream;
    return success;
}

int cudaStreamDestroy(void *stream) {
    free(stream);
    return success;
}

const char *cudaGetErrorString(int code) {
    return code == success ? "no error" : "out of memory";
}
