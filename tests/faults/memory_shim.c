// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: malloc fails for one shared library, whatever others get.
//   INGOT_MEMORY_OF    a part of the library's file name
//   INGOT_MEMORY_AT    the first of its calls that fails, from 1 on; 0: none
//   INGOT_MEMORY_LAST  the last one; 0: all from the first on
//   INGOT_MEMORY_LOG   a file that gets the number of its calls when the process exits by itself
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void* __libc_malloc(size_t bytes);

static atomic_long calls;
static atomic_int ready; // calls before main() are the loader's
static _Thread_local int inside;
static const char* library;
static long first;
static long last;

static long number(const char* name) {
    const char* text = getenv(name);
    return text == NULL ? 0 : strtol(text, NULL, 10);
}

__attribute__((constructor)) static void start(void) {
    library = getenv("INGOT_MEMORY_OF");
    first = number("INGOT_MEMORY_AT");
    last = number("INGOT_MEMORY_LAST");
    atomic_store(&ready, library != NULL);
}

__attribute__((destructor)) static void end(void) {
    const char* path = getenv("INGOT_MEMORY_LOG");
    atomic_store(&ready, 0);
    FILE* log = path == NULL ? NULL : fopen(path, "w");
    if (log != NULL) {
        fprintf(log, "%ld\n", atomic_load(&calls));
        fclose(log);
    }
}

static int fails_for(const void* caller) {
    Dl_info info;
    if (!atomic_load(&ready) || inside) {
        return 0;
    }
    inside = 1;
    int found = dladdr(caller, &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, library) != NULL;
    inside = 0;
    long call = found ? atomic_fetch_add(&calls, 1) + 1 : 0;
    return found && first > 0 && call >= first && (last == 0 || call <= last);
}

void* malloc(size_t bytes) {
    if (fails_for(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}
