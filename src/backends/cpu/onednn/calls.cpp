// SPDX-License-Identifier: Apache-2.0
// Unpacks the compressed oneDNN library into an anonymous in-memory file for the loader: a single
// file has to be copied, and nothing installed.
#include "backends/cpu/onednn/calls.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdio>

// The bytes of INGOT_ONEDNN_BLOB, a zstd frame with size and checksum. The asm string is a macro's
// string literal.
asm(".section .rodata.ingot_onednn,\"a\",@progbits\n"
    ".balign 64\n"
    ".hidden ingot_onednn_begin\n"
    ".hidden ingot_onednn_end\n"
    ".globl ingot_onednn_begin\n"
    ".globl ingot_onednn_end\n"
    "ingot_onednn_begin:\n"
    ".incbin \"" INGOT_ONEDNN_BLOB "\"\n"
    "ingot_onednn_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const char ingot_onednn_begin[];
extern "C" __attribute__((visibility("hidden"))) const char ingot_onednn_end[];

namespace ingot::cpu::onednn {

namespace {

constexpr unsigned long long largest_library = 1ULL << 30;

/// Unpacks into `file`; returns null or the reason of failure.
const char* unpack(int file) {
    const auto packed = static_cast<size_t>(ingot_onednn_end - ingot_onednn_begin);
    unsigned long long size = ZSTD_getFrameContentSize(ingot_onednn_begin, packed);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size == 0 ||
        size > largest_library) {
        return "the oneDNN library inside is damaged";
    }
    if (::ftruncate(file, static_cast<off_t>(size)) != 0) {
        return "not enough memory for the oneDNN library";
    }
    void* to = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (to == MAP_FAILED) {
        return "not enough memory for the oneDNN library";
    }
    size_t got = ZSTD_decompress(to, size, ingot_onednn_begin, packed);
    ::munmap(to, size);
    return ZSTD_isError(got) != 0 || got != size ? "the oneDNN library inside is damaged" : nullptr;
}

} // namespace

bool open_calls(Calls& calls, char* why, size_t why_size) noexcept {
    int file = ::memfd_create("ingot-onednn", MFD_CLOEXEC);
    if (file < 0) {
        std::snprintf(why, why_size, "the system refused an in-memory file");
        return false;
    }
    const char* problem = unpack(file);
    if (problem != nullptr) {
        ::close(file);
        std::snprintf(why, why_size, "%s", problem);
        return false;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void* handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ::close(file);
    if (handle == nullptr) {
        std::snprintf(why, why_size, "%s", ::dlerror());
        return false;
    }
#define INGOT_DNNL(function)                                                                       \
    calls.function = reinterpret_cast<decltype(calls.function)>(::dlsym(handle, #function));       \
    if (calls.function == nullptr) {                                                               \
        std::snprintf(why, why_size, "the oneDNN library inside has no %s", #function);            \
        return false;                                                                              \
    }
#include "backends/cpu/onednn/calls.def"
#undef INGOT_DNNL
    return true;
}

} // namespace ingot::cpu::onednn
