// SPDX-License-Identifier: Apache-2.0
// Weight streaming: keeps only a part of an engine's weights on the device.
#include "api/tensorrt/runtime/engine.h"
#include "api/tensorrt/unused.h"

#include <algorithm>

namespace ingot::api {

int64_t EngineState::streamable_bytes() const {
    return settings_.streams_weights ? streamable_weight_bytes(graph()) : 0;
}

int64_t EngineState::weight_budget() const {
    return weight_budget_.value_or(streamable_bytes());
}

void EngineState::set_weight_budget(int64_t bytes) {
    int64_t all = streamable_bytes();
    require(all > 0 || bytes == 0, ErrorCode::InvalidArgument, "the budget is ", bytes,
            ", expected 0: no weights of this engine can be streamed",
            settings_.streams_weights ? "" : "; build it with kWEIGHT_STREAMING");
    require(bytes >= 0, ErrorCode::InvalidArgument, "the budget is ", bytes, ", expected 0 to ",
            all, "; getWeightStreamingAutomaticBudget() suggests one");
    require(contexts_ == 0, ErrorCode::InvalidArgument, "the engine has ", contexts_.load(),
            " contexts: set the budget before the first one is made, or delete them");
    weight_budget_ = bytes >= all ? std::nullopt : std::optional(bytes);
    forget_contexts();
}

int64_t EngineState::automatic_weight_budget() {
    int64_t all = streamable_bytes();
    int64_t free = place_.backend->memory().free;
    if (all == 0 || free < 0 || engine_->weights_missing()) {
        return all;
    }
    int64_t activations = 0;
    for (int32_t i = 0; i < profile_count(); ++i) {
        if (largest_shapes(i)) {
            activations = std::max(activations, activation_bytes(i));
        }
    }
    // Kernels, inputs, results and repacked weights need memory too.
    int64_t rest = static_cast<int64_t>(engine_->weight_bytes()) - all;
    constexpr int64_t reserve_divisor = 10;
    return std::clamp<int64_t>(free - free / reserve_divisor - activations - rest, 0, all);
}

int64_t EngineState::streaming_scratch_bytes() {
    int64_t most = 0;
    if (!weight_budget_) {
        return most;
    }
    std::shared_ptr<Context> context = make_context({});
    for (int32_t i = 0; i < profile_count(); ++i) {
        if (std::optional<std::vector<Shape>> shapes = largest_shapes(i)) {
            static_cast<void>(context->activation_bytes(*shapes));
            most = std::max(most, context->execution().memory_use().streamed);
        }
    }
    return most;
}

int64_t EngineObject::getStreamableWeightsSize() const noexcept {
    return report_.guard("ICudaEngine::getStreamableWeightsSize", int64_t{0},
                         [&] { return state_->streamable_bytes(); });
}

bool EngineObject::setWeightStreamingBudgetV2(int64_t budget) noexcept {
    return report_.guard("ICudaEngine::setWeightStreamingBudgetV2", false, [&] {
        state_->set_weight_budget(budget);
        if (!state_->place().is_gpu) {
            log_unused(report_, "ICudaEngine::setWeightStreamingBudgetV2", false,
                       "the engine runs on the CPU, which reads weights where they lie");
        }
        return true;
    });
}

int64_t EngineObject::getWeightStreamingBudgetV2() const noexcept {
    return report_.guard("ICudaEngine::getWeightStreamingBudgetV2", int64_t{0},
                         [&] { return state_->weight_budget(); });
}

int64_t EngineObject::getWeightStreamingAutomaticBudget() const noexcept {
    return report_.guard("ICudaEngine::getWeightStreamingAutomaticBudget", int64_t{0},
                         [&] { return state_->automatic_weight_budget(); });
}

int64_t EngineObject::getWeightStreamingScratchMemorySize() const noexcept {
    return report_.guard("ICudaEngine::getWeightStreamingScratchMemorySize", int64_t{0},
                         [&] { return state_->streaming_scratch_bytes(); });
}

} // namespace ingot::api
