// SPDX-License-Identifier: Apache-2.0
// The two exported functions that ONNX Runtime calls in a plugin.
#include "plugins/onnxruntime/factory.h"

#include <algorithm>
#include <memory>

#define INGOT_EXPORT extern "C" __attribute__((visibility("default")))

using namespace ingot::ort; // NOLINT(google-build-using-namespace): this file is all of its users

namespace {

/// The tables at the version that both sides support. On failure returns null tables and sets
/// `problem`.
Host negotiated(const OrtApiBase* base, std::string& problem) {
    Host host;
    const char* release = base->GetVersionString();
    uint32_t version = std::min(api_of_release(release), newest_api);
    // Even a host that is too old provides functions that make a status.
    host.api = base->GetApi(std::max(version, 1U));
    if (version < oldest_api || host.api == nullptr) {
        problem = ingot::str("[NvTensorRTRTX EP] ONNX Runtime is ", release, ", expected 1.",
                             oldest_api, " or newer: pip install --upgrade onnxruntime");
        return host;
    }
    host.version = version;
    host.ep = host.api->GetEpApi();
    host.editor = host.api->GetModelEditorApi();
    return host;
}

} // namespace

INGOT_EXPORT OrtStatus* CreateEpFactories(const char* registered, const OrtApiBase* base,
                                          const OrtLogger* logger, OrtEpFactory** factories,
                                          size_t room, size_t* made) {
    *made = 0;
    std::string problem;
    Host host = negotiated(base, problem);
    if (host.api == nullptr) {
        return nullptr; // such a host gets no message, but sees that there is no factory
    }
    return guard(host, [&]() -> OrtStatus* {
        if (!problem.empty()) {
            return host.status(ORT_FAIL, problem.c_str());
        }
        ingot::require(room >= 1, ingot::ErrorCode::InvalidArgument, "there is room for ", room,
                       " factories, expected 1 or more");
        factories[0] = std::make_unique<Factory>(host, logger, registered).release();
        *made = 1;
        return nullptr;
    });
}

INGOT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
    std::unique_ptr<Factory>(static_cast<Factory*>(factory)).reset();
    return nullptr;
}
