// SPDX-License-Identifier: Apache-2.0
// EngineTrust: whose engines a plugin loads, and whose may bring code for the GPU
// (docs/adr/0020-trusted-code.md).
#pragma once

#include "NvInferRuntime.h"
#include "base/error.h"
#include "ingot.h"
#include "plugins/common/keeping_logger.h"

#include <string>

namespace ingot {

struct EngineTrust {
    std::string keys;         // public keys in PEM; "": none
    bool only_signed = false; // refuses engines that none of the keys has signed
    bool allow_code = false;  // takes code that unsigned engines bring
};

/// For engines that the runtime loads from here on. `logger` is the runtime's. Errors:
/// InvalidArgument for malformed keys, naming the line.
inline void apply_trust(nvinfer1::IRuntime& runtime, const EngineTrust& trust,
                        KeepingLogger& logger) {
    with_place([] { return std::string("trusted keys"); },
               [&] {
                   logger.require_done(trust.keys.empty() ||
                                           setTrustedKeys(runtime, trust.keys.c_str()),
                                       ErrorCode::InvalidArgument, "malformed keys");
               });
    runtime.setEngineHostCodeAllowed(trust.allow_code);
    logger.require_done(setTrustedOnly(runtime, trust.only_signed), ErrorCode::Internal,
                        "this library does not check signatures");
}

} // namespace ingot
