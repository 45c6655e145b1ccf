// SPDX-License-Identifier: Apache-2.0
// IWeightsManager over an EngineState: the refittable weights in a row.
#pragma once

#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/engine_state.h"

#include <functional>

namespace ingot::api {

class WeightsManager final : public nvinfer1::IWeightsManager {
public:
    /// Errors: InvalidArgument for an engine that is not refittable.
    WeightsManager(std::shared_ptr<EngineState> state, const Report& report);

    int64_t getSize() const noexcept override { return size_; }
    bool saveToBuffer(void* destination, int64_t size, nvinfer1::TensorLocation location,
                      cudaStream_t stream) noexcept override;
    bool saveToStream(nvinfer1::IStreamWriter& writer, cudaStream_t stream) noexcept override;
    bool unload(cudaStream_t stream) noexcept override;
    bool restoreFromBuffer(const void* source, int64_t size, nvinfer1::TensorLocation location,
                           cudaStream_t stream) noexcept override;
    bool restoreFromVmmAllocation(uint64_t handle, int64_t offset, int64_t size,
                                  cudaStream_t stream) noexcept override;

private:
    using Take = std::function<void(std::span<const std::byte> bytes, int64_t offset)>;
    const RefitSource& source() const { return *state_->engine().source(); }
    void check_size(int64_t size) const;
    /// Calls `take` with all data from the first byte on, with zeros between weights. Errors:
    /// InvalidArgument while there are none.
    void save(const Take& take) const;

    std::shared_ptr<EngineState> state_;
    Report report_;
    int64_t size_ = 0;
};

} // namespace ingot::api
