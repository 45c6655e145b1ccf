// SPDX-License-Identifier: Apache-2.0
// State that the models of one server share.
#pragma once

#include "plugins/common/device_memory.h"
#include "plugins/triton/metrics.h"
#include "plugins/triton/watch.h"

#include <map>
#include <mutex>

namespace ingot::triton {

/// Memory of the GPUs in use, one object for each. Safe from any thread.
class Gpus {
public:
    /// Whether GPUs are simulated in host memory, for tests: INGOT_SIMULATED_GPU=1, of
    /// INGOT_SIMULATED_GPU_MEMORY bytes.
    static bool are_simulated();
    /// Errors: Device, saying why the GPU cannot be used.
    std::shared_ptr<DeviceMemory> open(int32_t ordinal);

private:
    std::mutex mutex_;
    std::map<int32_t, std::shared_ptr<DeviceMemory>> open_;
};

struct BackendState {
    std::string name; // "ingot", or that of another backend whose repositories it serves
    MetricFamilies metrics;
    Watch watch;
    Gpus gpus;
};

} // namespace ingot::triton
