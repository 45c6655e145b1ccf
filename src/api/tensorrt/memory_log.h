// SPDX-License-Identifier: Apache-2.0
// The lines on memory that loggers get, in TensorRT's words.
#pragma once

#include "api/tensorrt/report.h"
#include "plan/backend.h"

#include <string>

namespace ingot::api {

/// Logs at kINFO, when it goes, how the memory of process and device changed since it was made:
/// "[MemUsageChange] <operation>: CPU +1, GPU +2, now: CPU 10, GPU 20 (MiB)". CPU is what this
/// process holds; GPU is what all processes hold on the device together, 0 where there is none.
class MemoryChange {
public:
    /// With a device that is null nothing is logged unless set_device names one.
    MemoryChange(const Report& report, const Backend* device, std::string operation);
    ~MemoryChange();
    MemoryChange(const MemoryChange&) = delete;
    MemoryChange& operator=(const MemoryChange&) = delete;
    void set_device(const Backend& device);

private:
    struct Use {
        int64_t cpu = 0; // bytes
        int64_t gpu = 0;
    };
    Use now() const noexcept;

    const Report& report_;
    const Backend* device_;
    std::string operation_;
    Use before_;
};

/// "[MemUsageStats] <phase>: CPU 10, peak 12 (MiB)" at kINFO: what the process holds and held.
void log_memory_use(const Report& report, std::string_view phase);

/// "<what>: <bytes> bytes" at kINFO.
void log_bytes(const Report& report, std::string_view what, int64_t bytes);

} // namespace ingot::api
