// SPDX-License-Identifier: Apache-2.0
// ingotSignEngine, apart from the runtime: libingot_lean.so does without it.
#include "api/tensorrt/host_memory.h"
#include "api/tensorrt/report.h"
#include "base/error.h"
#include "engine/trust.h"
#include "ingot.h"

extern "C" nvinfer1::IHostMemory* ingotSignEngine(nvinfer1::ILogger* logger, const void* engine,
                                                  uint64_t bytes,
                                                  const char* private_key) noexcept {
    using namespace ingot;
    return api::Report(logger).guard(
        "ingot::signEngine", static_cast<nvinfer1::IHostMemory*>(nullptr),
        [&]() -> nvinfer1::IHostMemory* {
            require(engine != nullptr && private_key != nullptr, ErrorCode::InvalidArgument,
                    engine == nullptr ? "the engine's bytes are at a null address"
                                      : "the private key is null");
            // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): the guard catches it
            return new api::HostMemory(signed_engine({static_cast<const std::byte*>(engine), bytes},
                                                     private_key_from_pem(private_key)));
        });
}
