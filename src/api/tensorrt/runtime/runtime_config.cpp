// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/runtime_config.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/host_memory.h"
#include "api/tensorrt/unused.h"
#include "backends/cuda/options.h"
#include "base/hash.h"
#include "ingot.h"

#include <array>
#include <cstring>

namespace ingot::api {

namespace {

constexpr std::array<char, 8> magic = {'I', 'N', 'G', 'O', 'T', 'R', 'T', 'C'};

/// Precedes a cache's bytes.
struct CacheHeader {
    std::array<char, 8> magic;
    uint32_t version; // Ingot's version
    uint32_t device_bytes;
    uint64_t kernel_bytes;
    uint64_t check; // hash of device and kernels
};

uint32_t version() {
    return INGOT_VERSION_MAJOR << 16 | INGOT_VERSION_MINOR << 8 | INGOT_VERSION_PATCH;
}

/// The properties that kernels depend on; the driver is not one.
std::string device_of(const Place& place) {
    std::string text = place.backend->description();
    return place.is_gpu ? text.substr(0, text.find(", driver")) : "cpu";
}

} // namespace

nvinfer1::IHostMemory* RuntimeCacheObject::serialize() const noexcept {
    return report_.guard(
        "IRuntimeCache::serialize", static_cast<nvinfer1::IHostMemory*>(nullptr),
        [&]() -> nvinfer1::IHostMemory* {
            std::string body = device_ + cache_->bytes();
            CacheHeader head{magic, version(), static_cast<uint32_t>(device_.size()),
                             body.size() - device_.size(), hash_bytes(body.data(), body.size())};
            AlignedBytes out(sizeof head + body.size());
            std::memcpy(out.data(), &head, sizeof head);
            std::memcpy(out.data() + sizeof head, body.data(), body.size());
            return std::make_unique<HostMemory>(std::move(out)).release();
        });
}

bool RuntimeCacheObject::deserialize(const void* blob, size_t size) noexcept {
    return report_.guard("IRuntimeCache::deserialize", false, [&] {
        CacheHeader head{};
        require(blob != nullptr && size >= sizeof head, ErrorCode::InvalidArgument,
                "a runtime cache has at least ", sizeof head, " bytes, got ",
                blob == nullptr ? 0 : size);
        std::memcpy(&head, blob, sizeof head);
        require(head.magic == magic, ErrorCode::InvalidArgument,
                "these bytes are not a runtime cache");
        require(head.version == version(), ErrorCode::InvalidArgument,
                "the runtime cache was made by another release; make it anew");
        std::string_view body(static_cast<const char*>(blob) + sizeof head, size - sizeof head);
        require(head.device_bytes <= body.size() &&
                    head.kernel_bytes == body.size() - head.device_bytes &&
                    head.check == hash_bytes(body.data(), body.size()),
                ErrorCode::InvalidArgument, "the runtime cache is damaged; make it anew");
        std::string_view device = body.substr(0, head.device_bytes);
        require(device == device_, ErrorCode::InvalidArgument, "the runtime cache is for '", device,
                "', this is '", device_, "'; make one here");
        bool whole = cache_->merge(std::as_bytes(std::span(body.substr(head.device_bytes))));
        require(whole, ErrorCode::InvalidArgument, "the runtime cache is damaged; make it anew");
        return true;
    });
}

bool RuntimeCacheObject::reset() noexcept {
    return report_.guard("IRuntimeCache::reset", false, [&] {
        cache_->clear();
        return true;
    });
}

std::unique_ptr<RuntimeConfig> RuntimeConfig::clone() const {
    auto copy = std::make_unique<RuntimeConfig>(state_, report_);
    copy->allocation_ = allocation_;
    copy->specialise_ = specialise_;
    copy->graphs_ = graphs_;
    copy->priority_ = priority_;
    copy->recordings_ = recordings_;
    copy->record_first_ = record_first_;
    if (cache_ != nullptr) {
        copy->cache_ =
            std::make_unique<RuntimeCacheObject>(cache_->content(), cache_->device(), report_);
    }
    return copy;
}

void RuntimeConfig::note_on_cpu(std::string_view method) const {
    if (!state_->place().is_gpu) {
        log_unused(report_, method, false,
                   "the engine runs on the CPU, which compiles and launches no kernels");
    }
}

RunOptions RuntimeConfig::options() const {
    return {specialise_, graphs_,     cache_ == nullptr ? nullptr : cache_->content(),
            priority_,   recordings_, record_first_};
}

void RuntimeConfig::setExecutionContextAllocationStrategy(
    nvinfer1::ExecutionContextAllocationStrategy strategy) noexcept {
    report_.guard("IRuntimeConfig::setExecutionContextAllocationStrategy",
                  [&] { allocation_ = checked(strategy, "the strategy"); });
}

nvinfer1::IRuntimeCache* RuntimeConfig::createRuntimeCache() const noexcept {
    return report_.guard(
        "IRuntimeConfig::createRuntimeCache", static_cast<nvinfer1::IRuntimeCache*>(nullptr),
        [&]() -> nvinfer1::IRuntimeCache* {
            auto cache = std::make_shared<plan::RuntimeCache>("", plan::RuntimeCache::Kind::Memory);
            return std::make_unique<RuntimeCacheObject>(std::move(cache),
                                                        device_of(state_->place()), report_)
                .release();
        });
}

bool RuntimeConfig::setRuntimeCache(const nvinfer1::IRuntimeCache& cache) noexcept {
    return report_.guard("IRuntimeConfig::setRuntimeCache", false, [&] {
        const auto& object = static_cast<const RuntimeCacheObject&>(cache);
        require(object.device() == device_of(state_->place()), ErrorCode::InvalidArgument,
                "the runtime cache is for '", object.device(), "', the engine runs on '",
                device_of(state_->place()), "'");
        cache_ = std::make_unique<RuntimeCacheObject>(object.content(), object.device(), report_);
        note_on_cpu("IRuntimeConfig::setRuntimeCache");
        return true;
    });
}

void RuntimeConfig::setDynamicShapesKernelSpecializationStrategy(
    nvinfer1::DynamicShapesKernelSpecializationStrategy strategy) noexcept {
    constexpr std::string_view method =
        "IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy";
    report_.guard(method, [&] {
        specialise_ = checked(strategy, "the strategy");
        note_on_cpu(method);
    });
}

bool RuntimeConfig::set_priority(int32_t priority) noexcept {
    return report_.guard("ingot::setPriority", false, [&] {
        static_assert(static_cast<int>(RunPriority::Low) == static_cast<int>(Priority::kLOW) &&
                      static_cast<int>(RunPriority::Normal) ==
                          static_cast<int>(Priority::kNORMAL) &&
                      static_cast<int>(RunPriority::High) == static_cast<int>(Priority::kHIGH));
        require(priority >= static_cast<int32_t>(Priority::kLOW) &&
                    priority <= static_cast<int32_t>(Priority::kHIGH),
                ErrorCode::InvalidArgument, "the priority is ", priority,
                ", expected 0 (kLOW), 1 (kNORMAL) or 2 (kHIGH)");
        priority_ = static_cast<RunPriority>(priority);
        return true;
    });
}

bool RuntimeConfig::set_graph_limit(int32_t most, const RuntimeConfig* other) noexcept {
    return report_.guard("ingot::setGraphLimit", false, [&] {
        require(most >= 1, ErrorCode::InvalidArgument, "the limit is ", most,
                ", expected 1 graph or more");
        auto limit = other == nullptr ? cuda::make_recording_limit(static_cast<size_t>(most))
                                      : other->recordings_;
        require(limit != nullptr, ErrorCode::InvalidArgument,
                "the other configuration has no limit to share; set its own first");
        size_t shared = cuda::most_recordings(*limit);
        require(shared == static_cast<size_t>(most), ErrorCode::InvalidArgument, "the limit is ",
                most, ", but that of the other configuration is ", shared);
        recordings_ = std::move(limit);
        return true;
    });
}

int32_t RuntimeConfig::count_graphs() const noexcept {
    return recordings_ == nullptr ? 0 : static_cast<int32_t>(cuda::count_recordings(*recordings_));
}

bool RuntimeConfig::setCudaGraphStrategy(nvinfer1::CudaGraphStrategy strategy) noexcept {
    return report_.guard("IRuntimeConfig::setCudaGraphStrategy", false, [&] {
        graphs_ = checked(strategy, "the strategy");
        if (strategy != nvinfer1::CudaGraphStrategy::kDISABLED) {
            note_on_cpu("IRuntimeConfig::setCudaGraphStrategy");
        }
        return true;
    });
}

} // namespace ingot::api

