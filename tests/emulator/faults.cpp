// SPDX-License-Identifier: Apache-2.0
#include "emulator/faults.h"

#include "emulator/cluster.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace ingot::emulator {

namespace {

constexpr int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr size_t handler_stack = 64 * 1024;

struct sigaction previous[std::size(caught)];

struct {
    const void* address = nullptr;
    const void* code = nullptr;
    const void* lowest = nullptr; // of the stack's frames
    const char* what = nullptr;
} fault;

/// Runs on the fiber's stack, which begins anew.
__attribute__((no_sanitize("address"))) void landing() {
    running()->forget_frames(fault.lowest);
    running()->fault(fault.address, fault.what, fault.code);
}

void describe(int signal, const siginfo_t* info) {
    fault.address = nullptr;
    switch (signal) {
    case SIGFPE:
        fault.what = "integer division by zero";
        break;
    case SIGILL:
        fault.what = "a misaligned access, an index outside a local array, or a shift by too much";
        break;
    default:
        fault.what = "accesses memory";
        if (info->si_code > 0 && info->si_addr != nullptr) {
            fault.address = info->si_addr;
        } else {
            fault.what = "accesses memory by an invalid or misaligned address";
        }
    }
}

void handle(int signal, siginfo_t* info, void* context) {
    auto* c = static_cast<ucontext_t*>(context);
    greg_t* registers = c->uc_mcontext.gregs;
    if (running() == nullptr || !running()->on_fiber()) {
        for (size_t i = 0; i < std::size(caught); ++i) {
            sigaction(caught[i], &previous[i], nullptr);
        }
        return; // the instruction runs again and meets the previous handler
    }
    describe(signal, info);
    // One byte in, as a return address would be.
    fault.code = reinterpret_cast<const void*>(registers[REG_RIP] + 1);
    fault.lowest = reinterpret_cast<const void*>(registers[REG_RSP]);
    registers[REG_RSP] = reinterpret_cast<greg_t>(running()->stack_top()) - 8;
    registers[REG_RIP] = reinterpret_cast<greg_t>(landing);
}

} // namespace

FaultGuard::FaultGuard() {
    thread_local void* memory = nullptr;
    if (memory == nullptr) {
        memory = mmap(nullptr, handler_stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    }
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = handler_stack;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < std::size(caught); ++i) {
        sigaction(caught[i], &action, &previous[i]);
    }
}

FaultGuard::~FaultGuard() {
    for (size_t i = 0; i < std::size(caught); ++i) {
        sigaction(caught[i], &previous[i], nullptr);
    }
}

} // namespace ingot::emulator
