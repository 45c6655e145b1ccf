// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/nvtx.h"

#include "base/log.h"
#include "base/shared_library.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace ingot::cuda {

namespace {

// The part of NVTX 3's injection interface for ranges: a profiler's library requests the table of
// callbacks by number and stores its functions in the table's slots.
using AnyFunction = void (*)();

constexpr int core_module = 1;
constexpr int push_slot = 9; // NVTX_CBID_CORE_RangePushA
constexpr int pop_slot = 11; // NVTX_CBID_CORE_RangePop
constexpr unsigned slot_count = 17;
constexpr uint32_t callbacks_table = 1;
constexpr uint32_t version_table = 3;

struct Slots {
    AnyFunction functions[slot_count] = {};
    AnyFunction* pointers[slot_count] = {};
};

/// One per process, as the interface requires.
Slots& slots() {
    static Slots s;
    return s;
}

int get_module(int module, AnyFunction*** table, unsigned* size) {
    if (module != core_module) {
        return 0;
    }
    for (unsigned i = 0; i < slot_count; ++i) {
        slots().pointers[i] = &slots().functions[i];
    }
    *table = slots().pointers;
    if (size != nullptr) {
        *size = slot_count;
    }
    return 1;
}

struct Callbacks {
    size_t bytes = sizeof(Callbacks);
    int (*get)(int, AnyFunction***, unsigned*) = get_module;
};

struct Version {
    size_t bytes = sizeof(Version);
    uint32_t version = 3;
    uint32_t reserved = 0;
    void (*set)(uint32_t) = [](uint32_t) {};
};

const void* get_table(uint32_t id) {
    static const Callbacks callbacks;
    static const Version version;
    return id == callbacks_table ? static_cast<const void*>(&callbacks)
           : id == version_table ? static_cast<const void*>(&version)
                                 : nullptr;
}

template <class F>
F cast(AnyFunction f) {
    return reinterpret_cast<F>(reinterpret_cast<void*>(f));
}

} // namespace

Nvtx open_nvtx(const char* injection) {
    Nvtx n;
    std::string problem;
    if (injection != nullptr && *injection != 0) {
        SharedLibrary library = SharedLibrary::open(injection, problem);
        using Start = int (*)(const void* (*)(uint32_t));
        auto start =
            library ? reinterpret_cast<Start>(library.symbol("InitializeInjectionNvtx2")) : nullptr;
        if (start != nullptr && start(get_table) != 0) {
            n.push = cast<int (*)(const char*)>(slots().functions[push_slot]);
            n.pop = cast<int (*)()>(slots().functions[pop_slot]);
        } else {
            log(LogLevel::Warning, "nvtx: NVTX_INJECTION64_PATH=", injection,
                " cannot be used: ", library ? "it does not start" : problem.c_str());
        }
        return n;
    }
    if (SharedLibrary library = SharedLibrary::open("libnvToolsExt.so.1", problem)) {
        n.push = reinterpret_cast<int (*)(const char*)>(library.symbol("nvtxRangePushA"));
        n.pop = reinterpret_cast<int (*)()>(library.symbol("nvtxRangePop"));
    }
    return n;
}

const Nvtx& nvtx() {
    static const Nvtx n = open_nvtx(std::getenv("NVTX_INJECTION64_PATH"));
    return n;
}

} // namespace ingot::cuda
