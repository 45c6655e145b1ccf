// SPDX-License-Identifier: Apache-2.0
// The Gpu behind a CUDA driver and NVRTC. Outside of tests, use find_gpu (gpu.h).
#pragma once

#include "backends/cuda/driver/driver.h"
#include "backends/cuda/driver/gpu.h"

namespace ingot::cuda {

/// The driver's functions must outlive it. Errors: Device.
std::unique_ptr<Gpu> make_nvidia_gpu(const Driver& driver, CUdevice device);

} // namespace ingot::cuda
