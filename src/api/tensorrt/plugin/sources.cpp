// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/sources.h"

#include "api/tensorrt/network/network.h"
#include "base/error.h"

#include <map>
#include <mutex>

namespace ingot::api {

namespace {

struct Registered {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, SourceKernel> kernels; // by domain and operator
};

Registered& registered() {
    // Never destroyed: threads may parse until the process ends.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-unhandled-exception-at-new)
    static auto* all = new Registered;
    return *all;
}

std::string needed(const char* text, std::string_view what) {
    require(text != nullptr && *text != '\0', ErrorCode::InvalidArgument, "CudaSource::", what,
            " is empty");
    return text;
}

std::string optional_text(const char* text) {
    return text == nullptr ? "" : text;
}

} // namespace

SourceKernel source_kernel(const CudaSource& source) {
    SourceKernel k;
    k.title = needed(source.name, "name");
    k.source = needed(source.source, "source");
    k.kernel = needed(source.kernel, "kernel");
    k.signature = needed(source.signature, "signature");
    k.arguments = optional_text(source.arguments);
    k.grid = needed(source.grid, "grid");
    k.block = needed(source.block, "block");
    k.shared = optional_text(source.sharedBytes);
    k.workspace = optional_text(source.workspaceBytes);
    return k;
}

std::optional<SourceKernel> find_source(const std::string& domain, const std::string& op) {
    Registered& all = registered();
    std::scoped_lock lock(all.mutex);
    auto it = all.kernels.find({domain, op});
    return it == all.kernels.end() ? std::nullopt : std::optional(it->second);
}

} // namespace ingot::api

extern "C" {

nvinfer1::ILayer* ingotAddCudaSourceLayer(nvinfer1::INetworkDefinition* network,
                                          nvinfer1::ITensor* const* inputs, int32_t count,
                                          const ingot::CudaSource* source) noexcept {
    return network == nullptr
               ? nullptr
               : static_cast<ingot::api::Network*>(network)->add_source(inputs, count, source);
}

bool ingotRegisterCudaSource(const char* domain, const char* op,
                             const ingot::CudaSource* source) noexcept {
    return ingot::api::Report().guard("ingot::registerCudaSource", false, [&] {
        using ingot::ErrorCode;
        ingot::require(op != nullptr && *op != '\0', ErrorCode::InvalidArgument,
                       "the operator's name is empty");
        ingot::require(source != nullptr, ErrorCode::InvalidArgument, "the source is nullptr");
        ingot::SourceKernel kernel = ingot::api::source_kernel(*source);
        std::string space = ingot::api::optional_text(domain);
        auto& all = ingot::api::registered();
        std::scoped_lock lock(all.mutex);
        bool added = all.kernels.emplace(std::pair(space, op), std::move(kernel)).second;
        ingot::require(added, ErrorCode::InvalidArgument, "operator '", op, "' of domain '", space,
                       "' has a source already; deregister it first");
        return true;
    });
}

bool ingotDeregisterCudaSource(const char* domain, const char* op) noexcept {
    return ingot::api::Report().guard("ingot::deregisterCudaSource", false, [&] {
        std::string space = ingot::api::optional_text(domain);
        std::string name = ingot::api::optional_text(op);
        auto& all = ingot::api::registered();
        std::scoped_lock lock(all.mutex);
        ingot::require(all.kernels.erase({space, name}) == 1, ingot::ErrorCode::InvalidArgument,
                       "operator '", name, "' of domain '", space, "' has no source");
        return true;
    });
}

} // extern "C"
