// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that counts what it is asked; events and streams are numbers.
#pragma once

#include "plugins/common/device_memory.h"

#include <map>
#include <set>
#include <string>

namespace ingot::ort::test {

inline uintptr_t number_of(const void* stream) {
    return reinterpret_cast<uintptr_t>(stream);
}

class CountingMemory final : public DeviceMemory {
public:
    void* allocate(size_t bytes) override {
        require(bytes <= room, ErrorCode::OutOfMemory, "no ", bytes, " bytes left");
        room -= bytes;
        ++allocations;
        return blocks.emplace(::operator new(1), bytes).first->first;
    }
    void release(void* memory) noexcept override {
        room += blocks.at(memory);
        blocks.erase(memory);
        ::operator delete(memory);
    }
    void* allocate_pinned(size_t) override { return nullptr; }
    void release_pinned(void*) noexcept override {}
    void copy(void*, const void*, size_t, void*) override {}
    void set_zero(void*, size_t, void*) override {}
    bool is_lost() noexcept override { return false; }
    void* create_stream(RunPriority) override { return reinterpret_cast<void*>(next_stream); }
    void release_stream(void* stream) noexcept override {
        log += str("release ", number_of(stream), "; ");
    }
    void wait_for_stream(void* stream) override { log += str("finish ", number_of(stream), "; "); }
    void wait() override { log += "wait for all; "; }
    void* create_event() override { return *events.insert(::operator new(1)).first; }
    void release_event(void* event) noexcept override {
        events.erase(event);
        recorded.erase(event);
        ::operator delete(event);
    }
    void record(void* event, void* stream) override {
        log += str("record ", number_of(stream), "; ");
        recorded.insert(event);
    }
    void make_wait(void* stream, void* event) override {
        log += str(recorded.contains(event) ? "wait " : "start ", number_of(stream), "; ");
    }
    void wait_for_event(void*) override {}
    bool has_passed(void* event) override { return passed || !recorded.contains(event); }
    void check_stream(void*) override {}
    bool is_captured(void*) override { return captured; }

    size_t room = 1 << 30U;
    int allocations = 0;
    bool captured = false;
    bool passed = true;
    uintptr_t next_stream = 1;
    std::map<void*, size_t> blocks;
    std::set<void*> events, recorded;
    std::string log;
};

inline void* stream(uintptr_t number) {
    return reinterpret_cast<void*>(number);
}

} // namespace ingot::ort::test
