// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/own_streams.h"

namespace ingot::ort {

void* OwnStreams::create(RunPriority priority) {
    void* stream = memory_->create_stream(priority);
    try {
        std::lock_guard<std::mutex> lock(mutex_);
        streams_.insert(stream);
    } catch (...) {
        memory_->release_stream(stream);
        throw;
    }
    return stream;
}

void OwnStreams::release(void* stream) noexcept {
    try {
        memory_->wait_for_stream(stream);
    } catch (...) { // a lost GPU does no work
    }
    {
        std::lock_guard<std::mutex> lock(mutex_); // it is not destroyed while record() uses it
        streams_.erase(stream);
    }
    memory_->release_stream(stream);
}

void OwnStreams::end_use(LastUse& use, void* stream) {
    use.stream = stream;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        use.is_recorded = !streams_.contains(stream);
    }
    if (use.is_recorded) {
        memory_->record(use.event, stream);
    }
}

bool OwnStreams::record(LastUse& use) {
    if (use.is_recorded) {
        return true;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (streams_.contains(use.stream)) {
        if (memory_->is_captured(use.stream)) {
            return false;
        }
        memory_->record(use.event, use.stream);
    }
    use.is_recorded = true;
    return true;
}

} // namespace ingot::ort
