// SPDX-License-Identifier: Apache-2.0
// The C API of ONNX Runtime, as far as programs need it that run and compile models: its own header
// where that is found, else declarations of the same names with the same layout, and the functions
// that find its shared library when the program runs.
#pragma once

// INGOT_ONNXRUNTIME_DECLARATIONS keeps the declarations below although the real header is there.
#if !defined(ORT_API_VERSION) && !defined(INGOT_ONNXRUNTIME_DECLARATIONS)
#if __has_include(<onnxruntime_c_api.h>)
#include <onnxruntime_c_api.h>
#elif __has_include(<onnxruntime/onnxruntime_c_api.h>)
#include <onnxruntime/onnxruntime_c_api.h>
#elif __has_include(<onnxruntime/core/session/onnxruntime_c_api.h>)
#include <onnxruntime/core/session/onnxruntime_c_api.h>
#endif
#endif

#include <cstddef>
#include <cstdint>

#ifndef ORT_API_VERSION
#include "ingot/onnxruntime_declarations.h"
#endif

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ingot {

/// The newest version of the C API that these headers know. Later ones only append to it.
inline constexpr uint32_t kNEWEST_ONNXRUNTIME_API = 31;
/// The oldest version that runs execution providers of other libraries as ours needs it.
inline constexpr uint32_t kOLDEST_ONNXRUNTIME_API = 24;

/// The minor version in "1.31.1"; 0 for text of another form. Never fails.
inline uint32_t onnxRuntimeApiVersion(const char* release) noexcept {
    if (release == nullptr || release[0] != '1' || release[1] != '.') {
        return 0;
    }
    uint32_t version = 0;
    for (const char* c = release + 2; *c >= '0' && *c <= '9' && version < 1000; ++c) {
        version = version * 10 + static_cast<uint32_t>(*c - '0');
    }
    return version;
}

/// Opens ONNX Runtime's shared library, which stays open until the process ends: by its path; else
/// the one that the process has already; else that of $INGOT_ORT_LIBRARY; else libonnxruntime.so.1
/// or libonnxruntime.so of the loader's folders. Programs do not link it: its symbols carry the
/// release as their version. Safe from any thread.
/// Errors: std::runtime_error with each name that was tried and what the loader says.
inline const OrtApiBase& openOnnxRuntime(const std::string& path = "") {
    using Get = const OrtApiBase* (*)();
    constexpr const char* kENTRY = "OrtGetApiBase";
    void* found = path.empty() ? dlsym(RTLD_DEFAULT, kENTRY) : nullptr;
    std::string tried;
    auto open = [&](const std::string& name) {
        if (found == nullptr && !name.empty()) {
            void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
            found = library == nullptr ? nullptr : dlsym(library, kENTRY);
            const char* problem = found == nullptr ? dlerror() : nullptr;
            tried += problem == nullptr ? "" : std::string("\n  ") + problem;
        }
    };
    open(path);
    if (path.empty()) {
        const char* variable = std::getenv("INGOT_ORT_LIBRARY");
        open(variable == nullptr ? "" : variable);
        open("libonnxruntime.so.1");
        open("libonnxruntime.so");
    }
    if (found == nullptr) {
        throw std::runtime_error("cannot open ONNX Runtime; pip install onnxruntime, and name the "
                                 "libonnxruntime.so.* of its folder capi by INGOT_ORT_LIBRARY:" +
                                 tried);
    }
    return *reinterpret_cast<Get>(found)();
}

/// The functions of an opened library, at the newest version that both sides know; they live until
/// the process ends. Safe from any thread.
/// Errors: std::runtime_error where its release is older than 1.24.
inline const OrtApi& onnxRuntimeApi(const OrtApiBase& base) {
    const char* release = base.GetVersionString();
    const uint32_t version = onnxRuntimeApiVersion(release);
    // A version that the library does not know makes it print a line: it is asked for none.
    const OrtApi* api =
        version < kOLDEST_ONNXRUNTIME_API
            ? nullptr
            : base.GetApi(version < kNEWEST_ONNXRUNTIME_API ? version : kNEWEST_ONNXRUNTIME_API);
    if (api == nullptr) {
        throw std::runtime_error(std::string("ONNX Runtime is ") + release +
                                 ", expected 1.24 or newer: pip install --upgrade onnxruntime");
    }
    return *api;
}

} // namespace ingot
