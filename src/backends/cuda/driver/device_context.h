// SPDX-License-Identifier: Apache-2.0
// DeviceContext: a device with its primary context, as the driver's callers see it.
#pragma once

#include "backends/cuda/driver/driver.h"
#include "backends/cuda/driver/gpu.h"
#include "base/kept_blocks.h"

#include <mutex>

namespace ingot::cuda {

inline CUdeviceptr address(const std::byte* p) {
    return reinterpret_cast<CUdeviceptr>(p);
}

/// Makes a context current on this thread, and restores the previous one. A thread without one
/// keeps this.
class Entered {
public:
    Entered() = default;
    Entered(const Driver& d, CUcontext before) : driver_(&d), before_(before) {}
    ~Entered() {
        if (driver_ != nullptr) {
            driver_->set_current(before_);
        }
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

private:
    const Driver* driver_ = nullptr;
    CUcontext before_ = nullptr;
};

/// While it lives, calls that another stream's capture forbids are not part of any capture.
class Relaxed {
public:
    explicit Relaxed(const Driver& d) : driver_(d) { driver_.exchange_capture_mode(&mode_); }
    ~Relaxed() { driver_.exchange_capture_mode(&mode_); }
    Relaxed(const Relaxed&) = delete;
    Relaxed& operator=(const Relaxed&) = delete;

private:
    const Driver& driver_;
    int mode_ = capture_relaxed;
};

struct DeviceContext {
    const Driver& d;
    CUdevice device = 0;
    CUcontext context = nullptr;
    mutable DeviceHealth health;

    DeviceContext(const Driver& driver, CUdevice number) : d(driver), device(number) {}
    ~DeviceContext();
    DeviceContext(const DeviceContext&) = delete;
    DeviceContext& operator=(const DeviceContext&) = delete;

    void check(CUresult r, const char* what) const { health.check(d, r, what); }
    /// Errors: Device for a dead device.
    [[nodiscard]] Entered enter() const {
        health.require_alive();
        return enter_quietly();
    }
    /// For releasing resources: on a dead device the release does nothing.
    [[nodiscard]] Entered enter_quietly() const noexcept {
        CUcontext before = nullptr;
        if (d.get_current(&before) != 0 || before == context || d.set_current(context) != 0 ||
            before == nullptr) {
            return {};
        }
        return {d, before};
    }
    int attribute(DeviceAttribute a) const {
        int v = 0;
        check(d.device_attribute(&v, static_cast<int>(a), device), "cuDeviceGetAttribute");
        return v;
    }
    /// Page-locked memory, of what others have given back if it fits. Its content is any.
    /// Errors: OutOfMemory, Device.
    void* lock_memory(size_t bytes) const;
    /// Gives it back; no queued work uses it. The last 64 MiB are kept for others: the driver locks
    /// and unlocks pages while other work waits.
    void unlock_memory(void* memory, size_t bytes) const noexcept;
    /// Changes the L2 cache size set aside for persisting accesses. Errors: Device.
    void set_aside(int64_t more) const;

private:
    mutable std::mutex mutex_;
    mutable int64_t set_aside_ = 0;
    mutable KeptBlocks locked_{64 << 20}; // for others
};

class NvidiaFunction : public Function {
public:
    explicit NvidiaFunction(const DeviceContext& device) : device_(device) {}
    ~NvidiaFunction() override {
        if (module != nullptr) {
            Entered entered = device_.enter_quietly();
            device_.d.module_unload(module);
        }
    }
    NvidiaFunction(const NvidiaFunction&) = delete;
    NvidiaFunction& operator=(const NvidiaFunction&) = delete;

private:
    const DeviceContext& device_;

public:
    CUmodule module = nullptr;
    CUfunction function = nullptr;
};

/// Errors: Device.
std::unique_ptr<Stream> make_nvidia_stream(const DeviceContext& device, RunPriority priority);

} // namespace ingot::cuda
