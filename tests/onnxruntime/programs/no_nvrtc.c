/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: no libnvrtc is found on this machine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void* dlopen(const char* path, int flags) {
    void* (*next)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
    return next(path != NULL && strstr(path, "libnvrtc") != NULL ? "/none/libnvrtc.so" : path, flags);
}
