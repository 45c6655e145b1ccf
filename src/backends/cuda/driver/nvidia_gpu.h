// SPDX-License-Identifier: Apache-2.0
// The Gpu behind a CUDA driver and NVRTC. find_gpu (gpu.h) is how all but tests come to one.
#pragma once

#include "backends/cuda/driver/driver.h"
#include "backends/cuda/driver/gpu.h"

namespace ingot::cuda {

/// The driver's functions outlive it. Errors: Device.
std::unique_ptr<Gpu> make_nvidia_gpu(const Driver& driver, CUdevice device);

} // namespace ingot::cuda
