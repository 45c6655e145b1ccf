// SPDX-License-Identifier: Apache-2.0
// TestDevice: the device of kernel tests. That is the emulator, or, with INGOT_TEST_GPU=1, the
// first CUDA device, for every architecture whose kernels can run there.
#pragma once

#include "emulator/emulated_gpu.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ingot::test {

/// Whether INGOT_TEST_GPU=1 asks for a real device (or =emulated, which treats the emulator as
/// one).
bool on_device();
/// Whether fresh memory holds poison; INGOT_TEST_UNINITIALISED=1 leaves a device's as it is, for a
/// checker that looks for reads of it.
bool memory_is_poisoned();
/// The known architectures whose kernels can run here; on a device its own too with a cap of 99 KB
/// on shared memory. INGOT_TEST_ARCHS=own: a device's own alone.
std::vector<kernels::Arch> runnable_archs();

class TestDevice {
public:
    explicit TestDevice(const kernels::Arch& arch);
    ~TestDevice();
    TestDevice(const TestDevice&) = delete;
    TestDevice& operator=(const TestDevice&) = delete;

    cuda::Gpu& gpu();
    /// As EmulatedGpu has them; a real device ignores the first two.
    void hold_until_wait(std::byte* memory);
    void set_reversed(bool reversed);
    std::string problems() const;
    int64_t used() const;
    /// Kernels and recordings launched so far; null on a real device.
    struct Counts {
        int64_t launches = 0;
        int64_t replays = 0;
    };
    std::optional<Counts> counts() const;

private:
    class CheckedGpu;
    std::unique_ptr<emulator::EmulatedGpu> emulated_;
    std::unique_ptr<CheckedGpu> real_;
};

} // namespace ingot::test
