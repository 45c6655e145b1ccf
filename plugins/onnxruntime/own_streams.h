// SPDX-License-Identifier: Apache-2.0
// OwnStreams: the streams that the plugin makes on one GPU, and the order of uses of memory on
// them.
#pragma once

#include "plugins/common/device_memory.h"

#include <memory>
#include <mutex>
#include <set>

namespace ingot::ort {

/// The last use of memory by queued work: a stream of OwnStreams, whose event is recorded when
/// another stream asks, or an event that is recorded.
struct LastUse {
    void* stream = nullptr;
    void* event = nullptr;
    bool is_recorded = true;
};

/// Within one stream no event is needed, so that a run that follows another on the same stream
/// makes no call of the driver. Streams of the application can end at any time, even with a new
/// one in their place: their uses are recorded at once. Thread safe.
class OwnStreams {
public:
    explicit OwnStreams(std::shared_ptr<DeviceMemory> memory) : memory_(std::move(memory)) {}
    OwnStreams(const OwnStreams&) = delete;
    OwnStreams& operator=(const OwnStreams&) = delete;

    void* create(RunPriority priority);
    /// Waits for its work: uses on a stream that is no more are over.
    void release(void* stream) noexcept;

    /// The memory is used by what `stream` has queued so far.
    void end_use(LastUse& use, void* stream);
    /// Whether work queued on `stream` from now on follows the use without waiting.
    static bool is_in_order(const LastUse& use, const void* stream) {
        return !use.is_recorded && use.stream == stream;
    }
    /// Records the event of a use that has none yet. False while the application captures the
    /// stream: then nothing tells when the use ends.
    bool record(LastUse& use);

private:
    std::shared_ptr<DeviceMemory> memory_;
    std::mutex mutex_;
    std::set<void*> streams_;
};

} // namespace ingot::ort
