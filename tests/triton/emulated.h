// SPDX-License-Identifier: Apache-2.0
// Instances on an emulated GPU, whose kernels are compiled as on a real one. The driver and the
// compiler come from the folder emulated_cuda, of which the test `triton_emulated` tells the
// process; without them these tests are skipped.
#pragma once

#include "tests/triton/scene.h"

#include <dlfcn.h>

#include <chrono>

namespace ingot::triton {

/// A function of a library; null where one of them is missing.
template <class F>
F* find_function(const char* library, const char* name) {
    void* opened = library == nullptr ? nullptr : dlopen(library, RTLD_NOW);
    return opened == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(opened, name));
}

class TritonEmulated : public testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds patience{120};

    int64_t (*newest)(int) = nullptr; // kernel that was launched, of a GPU
    int64_t (*loaded)(int) = nullptr;
    int64_t (*launches)(int, bool) = nullptr;       // on streams of raised priority, or on others
    int64_t (*stopping)(int) = nullptr;             // allocations that a real GPU waits for
    int64_t (*streams)(int) = nullptr;              // that were made
    int64_t (*locking)(int) = nullptr;              // calls that lock or unlock pages
    int64_t (*executed)(int) = nullptr;             // kernels that ran, of graphs too
    int64_t (*graphs)(int) = nullptr;               // that live
    int64_t (*counted)(int, const char*) = nullptr; // calls of a function; "": of all
    int64_t (*hops)(int) = nullptr;                 // waits of a stream for another's event
    void (*hold)(int) = nullptr;                    // 1: the compiler stands still
    int (*waiting)() = nullptr;                     // compilations that do
    int (*compiled)() = nullptr;
    int (*niceness)() = nullptr; // of the thread whose compilation began last
};

/// Bytes of an engine: `y` f32[n, 7, 5] is the transpose of `x` f32[n, 5, 7], doubled.
std::string turning_engine(int32_t most, const Configure& configure = {});
/// A request for it is run and its answer compared.
void turn(Scene& scene, int64_t rows);

} // namespace ingot::triton
