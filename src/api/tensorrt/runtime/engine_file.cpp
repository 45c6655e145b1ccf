// SPDX-License-Identifier: Apache-2.0
// Engines in files, apart from the runtime: libingot_lean.so does without these functions.
#include "api/tensorrt/runtime/runtime.h"
#include "base/error.h"
#include "base/hex.h"
#include "engine/container.h"
#include "ingot.h"

#include <cstring>

extern "C" {

nvinfer1::ICudaEngine* ingotDeserializeFile(nvinfer1::IRuntime* runtime,
                                            const ingot::EngineFile* file) noexcept {
    return runtime == nullptr || file == nullptr
               ? nullptr
               : static_cast<ingot::api::RuntimeObject*>(runtime)->deserialize_file(*file);
}

bool ingotEngineDigest(const void* engine, uint64_t bytes, char* digest) noexcept {
    if (engine == nullptr || digest == nullptr) {
        return false;
    }
    try {
        std::optional<ingot::Sha256> found =
            ingot::engine_identity({static_cast<const std::byte*>(engine), bytes});
        if (!found) {
            return false;
        }
        std::string text = ingot::to_hex(*found);
        std::memcpy(digest, text.c_str(), text.size() + 1);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

} // extern "C"
