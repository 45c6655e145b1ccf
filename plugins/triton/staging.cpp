// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/staging.h"

#include "base/cpus.h"

#include <algorithm>
#include <cstring>

namespace ingot::triton {

namespace {

constexpr size_t alignment = 256;
/// Small inputs stand beside each other in one half.
constexpr size_t least_half = 64 << 10;

/// More gain little: a request's body comes out of one core's cache.
int copying_threads() {
    constexpr size_t most = 4;
    return static_cast<int>(std::clamp<size_t>(usable_cpus().size(), 1, most));
}

} // namespace

void HostCopier::expect(size_t bytes) {
    if (bytes > most_alone && !threads_) {
        threads_.emplace(copying_threads());
    }
}

/// Calls copy(pageable memory, offset from `begin`, bytes) for each part's bytes in the range.
template <class F>
void HostCopier::each(PageableParts stretch, size_t begin, size_t end, const F& copy) {
    auto range = [&](int64_t a, int64_t b) {
        size_t low = begin + static_cast<size_t>(a);
        size_t high = begin + static_cast<size_t>(b);
        auto behind =
            std::upper_bound(stretch.begin(), stretch.end(), low,
                             [](size_t at, const PageablePart& p) { return at < p.offset; });
        for (auto p = behind - 1; p != stretch.end() && p->offset < high; ++p) {
            size_t at = std::max(low, p->offset);
            size_t stop = std::min(high, p->offset + p->bytes);
            copy(p->memory + (at - p->offset), at - begin, stop - at);
        }
    };
    expect(end - begin);
    auto bytes = static_cast<int64_t>(end - begin);
    if (end - begin <= most_alone) {
        range(0, bytes);
    } else {
        constexpr int64_t bytes_per_thread = int64_t{128} << 10;
        threads_->parallel_for(bytes, bytes_per_thread, range);
    }
}

void HostCopier::to_pinned(PageableParts stretch, size_t begin, size_t end, std::byte* pinned) {
    each(stretch, begin, end, [pinned](const std::byte* pageable, size_t at, size_t bytes) {
        std::memcpy(pinned + at, pageable, bytes);
    });
}

void HostCopier::from_pinned(PageableParts stretch, size_t begin, size_t end,
                             const std::byte* pinned) {
    each(stretch, begin, end, [pinned](std::byte* pageable, size_t at, size_t bytes) {
        std::memcpy(pageable, pinned + at, bytes);
    });
}

InputStaging::~InputStaging() {
    for (Half& h : halves_) {
        if (h.sent != nullptr) {
            device_->gpu().release_event(h.sent);
        }
    }
}

/// Goes on with the other half, once what it had is sent.
void InputStaging::turn(void* stream) {
    DeviceMemory& gpu = device_->gpu();
    Half& full = halves_[filling_];
    if (full.sent == nullptr) {
        full.sent = gpu.create_event();
    }
    gpu.record(full.sent, stream);
    full.is_sent = true;
    filling_ = 1 - filling_;
    Half& other = halves_[filling_];
    if (other.is_sent) {
        gpu.wait_for_event(other.sent);
        other.is_sent = false;
    }
    other.used = 0;
}

/// Free memory for the next bytes, at most `wanted` of them.
std::span<std::byte> InputStaging::next(size_t wanted, void* stream) {
    size_t want = std::min(wanted, most_half);
    if (halves_[filling_].used > 0 &&
        halves_[filling_].memory.bytes() - halves_[filling_].used < std::min(want, least_half)) {
        turn(stream);
    }
    Half& half = halves_[filling_];
    if (half.used == 0) { // nothing that is queued uses it
        half.memory.reserve(std::max(want, least_half));
    }
    size_t bytes = std::min(want, half.memory.bytes() - half.used);
    std::span<std::byte> out(half.memory.data() + half.used, bytes);
    half.used += (bytes + alignment - 1) / alignment * alignment;
    return out;
}

void InputStaging::prepare(const std::vector<size_t>& inputs, void* stream) {
    for (size_t bytes : inputs) {
        for (size_t at = 0; at < bytes;) {
            at += next(bytes - at, stream).size();
        }
    }
    reset();
}

void InputStaging::send(PageableParts stretch, std::byte* target, HostCopier& copier,
                        void* stream) {
    size_t begin = stretch.front().offset;
    size_t end = stretch.back().offset + stretch.back().bytes;
    for (size_t at = begin; at < end;) {
        std::span<std::byte> pinned = next(end - at, stream);
        copier.to_pinned(stretch, at, at + pinned.size(), pinned.data());
        device_->gpu().copy(target + (at - begin), pinned.data(), pinned.size(), stream);
        at += pinned.size();
    }
}

void InputStaging::reset() {
    for (Half& h : halves_) {
        h.used = 0;
        h.is_sent = false;
    }
    filling_ = 0;
}

} // namespace ingot::triton