extern "C" {

bool ingotSetPriority(nvinfer1::IRuntimeConfig* config, int32_t priority) noexcept {
    return config != nullptr &&
           static_cast<ingot::api::RuntimeConfig*>(config)->set_priority(priority);
}

int32_t ingotGetPriority(const nvinfer1::IRuntimeConfig* config) noexcept {
    return config == nullptr ? static_cast<int32_t>(ingot::Priority::kNORMAL)
                             : static_cast<const ingot::api::RuntimeConfig*>(config)->priority();
}

bool ingotSetGraphLimit(nvinfer1::IRuntimeConfig* config, int32_t most,
                        const nvinfer1::IRuntimeConfig* other) noexcept {
    return config != nullptr && static_cast<ingot::api::RuntimeConfig*>(config)->set_graph_limit(
                                    most, static_cast<const ingot::api::RuntimeConfig*>(other));
}

bool ingotSetRecordFirstRun(nvinfer1::IRuntimeConfig* config, bool record) noexcept {
    if (config != nullptr) {
        static_cast<ingot::api::RuntimeConfig*>(config)->set_record_first(record);
    }
    return config != nullptr;
}

int32_t ingotCountGraphs(const nvinfer1::IRuntimeConfig* config) noexcept {
    return config == nullptr
               ? 0
               : static_cast<const ingot::api::RuntimeConfig*>(config)->count_graphs();
}

} // extern "C"
