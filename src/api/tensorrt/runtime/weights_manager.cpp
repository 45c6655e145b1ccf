// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/weights_manager.h"

#include "api/tensorrt/convert.h"
#include "workflow/refit.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::api {

using nvinfer1::TensorLocation;

namespace {

constexpr int64_t alignment = 256;

int64_t padded(int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/// Waits for the stream's work. `address` is device memory of at least one byte.
void wait_for(const Backend& backend, const void* address, cudaStream_t stream) {
    std::byte one{};
    backend.read(&one, address, 1, stream);
}

} // namespace

WeightsManager::WeightsManager(std::shared_ptr<EngineState> state, const Report& report)
    : state_(std::move(state)), report_(report) {
    require(state_->engine().source() != nullptr, ErrorCode::InvalidArgument,
            "the engine's weights cannot be taken out: build it with kREFIT, kREFIT_IDENTICAL, "
            "kREFIT_INDIVIDUAL or kSTRIP_PLAN");
    for (const Weight& w : source().weights) {
        size_ += padded(w.bytes());
    }
}

void WeightsManager::check_size(int64_t size) const {
    require(size == size_, ErrorCode::InvalidArgument, "the buffer has ", size,
            " bytes, expected getSize(), which is ", size_);
}

void WeightsManager::save(const Take& take) const {
    state_->check_weights();
    static constexpr std::array<std::byte, alignment> zeros{};
    const NamedTensors all = named_constants(*source().graph);
    int64_t offset = 0;
    for (const Weight& w : source().weights) {
        std::span<const std::byte> bytes = all.at(w.name).bytes();
        take(bytes, offset);
        auto size = static_cast<int64_t>(bytes.size());
        take(std::span(zeros).first(static_cast<size_t>(padded(size) - size)), offset + size);
        offset += padded(size);
    }
}

bool WeightsManager::saveToBuffer(void* destination, int64_t size, TensorLocation location,
                                  cudaStream_t stream) noexcept {
    return report_.guard("IWeightsManager::saveToBuffer", false, [&] {
        check_size(size);
        require(destination != nullptr, ErrorCode::InvalidArgument,
                "the buffer is at a null address");
        const Backend& backend = *state_->place().backend;
        const bool on_device = checked(location, "the location") == TensorLocation::kDEVICE;
        auto* to = static_cast<std::byte*>(destination);
        if (on_device && size > 0) {
            wait_for(backend, to, stream);
        }
        save([&](std::span<const std::byte> bytes, int64_t offset) {
            if (on_device) {
                backend.write(to + offset, bytes.data(), bytes.size());
            } else {
                std::memcpy(to + offset, bytes.data(), bytes.size());
            }
        });
        return true;
    });
}

bool WeightsManager::saveToStream(nvinfer1::IStreamWriter& writer, cudaStream_t) noexcept {
    return report_.guard("IWeightsManager::saveToStream", false, [&] {
        constexpr size_t piece_bytes = 16 << 20;
        save([&](std::span<const std::byte> bytes, int64_t offset) {
            for (size_t at = 0; at < bytes.size();) {
                const size_t n = std::min(piece_bytes, bytes.size() - at);
                const int64_t written = writer.write(bytes.data() + at, static_cast<int64_t>(n));
                require(written == static_cast<int64_t>(n), ErrorCode::Io, "the writer took ",
                        written, " of ", n, " bytes after ", offset + static_cast<int64_t>(at));
                at += n;
            }
        });
        return true;
    });
}

bool WeightsManager::unload(cudaStream_t) noexcept {
    return report_.guard("IWeightsManager::unload", false, [&] {
        state_->check_weights();
        const WriteOptions bare{.weights = false, .refit = true};
        // Contexts wait for their own runs.
        state_->take_weights_out(load_engine(engine_bytes(state_->engine(), bare)));
        return true;
    });
}

bool WeightsManager::restoreFromBuffer(const void* source_bytes, int64_t size,
                                       TensorLocation location, cudaStream_t stream) noexcept {
    return report_.guard("IWeightsManager::restoreFromBuffer", false, [&] {
        require(state_->engine().weights_missing(), ErrorCode::InvalidArgument,
                "the engine has weights: call unload() first");
        check_size(size);
        require(source_bytes != nullptr, ErrorCode::InvalidArgument,
                "the buffer is at a null address");
        const bool on_device = checked(location, "the location") == TensorLocation::kDEVICE;
        const auto* from = static_cast<const std::byte*>(source_bytes);
        NamedTensors weights;
        for (const Weight& w : source().weights) {
            const auto bytes = static_cast<size_t>(w.bytes());
            if (on_device) {
                Tensor t = Tensor::empty(w.dtype, w.shape);
                state_->place().backend->read(t.mutable_bytes().data(), from, bytes, stream);
                weights.emplace(w.name, std::move(t));
            } else { // the refit copies them
                weights.emplace(w.name, Tensor::wrap(w.dtype, w.shape, {from, bytes}, nullptr));
            }
            from += padded(w.bytes());
        }
        state_->refit(refitted(state_->engine(), weights));
        return true;
    });
}

bool WeightsManager::restoreFromVmmAllocation(uint64_t, int64_t, int64_t, cudaStream_t) noexcept {
    return report_.guard("IWeightsManager::restoreFromVmmAllocation", false, []() -> bool {
        fail(ErrorCode::Unsupported,
             "memory of others is not mapped: restoreFromBuffer() copies from it");
    });
}

} // namespace ingot::api
