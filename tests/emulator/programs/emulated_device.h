// SPDX-License-Identifier: Apache-2.0
// The GPUs of the emulated libcuda.so.1 and their counters, which its sources share.
#pragma once

#include "backends/cuda/driver/driver.h"
#include "emulator/emulated_gpu.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace ingot::emulated_driver {

constexpr int device_count = 2;

struct Device {
    emulator::EmulatedGpu gpu{80};
    cuda::CUresult lost = 0; // what each call returns from then on
    int64_t calls_after = 0;
    int64_t graphs = 0; // executable ones that live
    int64_t replays = 0;
    std::map<std::byte*, size_t> memory; // with the bytes that it takes of the device's
    int64_t used = 0;
    std::vector<std::shared_ptr<const cuda::Function>> loaded;
    int64_t calls[2] = {}; // launches of kernels and graphs: usual, and of raised priority
    int64_t stopping = 0;  // allocations and releases for which a real GPU's work waits
    int64_t streams = 0;   // made so far
    int64_t locking = 0;   // calls that lock or unlock pages of the host
    int64_t newest = 0;    // of the loaded functions that were launched, counted from 1
    int64_t last = 0;      // the one that was launched last
    std::map<std::string, int64_t> counted;           // calls, by the function's name
    std::map<cuda::CUevent, cuda::CUstream> recorded; // where each event was recorded last
    int64_t hops = 0;                                 // waits of a stream for an event of another
};

/// Guards the devices; held during each call.
std::recursive_mutex& mutex();
Device& device(int i);

} // namespace ingot::emulated_driver
