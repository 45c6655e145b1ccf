#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When which thread called CUDA's driver, and how long each call took: a libcuda.so.1 that notes each call and passes
it on to the driver.

  driver_calls.py make --out DIR [--driver libcuda.so.1]     DIR/libcuda.so.1, of the C that it writes; INGOT_DRIVER
                                                             names the driver anew
  LD_LIBRARY_PATH=DIR INGOT_DRIVER_CALLS=FILE program ...    FILE.<process>, of 64 MB with holes
  driver_calls.py show FILE.<process>                        JSON

`show`: `long`, calls of at least --long microseconds, by name and by whether their thread launches graphs (of requests)
or not (of loads): count, median, longest, sum; `request`, the median start and length of each call of a request (of the
last 200 with the commonest order of calls), in microseconds from the end of the call before its first copy.
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ("src/backends/cuda/driver/driver.cpp", "plugins/common/cuda_memory.cpp")
RUNTIMES = ".deps/triton/nvidia_pytriton.libs/libcudart-*.so*"
QUIET = {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuGetErrorString",
         "cuThreadExchangeStreamCaptureMode", "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"}
RECORD = struct.Struct("<QIIIIQ")  # start in ns, length in ns, thread, number of the name, unused, second argument
HEAD = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
struct record { uint64_t start; uint32_t length, thread, name, unused; uint64_t argument; };
enum { most = 1 << 21 };
static struct record* records;
static unsigned count;
static void* driver;
__attribute__((constructor)) static void begin(void) {
    const char* path = getenv("INGOT_DRIVER");
    driver = dlopen(path != NULL ? path : "@DRIVER@", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL) { fprintf(stderr, "%s\n", dlerror()); _exit(99); }
    const char* base = getenv("INGOT_DRIVER_CALLS");
    if (base == NULL) return;
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", base, (int)getpid());
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600); /* shared: it stays however the process ends */
    if (file < 0 || ftruncate(file, most * sizeof records[0]) != 0) return;
    void* memory = mmap(NULL, most * sizeof records[0], PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) records = memory;
}
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void note(unsigned name, uint64_t start, uint64_t argument) {
    static __thread uint32_t thread;
    if (thread == 0) thread = (uint32_t)syscall(SYS_gettid);
    unsigned i = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    if (i < most && records != NULL) records[i] = (struct record){start, (uint32_t)(now() - start), thread, name, 0, argument};
}
typedef int (*call)(long, long, long, long, long, long, long, long, long, long, long, long);
"""
ONE = """int NAME(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) {
    static call next;
    if (next == NULL) next = (call)dlsym(driver, "NAME");
    if (next == NULL) return 500;
    uint64_t start = now();
    int result = next(a, b, c, d, e, f, g, h, i, j, k, l);
    LOG
    return result;
}
"""


def names():
    """All functions that this tree calls, and those of the server's CUDA runtime where it is."""
    found = set()
    for source in SOURCES:
        found |= set(re.findall(r'"(cu[A-Z]\w+)"', (ROOT / source).read_text(encoding="utf-8")))
    for runtime in ROOT.glob(RUNTIMES):
        found |= {name.decode() for name in re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", runtime.read_bytes())}
    return sorted(name for name in found if not name.startswith("cuda"))


def make(a):
    a.out.mkdir(parents=True, exist_ok=True)
    text = HEAD.replace("@DRIVER@", a.driver)
    for number, name in enumerate(names()):
        log = "" if name in QUIET else f"note({number}, start, (uint64_t)b);"
        text += ONE.replace("NAME", name).replace("LOG", log)
    source = a.out / "driver_calls.c"
    source.write_text(text, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-w", "-shared", "-fPIC", "-o", a.out / "libcuda.so.1", source, "-ldl"], check=True)
    (a.out / "names.json").write_text(json.dumps(names()), encoding="utf-8")


def read(file, known):
    """[(start, length in us, thread, name, argument)] in the order of their starts."""
    data = pathlib.Path(file).read_bytes()
    return sorted((start / 1e3, length / 1e3, thread, known[name], argument)
                  for start, length, thread, name, _, argument in RECORD.iter_unpack(data) if start > 0)


def long_calls(calls, least, serving):
    found = collections.defaultdict(list)
    for _, length, thread, name, argument in calls:
        if length >= least:
            size = f" {argument}" if "Alloc" in name else ""
            found[("request " if thread in serving else "load ") + name + size].append(length)
    return {name: {"count": len(v), "median": round(statistics.median(v), 1), "longest": round(max(v), 1),
                   "sum": round(sum(v), 1)} for name, v in sorted(found.items(), key=lambda x: -sum(x[1]))}


def requests(calls, thread):
    """Each run of calls from the first copy behind a wait to that wait's successor."""
    out, current = [], []
    for call in (c for c in calls if c[2] == thread):
        current.append(call)
        if call[3] == "cuStreamSynchronize":
            if any(c[3] == "cuGraphLaunch" for c in current):
                out.append(current)
            current = []
    return out


def typical(calls, thread):
    all_of = requests(calls, thread)
    if not all_of:
        return None
    order = collections.Counter(tuple(c[3] for c in r) for r in all_of).most_common(1)[0][0]
    chosen = [r for r in all_of if tuple(c[3] for c in r) == order][-200:]
    return {"requests": len(all_of),
            "calls": [[name, round(statistics.median(r[i][0] - r[0][0] for r in chosen), 1),
                       round(statistics.median(r[i][1] for r in chosen), 1)] for i, name in enumerate(order)]}


def show(a):
    calls = read(a.file, json.loads((pathlib.Path(__file__).parent / "names.json" if a.names is None else a.names)
                                    .read_text(encoding="utf-8")))
    launches = collections.Counter(c[2] for c in calls if c[3] == "cuGraphLaunch")
    serving = [thread for thread, n in launches.items() if n >= 100]
    print(json.dumps({"calls": len(calls), "long": long_calls(calls, a.long, serving),
                      "request": {thread: typical(calls, thread) for thread in serving}}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(required=True)
    one = commands.add_parser("make")
    one.set_defaults(call=make)
    one.add_argument("--out", type=pathlib.Path, required=True)
    one.add_argument("--driver", default="/usr/lib/x86_64-linux-gnu/libcuda.so.1")
    one = commands.add_parser("show")
    one.set_defaults(call=show)
    one.add_argument("file")
    one.add_argument("--names", type=pathlib.Path, help="names.json of make; else the one beside this script")
    one.add_argument("--long", type=float, default=300)
    a = p.parse_args()
    a.call(a)


if __name__ == "__main__":
    sys.exit(main())
