// SPDX-License-Identifier: Apache-2.0
// Copies between the server's pageable memory and pinned memory, from or to which a GPU transfers.
#pragma once

#include "base/thread_pool.h"
#include "plugins/triton/buffer.h"

#include <optional>
#include <span>
#include <vector>

namespace ingot::triton {

/// A part of an input or output that is in pageable memory.
struct PageablePart {
    size_t offset;     // in the input or output
    std::byte* memory; // of an input: only read
    size_t bytes;
};
using PageableParts = std::span<const PageablePart>;

/// Calls f(offset, bytes, parts) for the parts that lie one behind another.
template <class F>
void for_each_stretch(PageableParts parts, const F& f) {
    for (size_t first = 0; first < parts.size();) {
        size_t begin = parts[first].offset;
        size_t end = begin;
        size_t last = first;
        while (last < parts.size() && parts[last].offset == end) {
            end += parts[last++].bytes;
        }
        f(begin, end - begin, parts.subspan(first, last - first));
        first = last;
    }
}

/// Copies by the calling thread, and by others where there is much: waking one takes as long as a
/// copy of some 100 KB to 1 MB.
class HostCopier {
public:
    static constexpr size_t most_alone = 1 << 20;
    /// Starts the threads for copies of so many bytes, so that none is started for a request.
    void expect(size_t bytes);
    /// The bytes [begin, end) of a stretch, from or to `pinned`, which stands for `begin`.
    void to_pinned(PageableParts stretch, size_t begin, size_t end, std::byte* pinned);
    void from_pinned(PageableParts stretch, size_t begin, size_t end, const std::byte* pinned);

private:
    template <class F>
    void each(PageableParts stretch, size_t begin, size_t end, const F& copy);
    std::optional<ThreadPool> threads_;
};

/// Pinned memory through which the inputs of a batch go to a GPU: two halves, of which one is
/// filled while the other is sent. So it is small however large batches are: the driver locks its
/// pages while others wait, and frees it so too.
class InputStaging {
public:
    static constexpr size_t most_half = 2 << 20;
    explicit InputStaging(DeviceAllocator* device)
        : device_(device), halves_{Half(device), Half(device)} {}
    ~InputStaging();
    InputStaging(const InputStaging&) = delete;
    InputStaging& operator=(const InputStaging&) = delete;
    /// Takes the memory that send() will need for inputs of so many bytes. Nothing may be queued.
    void prepare(const std::vector<size_t>& inputs, void* stream);
    /// Copies the bytes of a stretch, and sends them to `target` in the order of the stream.
    void send(PageableParts stretch, std::byte* target, HostCopier& copier, void* stream);
    /// After the stream was waited for: all memory is free again.
    void reset();

private:
    struct Half {
        explicit Half(DeviceAllocator* device) : memory(device, true) {}
        Buffer memory;
        size_t used = 0;
        void* sent = nullptr; // an event, which passes when this half may be filled anew
        bool is_sent = false; // it waits for that event
    };
    std::span<std::byte> next(size_t wanted, void* stream);
    void turn(void* stream);

    DeviceAllocator* device_;
    Half halves_[2];
    size_t filling_ = 0;
};

} // namespace ingot::triton
