// SPDX-License-Identifier: Apache-2.0
// Fuzz target: hostile graphs through planner and kernels of emulated GPUs (emulated_run.h).
// Kernels are compiled for the host, which takes as long as hundreds of runs: most mutations keep
// the graph and choose other sizes and contents, and compilations get a share of the time.
#include "emulated_run.h"
#include "kernels/family.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace ingot;
using Clock = std::chrono::steady_clock;

constexpr double share = 0.5; // of the time, for compilations
constexpr int most_at_once = 6;
constexpr unsigned one_in = 16; // mutations change the graph

double seconds(Clock::duration d) {
    return std::chrono::duration<double>(d).count();
}

void tell(const hostile::Counts& n) {
    std::fprintf(
        stderr,
        "emulated: %lld sets of sizes, %lld refused, %lld runs, %lld launches, %lld inputs "
        "without a compiled kernel\n",
        static_cast<long long>(n.planned), static_cast<long long>(n.refused),
        static_cast<long long>(n.runs), static_cast<long long>(n.launches),
        static_cast<long long>(n.lacking));
}

hostile::Counts counts;

} // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    try { // without the tree, from whose headers kernels are compiled, no input would run one
        emulator::is_compiled(std::string(kernels::device_file("ptx")), 90,
                              emulator::kept_folder());
    } catch (const Error& e) {
        std::fprintf(stderr,
                     "fuzz_emulated compiles kernels, for which it needs g++ and the source "
                     "tree it was built from: %s\n",
                     e.what());
        std::exit(1);
    }
    std::atexit([] { tell(counts); });
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Clock::time_point begin = Clock::now();
    static double compiling = 0;
    Clock::time_point now = Clock::now();
    bool may_compile = compiling <= share * seconds(now - begin);
    hostile::CompileBudget budget{may_compile ? most_at_once : 0};
    try {
        hostile::run_emulated(std::span(data, size), budget, counts);
    } catch (const hostile::Fault& f) {
        std::fprintf(stderr, "%s\n", f.text.c_str());
        std::abort();
    }
    if (may_compile && budget.left < most_at_once) {
        compiling += seconds(Clock::now() - now);
    }
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
    size_t kept = hostile::Input::header + hostile::Input(std::span(data, size)).graph.size();
    if (size < hostile::Input::header || kept >= max_size || seed % one_in == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    return kept + LLVMFuzzerMutate(data + kept, size - kept, max_size - kept);
}
