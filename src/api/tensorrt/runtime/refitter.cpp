// SPDX-License-Identifier: Apache-2.0
// The entry for refitters: no engine can be refitted yet, which is what ICudaEngine::isRefittable()
// says.
#include "api/tensorrt/globals.h"
#include "api/tensorrt/report.h"

extern "C" void* createInferRefitter_INTERNAL(void* engine, void* logger,
                                              int32_t version) noexcept {
    using namespace ingot; // NOLINT(google-build-using-namespace)
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!api::check_version(version, log, "createInferRefitter")) {
        return nullptr;
    }
    return api::Report(log).guard(
        "createInferRefitter", static_cast<void*>(nullptr), [&]() -> void* {
            require(engine != nullptr, ErrorCode::InvalidArgument, "the engine is null");
            fail(ErrorCode::Unsupported,
                 "the engine cannot be refitted: build it anew with the new weights");
        });
}
