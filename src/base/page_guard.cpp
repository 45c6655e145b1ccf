// SPDX-License-Identifier: Apache-2.0
#include "base/page_guard.h"

#include "base/error.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace ingot {

namespace {

// Read by a signal handler: nothing here is ever freed or moved.
struct Slot {
    std::atomic<bool> taken{false};
    std::atomic<uintptr_t> begin{0};
    std::atomic<uintptr_t> end{0}; // 0: unused
    std::atomic<bool> lost{false};
    std::array<char, 256> path{}; // the last characters of a longer path
};
constexpr size_t most_slots = 4096;
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::array<Slot, most_slots> slots;
std::atomic<bool> any_lost{false};
struct sigaction earlier; // handles the signals that are not ours
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

uintptr_t page_bytes() {
    static const auto bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

void hand_on(int signal, siginfo_t* info, void* context) {
    if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction != nullptr) {
        earlier.sa_sigaction(signal, info, context);
    } else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) {
        earlier.sa_handler(signal);
    } else { // the retried access ends the process
        struct sigaction standard {};
        standard.sa_handler = SIG_DFL;
        ::sigaction(signal, &standard, nullptr);
    }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
    auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    for (Slot& s : slots) {
        if (info->si_code != BUS_ADRERR || at < s.begin || at >= s.end) {
            continue;
        }
        int saved = errno;
        // The retried access reads zeros. One page at a time: the other pages may still be
        // readable.
        uintptr_t page = at / page_bytes() * page_bytes();
        void* there = ::mmap(reinterpret_cast<void*>(page), page_bytes(), PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        errno = saved;
        if (there != MAP_FAILED) {
            s.lost = true;
            any_lost = true;
            return;
        }
    }
    hand_on(signal, info, context);
}

void set_handler() {
    static std::once_flag once;
    std::call_once(once, [] {
        static_cast<void>(page_bytes()); // not for the first time in a handler
        struct sigaction action {};
        action.sa_sigaction = on_bus_error;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(SIGBUS, nullptr, &earlier);
        ::sigaction(SIGBUS, &action, nullptr);
    });
}

} // namespace

void guard_pages(std::span<const std::byte> map, std::string_view path) {
    if (map.empty()) {
        return;
    }
    set_handler();
    for (Slot& s : slots) {
        if (!s.taken.exchange(true)) {
            s.lost = false;
            path.remove_prefix(path.size() - std::min(path.size(), s.path.size() - 1));
            std::copy(path.begin(), path.end(), s.path.begin());
            s.path[path.size()] = 0;
            s.end = reinterpret_cast<uintptr_t>(map.data()) + map.size();
            s.begin = reinterpret_cast<uintptr_t>(map.data());
            return;
        }
    }
}

void release_pages(std::span<const std::byte> map) {
    auto begin = reinterpret_cast<uintptr_t>(map.data());
    for (Slot& s : slots) {
        if (!map.empty() && s.begin == begin) {
            s.begin = 0;
            s.end = 0;
            s.taken = false;
        }
    }
}

bool are_guarded(std::span<const std::byte> bytes) {
    auto at = reinterpret_cast<uintptr_t>(bytes.data());
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& s) {
        const uintptr_t end = s.end;
        return at >= s.begin && at < end && bytes.size() <= end - at;
    });
}

bool pages_were_lost() {
    return any_lost;
}

void check_pages(std::span<const std::byte> bytes) {
    if (!any_lost || bytes.empty()) {
        return;
    }
    auto at = reinterpret_cast<uintptr_t>(bytes.data());
    for (const Slot& s : slots) {
        require(at < s.begin || at >= s.end || !s.lost, ErrorCode::Io, "cannot read all of '",
                s.path.data(),
                "': it was truncated while it was in use, or its disk fails; write "
                "a file anew under another name, and rename that");
    }
}

} // namespace ingot
