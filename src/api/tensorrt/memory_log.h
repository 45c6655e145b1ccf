// SPDX-License-Identifier: Apache-2.0
// Log lines on memory, in TensorRT's wording.
#pragma once

#include "api/tensorrt/report.h"
#include "plan/backend.h"

#include <string>

namespace ingot::api {

/// Its destructor logs at kINFO how the memory of process and device changed since the constructor:
/// "[MemUsageChange] <operation>: CPU +1, GPU +2, now: CPU 10, GPU 20 (MiB)". CPU counts this
/// process; GPU counts all processes on the device, 0 without a device.
class MemoryChange {
public:
    /// A null device logs nothing unless set_device names one.
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

/// Logs "[MemUsageStats] <phase>: CPU 10, peak 12 (MiB)" at kINFO for this process.
void log_memory_use(const Report& report, std::string_view phase);

/// Logs "<what>: <bytes> bytes" at kINFO.
void log_bytes(const Report& report, std::string_view what, int64_t bytes);

} // namespace ingot::api
