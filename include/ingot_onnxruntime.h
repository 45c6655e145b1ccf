// SPDX-License-Identifier: Apache-2.0
// Ingot's execution provider in C++ programs of ONNX Runtime. Stock ONNX Runtime refuses
// SessionOptions::AppendExecutionProvider(name, ..) to providers of other libraries, and this line
// takes its place:
//
//     ingot::appendExecutionProvider(env, session_options, {{"enable_cuda_graph", "1"}});
//
// It works with ONNX Runtime's own headers, and with ingot/onnxruntime_cxx.h where these are not
// installed. Link with ${CMAKE_DL_LIBS}; neither Ingot nor ONNX Runtime need be linked.
#pragma once

#include "ingot/onnxruntime_cxx.h"
#include "ingot/onnxruntime_names.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ingot {

/// The provider's name where a program names no other.
inline constexpr const char* kEXECUTION_PROVIDER = "NvTensorRTRTXExecutionProvider";

using ProviderOptions = std::unordered_map<std::string, std::string>;

/// The path of libingot_onnxruntime.so: that of $INGOT_ONNXRUNTIME, else that of a folder where the
/// loader looks on behalf of the program (its run path, LD_LIBRARY_PATH, the system's), else one
/// beside the program or in ../lib. Safe from any thread.
/// Errors: Ort::Exception with what was tried.
inline std::string executionProviderLibrary() {
    constexpr const char* kNAME = "libingot_onnxruntime.so";
    const char* variable = std::getenv("INGOT_ONNXRUNTIME");
    std::string program(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", program.data(), program.size());
    program.resize(length > 0 ? static_cast<size_t>(length) : 0);
    const size_t slash = program.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : program.substr(0, slash);
    std::string tried;
    for (const std::string& name :
         {std::string(variable == nullptr ? "" : variable), std::string(kNAME),
          folder + "/" + kNAME, folder + "/../lib/" + kNAME}) {
        link_map* found = nullptr;
        void* library = name.empty() ? nullptr : dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &found) == 0) {
            return found->l_name;
        }
        const char* problem = name.empty() ? nullptr : dlerror();
        tried += problem == nullptr ? "" : std::string("\n  ") + problem;
    }
    ORT_CXX_API_THROW("cannot open Ingot's execution provider; name libingot_onnxruntime.so by "
                      "INGOT_ONNXRUNTIME, or put its folder into LD_LIBRARY_PATH:" +
                          tried,
                      ORT_NO_SUCHFILE);
}

namespace detail {

/// The devices of the environment that run the provider of this name.
inline std::vector<const OrtEpDevice*> providerDevices(const OrtEnv* env, const char* provider) {
    const OrtApi& api = Ort::GetApi();
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    Ort::ThrowOnError(api.GetEpDevices(env, &devices, &count));
    std::vector<const OrtEpDevice*> found;
    for (size_t i = 0; i < count; ++i) {
        if (std::string_view(api.EpDevice_EpName(devices[i])) == provider) {
            found.push_back(devices[i]);
        }
    }
    return found;
}

/// The "device_id" that a device stands for; "0" where it tells none.
inline std::string deviceId(const OrtEpDevice* device) {
    const OrtApi& api = Ort::GetApi();
    const OrtKeyValuePairs* options = api.EpDevice_EpOptions(device);
    const char* id = options == nullptr ? nullptr : api.GetKeyValue(options, "device_id");
    return id == nullptr ? "0" : id;
}

/// The device that the option device_id names; the first one without it.
inline const OrtEpDevice* chosenDevice(const OrtEnv* env, const char* provider,
                                       const std::string* id) {
    std::string all;
    const std::vector<const OrtEpDevice*> devices = providerDevices(env, provider);
    for (const OrtEpDevice* device : devices) {
        const std::string own = deviceId(device);
        if (id == nullptr || *id == own) {
            return device;
        }
        all += (all.empty() ? "" : ", ") + own;
    }
    if (!devices.empty()) {
        ORT_CXX_API_THROW(std::string(provider) + ": there is no device with device_id " + *id +
                              ", expected one of " + all,
                          ORT_INVALID_ARGUMENT);
    }
    ORT_CXX_API_THROW(std::string(provider) +
                          ": no device runs it here; it needs an NVIDIA GPU of compute capability "
                          "8.0 or higher and its driver, or INGOT_ALLOW_CPU=1 for the CPU",
                      ORT_FAIL);
}

} // namespace detail

/// Makes sessions of these options run on Ingot: registers its library in the environment, unless a
/// provider of that name is there, chooses the device that the option device_id names, or the first
/// one, and appends the provider. Any other option travels to the provider as it is. Call it once
/// for each SessionOptions; not while other threads register libraries in the environment.
/// Errors: Ort::Exception that says what is missing, or lists the devices that there are.
/// \param env, options an Ort::Env and an Ort::SessionOptions, or pointers to what they hold.
inline void appendExecutionProvider(OrtEnv* env, OrtSessionOptions* options,
                                    const ProviderOptions& providerOptions = {},
                                    const char* provider = kEXECUTION_PROVIDER) {
    const OrtApi& api = Ort::GetApi();
    if (detail::providerDevices(env, provider).empty()) {
        const std::string_view name(provider);
        if (name != kEXECUTION_PROVIDER && name != "NvTensorRtRtxExecutionProvider" &&
            name != "IngotExecutionProvider") {
            ORT_CXX_API_THROW("there is no execution provider " + std::string(provider) +
                                  ", expected NvTensorRTRTXExecutionProvider, "
                                  "NvTensorRtRtxExecutionProvider or IngotExecutionProvider",
                              ORT_INVALID_ARGUMENT);
        }
        Ort::ThrowOnError(api.RegisterExecutionProviderLibrary(env, provider,
                                                               executionProviderLibrary().c_str()));
    }
    const auto id = providerOptions.find("device_id");
    const OrtEpDevice* device =
        detail::chosenDevice(env, provider, id == providerOptions.end() ? nullptr : &id->second);
    std::vector<const char*> keys;
    std::vector<const char*> values;
    for (const auto& [key, value] : providerOptions) {
        keys.push_back(key.c_str());
        values.push_back(value.c_str());
    }
    Ort::ThrowOnError(api.SessionOptionsAppendExecutionProvider_V2(
        options, env, &device, 1, keys.data(), values.data(), keys.size()));
}

/// The same in place of OrtApi::SessionOptionsAppendExecutionProvider: returns a status, null for
/// success, which the caller releases.
inline OrtStatus* appendExecutionProvider(OrtEnv* env, OrtSessionOptions* options,
                                          const char* const* keys, const char* const* values,
                                          size_t count,
                                          const char* provider = kEXECUTION_PROVIDER) {
    try {
        ProviderOptions map;
        for (size_t i = 0; i < count; ++i) {
            map[keys[i]] = values[i];
        }
        appendExecutionProvider(env, options, map, provider);
        return nullptr;
    } catch (const Ort::Exception& e) {
        return Ort::GetApi().CreateStatus(e.GetOrtErrorCode(), e.what());
    }
}

} // namespace ingot
