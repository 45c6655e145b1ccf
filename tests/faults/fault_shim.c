// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: counts the calls of the C library's functions on files and memory that the
// program makes, and breaks one of them.
//   INGOT_FAULT_AT     which call, from 1 on; 0: none
//   INGOT_FAULT_ERRNO  the error that it gives, or "kill": the process is killed there
//   INGOT_FAULT_LOG    a file that gets the number of calls when the process exits by itself
// A program may count and break a part of its calls itself: ingot_fault_arm(),
// ingot_fault_disarm().
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;
static atomic_int ready; // calls before main() are the loader's and the C library's
static long fault_at;
static int fault_errno;

__attribute__((constructor)) static void start(void) {
    const char* at = getenv("INGOT_FAULT_AT");
    const char* error = getenv("INGOT_FAULT_ERRNO");
    fault_at = at == NULL ? 0 : strtol(at, NULL, 10);
    fault_errno = error == NULL                ? EIO
                  : strcmp(error, "kill") == 0 ? -1
                                               : (int)strtol(error, NULL, 10);
    atomic_store(&ready, 1);
}

__attribute__((destructor)) static void end(void) {
    const char* path = getenv("INGOT_FAULT_LOG");
    long count = atomic_load(&calls);
    atomic_store(&ready, 0);
    FILE* log = path == NULL ? NULL : fopen(path, "w");
    if (log != NULL) {
        fprintf(log, "%ld\n", count);
        fclose(log);
    }
}

/// Counts from here on, and breaks call number `at` (0: none) with `error` (-1: the process is
/// killed).
void ingot_fault_arm(long at, int error) {
    fault_at = at;
    fault_errno = error;
    atomic_store(&calls, 0);
    atomic_store(&ready, 1);
}

/// Breaks nothing more. Returns how many calls there were.
long ingot_fault_disarm(void) {
    atomic_store(&ready, 0);
    return atomic_load(&calls);
}

/// Whether this call is the one to break; errno is set then.
static int broken(void) {
    if (!atomic_load(&ready) || atomic_fetch_add(&calls, 1) + 1 != fault_at) {
        return 0;
    }
    if (fault_errno < 0) {
        kill(getpid(), SIGKILL);
    }
    errno = fault_errno;
    return 1;
}

#define REAL(name) (__extension__(__typeof__(&name)) dlsym(RTLD_NEXT, #name))
#define BREAKABLE(result, failure, name, parameters, arguments)                                    \
    result name parameters {                                                                       \
        static __typeof__(&name) real;                                                             \
        if (real == NULL) {                                                                        \
            real = REAL(name);                                                                     \
        }                                                                                          \
        return broken() ? failure : real arguments;                                                \
    }

BREAKABLE(ssize_t, -1, read, (int fd, void* to, size_t n), (fd, to, n))
BREAKABLE(ssize_t, -1, pread, (int fd, void* to, size_t n, off_t at), (fd, to, n, at))
BREAKABLE(ssize_t, -1, write, (int fd, const void* from, size_t n), (fd, from, n))
BREAKABLE(ssize_t, -1, pwrite, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at))
BREAKABLE(int, -1, fsync, (int fd), (fd))
BREAKABLE(int, -1, fdatasync, (int fd), (fd))
BREAKABLE(int, -1, ftruncate, (int fd, off_t n), (fd, n))
BREAKABLE(int, -1, fstat, (int fd, struct stat* info), (fd, info))
BREAKABLE(int, -1, stat, (const char* path, struct stat* info), (path, info))
BREAKABLE(int, -1, lstat, (const char* path, struct stat* info), (path, info))
BREAKABLE(int, -1, access, (const char* path, int mode), (path, mode))
BREAKABLE(int, -1, mkdir, (const char* path, mode_t mode), (path, mode))
BREAKABLE(int, -1, unlink, (const char* path), (path))
BREAKABLE(int, -1, rename, (const char* from, const char* to), (from, to))
BREAKABLE(int, -1, linkat, (int a, const char* from, int b, const char* to, int flags),
          (a, from, b, to, flags))
BREAKABLE(int, -1, flock, (int fd, int how), (fd, how))
BREAKABLE(void*, MAP_FAILED, mmap, (void* a, size_t n, int p, int f, int fd, off_t at),
          (a, n, p, f, fd, at))
BREAKABLE(int, -1, mprotect, (void* a, size_t n, int p), (a, n, p))
BREAKABLE(int, -1, memfd_create, (const char* name, unsigned flags), (name, flags))

// The descriptor is gone even where close() fails.
int close(int fd) {
    static __typeof__(&close) real;
    if (real == NULL) {
        real = REAL(close);
    }
    int fails = broken();
    int result = real(fd);
    if (fails) {
        errno = fault_errno;
    }
    return fails ? -1 : result;
}

#define BREAKABLE_OPEN(name, parameters, last, ...)                                                \
    int name parameters {                                                                          \
        static __typeof__(&name) real;                                                             \
        if (real == NULL) {                                                                        \
            real = REAL(name);                                                                     \
        }                                                                                          \
        va_list list;                                                                              \
        va_start(list, last);                                                                      \
        mode_t mode = va_arg(list, mode_t);                                                        \
        va_end(list);                                                                              \
        return broken() ? -1 : real(__VA_ARGS__, mode);                                            \
    }
BREAKABLE_OPEN(open, (const char* path, int flags, ...), flags, path, flags)
BREAKABLE_OPEN(open64, (const char* path, int flags, ...), flags, path, flags)
BREAKABLE_OPEN(openat, (int at, const char* path, int flags, ...), flags, at, path, flags)

// openat2 has no function of its own.
long syscall(long number, ...) {
    static __typeof__(&syscall) real;
    if (real == NULL) {
        real = REAL(syscall);
    }
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; ++i) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    const long futex = 202;
    return number != futex && broken() ? -1 : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
