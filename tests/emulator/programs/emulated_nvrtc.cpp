// SPDX-License-Identifier: Apache-2.0
// A libnvrtc.so.13 that compiles for the GPUs of emulated_cuda.cpp. ingot_emulated_hold() stops
// compilations that begin from then on: 1 all, 2 those of kernels that are fitted to a shape; 0
// lets them go.
#include "base/error.h"
#include "emulator/compile.h"
#include "emulator/kept.h"

#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Program {
    std::string text;
    std::string log;
    std::string binary; // its size, and then its bytes
};

/// Never destroyed: threads may compile at the end of the process.
struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    int held = 0;
    int waiting = 0;
    int done = 0;
    int niceness = 0;
};
Gate& gate() {
    static auto* g = new Gate;
    return *g;
}

Program& of(void* p) {
    return *static_cast<Program*>(p);
}

/// Integer arguments of a kernel that is fitted to a shape are literals, beside parameters that
/// nothing reads (cuda::specialised_text).
bool is_fitted(const Program& p) {
    return p.text.find("_argument") != std::string::npos;
}

} // namespace

EXPORT void ingot_emulated_hold(int held) {
    std::scoped_lock lock(gate().mutex);
    gate().held = held;
    gate().changed.notify_all();
}
/// Compilations that wait, and those that have ended.
EXPORT int ingot_emulated_waiting() {
    std::scoped_lock lock(gate().mutex);
    return gate().waiting;
}
EXPORT int ingot_emulated_compiled() {
    std::scoped_lock lock(gate().mutex);
    return gate().done;
}

/// That of the thread whose compilation began last: 19 gives way to all others.
EXPORT int ingot_emulated_niceness() {
    std::scoped_lock lock(gate().mutex);
    return gate().niceness;
}

EXPORT int nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return 0;
}
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
    *count = 1;
    return 0;
}
/// INGOT_EMULATED_ARCH: an older one, as of an older release.
EXPORT int nvrtcGetSupportedArchs(int* archs) {
    const char* chosen = std::getenv("INGOT_EMULATED_ARCH");
    *archs = chosen == nullptr ? 80 : std::atoi(chosen);
    return 0;
}
EXPORT const char* nvrtcGetErrorString(int code) {
    return code == 0 ? "success" : "the emulator does not compile it";
}
EXPORT int nvrtcCreateProgram(void** out, const char* text, const char*, int, const char* const*,
                              const char* const*) {
    auto made = std::make_unique<Program>();
    made->text = text;
    *out = made.release();
    return 0;
}
EXPORT int nvrtcDestroyProgram(void** p) {
    std::unique_ptr<Program>(static_cast<Program*>(*p)).reset();
    return 0;
}
EXPORT int nvrtcCompileProgram(void* p, int, const char* const*) {
    {
        std::unique_lock lock(gate().mutex);
        gate().niceness = getpriority(PRIO_PROCESS, 0); // of this thread
        ++gate().waiting;
        bool fitted = is_fitted(of(p));
        gate().changed.wait(lock,
                            [fitted] { return gate().held == 0 || (gate().held == 2 && !fitted); });
        --gate().waiting;
    }
    try {
        constexpr int cc = 80;
        std::string library =
            ingot::emulator::compile_text(of(p).text, cc, ingot::emulator::kept_folder());
        uint64_t bytes = library.size();
        of(p).binary.assign(reinterpret_cast<const char*>(&bytes), sizeof bytes);
        of(p).binary += library;
    } catch (const ingot::Error& e) {
        of(p).log = e.what();
        constexpr int compilation_failed = 6;
        return compilation_failed;
    }
    std::scoped_lock lock(gate().mutex);
    ++gate().done;
    return 0;
}
EXPORT int nvrtcGetProgramLogSize(void* p, size_t* bytes) {
    *bytes = of(p).log.size() + 1;
    return 0;
}
EXPORT int nvrtcGetProgramLog(void* p, char* out) {
    std::strcpy(out, of(p).log.c_str());
    return 0;
}
EXPORT int nvrtcGetCUBINSize(void* p, size_t* bytes) {
    *bytes = of(p).binary.size();
    return 0;
}
EXPORT int nvrtcGetCUBIN(void* p, char* out) {
    of(p).binary.copy(out, of(p).binary.size());
    return 0;
}
EXPORT int nvrtcGetPTXSize(void*, size_t* bytes) {
    *bytes = 0;
    return 0;
}
