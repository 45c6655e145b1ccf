// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/memory_log.h"

#include "base/process.h"

namespace ingot::api {

namespace {

constexpr int64_t mebibyte = 1 << 20;

int64_t rounded(int64_t bytes) {
    return (bytes + (bytes < 0 ? -1 : 1) * mebibyte / 2) / mebibyte;
}

std::string change(int64_t before, int64_t after) {
    int64_t n = rounded(after - before);
    return str(n < 0 ? "" : "+", n);
}

} // namespace

MemoryChange::MemoryChange(const Report& report, const Backend* device, std::string operation)
    : report_(report), device_(device), operation_(std::move(operation)), before_(now()) {}

void MemoryChange::set_device(const Backend& device) {
    device_ = &device;
    before_.gpu = now().gpu;
}

MemoryChange::Use MemoryChange::now() const noexcept {
    Use use;
    use.cpu = static_cast<int64_t>(memory_bytes());
    try {
        DeviceMemoryInfo m = device_ == nullptr ? DeviceMemoryInfo() : device_->memory();
        if (m.free >= 0 && m.total >= 0) {
            use.gpu = m.total - m.free;
        }
    } catch (const std::exception&) {
        use.gpu = 0; // the next use of the device reports that it is lost
    }
    return use;
}

MemoryChange::~MemoryChange() {
    if (device_ == nullptr) {
        return;
    }
    Use after = now();
    try {
        report_.log(nvinfer1::ILogger::Severity::kINFO,
                    str("[MemUsageChange] ", operation_, ": CPU ", change(before_.cpu, after.cpu),
                        ", GPU ", change(before_.gpu, after.gpu), ", now: CPU ", rounded(after.cpu),
                        ", GPU ", rounded(after.gpu), " (MiB)"));
    } catch (const std::exception&) {
        report_.log(nvinfer1::ILogger::Severity::kINFO, "[MemUsageChange] not known: no memory");
    }
}

void log_memory_use(const Report& report, std::string_view phase) {
    report.log(nvinfer1::ILogger::Severity::kINFO,
               str("[MemUsageStats] ", phase, ": CPU ",
                   rounded(static_cast<int64_t>(memory_bytes())), ", peak ",
                   rounded(static_cast<int64_t>(peak_memory_bytes())), " (MiB)"));
}

void log_bytes(const Report& report, std::string_view what, int64_t bytes) {
    report.log(nvinfer1::ILogger::Severity::kINFO, str(what, ": ", bytes, " bytes"));
}

} // namespace ingot::api
