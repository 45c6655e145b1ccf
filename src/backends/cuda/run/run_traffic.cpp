// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/run_traffic.h"

#include "backends/cuda/driver/gpu.h"

#include <algorithm>
#include <array>

namespace ingot::cuda {

namespace {

constexpr int most_gpus = 64; // those beyond share one
/// A server with fewer runs than ten a second has room between them.
constexpr std::chrono::milliseconds lull{100};

} // namespace

RunTraffic& RunTraffic::of(const Gpu& gpu) {
    static std::array<RunTraffic, most_gpus + 1> all; // 0: a GPU without a number
    return all.at(static_cast<size_t>(std::clamp(gpu.number() + 1, 0, most_gpus)));
}

bool RunTraffic::is_busy() const noexcept {
    Clock::rep last = last_.load(std::memory_order_relaxed);
    return last != 0 && Clock::now().time_since_epoch() - Clock::duration(last) < lull;
}

} // namespace ingot::cuda
