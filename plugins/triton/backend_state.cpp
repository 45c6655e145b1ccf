// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/backend_state.h"

#include <charconv>
#include <cstdlib>

namespace ingot::triton {

namespace {

size_t simulated_bytes() {
    const char* value = std::getenv("INGOT_SIMULATED_GPU_MEMORY");
    size_t bytes = 2ULL << 30U;
    std::string_view text = value == nullptr ? "" : value;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    require(value == nullptr || (error == std::errc() && at == text.data() + text.size()),
            ErrorCode::InvalidArgument, "INGOT_SIMULATED_GPU_MEMORY is '", text,
            "', a number of bytes is expected");
    return bytes;
}

} // namespace

bool Gpus::are_simulated() {
    const char* value = std::getenv("INGOT_SIMULATED_GPU");
    return value != nullptr && std::string_view(value) == "1";
}

std::shared_ptr<DeviceMemory> Gpus::open(int32_t ordinal) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<DeviceMemory>& found = open_[ordinal];
    if (found != nullptr) {
        return found;
    }
    if (are_simulated()) {
        return found = simulated_gpu(simulated_bytes(), HostCopies::kPINNED_ALONE);
    }
    std::string problem;
    size_t count = find_gpus(problem).size();
    require(problem.empty(), ErrorCode::Device, "GPU ", ordinal, " cannot be used: ", problem,
            ". Serve from the CPU by kind: KIND_CPU in instance_group");
    require(ordinal >= 0 && static_cast<size_t>(ordinal) < count, ErrorCode::Device,
            "there is no GPU ", ordinal, ": the driver has ", count);
    return found = open_gpu(ordinal);
}

} // namespace ingot::triton
