// SPDX-License-Identifier: Apache-2.0
// Host: the ONNX Runtime that loaded the plugin, at the version of its C API that both support, and
// the error boundary. Exceptions stay on this side, statuses on the other.
#pragma once

#include "base/error.h"
#include "plugins/onnxruntime/abi.h"

#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ingot::ort {

inline constexpr const char* ep_name = "NvTensorRTRTXExecutionProvider";
inline constexpr uint32_t nvidia_vendor = 0x10DE;
/// The versions of the C API that this plugin supports. Later ones only append to it.
inline constexpr uint32_t oldest_api = 24;
inline constexpr uint32_t newest_api = 31;

/// The minor version in "1.31.1"; 0 for text of another form.
uint32_t api_of_release(std::string_view release);

/// Immutable and cheap to copy: the tables live as long as the process.
struct Host {
    const OrtApi* api = nullptr;
    const OrtEpApi* ep = nullptr;
    const OrtModelEditorApi* editor = nullptr;
    uint32_t version = 0;

    /// Takes ownership of a status. Errors: Internal with its message, unless it is null.
    void check(OrtStatus* status) const;
    /// A new status for the host. Null only when memory is exhausted.
    OrtStatus* status(OrtErrorCode code, const char* text) const noexcept;
    OrtStatus* status(const Error& e) const noexcept;

    /// The result of a getter: `get(OrtApi::Node_GetName, node)`.
    template <class Out, class... Params, class... Args>
    Out get_from(OrtStatus* (*function)(Params...), Args... args) const {
        Out out{};
        check(function(args..., &out));
        return out;
    }
    /// A list that the host returns through a function for its length and one for its content.
    template <class T, class Object>
    std::vector<const T*> list(OrtStatus* (*count)(const Object*, size_t*),
                               OrtStatus* (*get)(const Object*, const T**, size_t),
                               const Object* object) const {
        std::vector<const T*> out(get_from<size_t>(count, object));
        if (!out.empty()) {
            check(get(object, out.data(), out.size()));
        }
        return out;
    }
};

/// Runs f for the host: an exception becomes the returned status.
template <class F>
OrtStatus* guard(const Host& host, F&& f) noexcept {
    try {
        if constexpr (std::is_same_v<decltype(f()), OrtStatus*>) {
            return f();
        } else {
            f();
            return nullptr;
        }
    } catch (const Error& e) {
        return host.status(e);
    } catch (const std::bad_alloc&) {
        return host.status(ORT_FAIL, "[NvTensorRTRTX EP] out of host memory");
    } catch (const std::exception& e) {
        return host.status(ORT_FAIL, e.what());
    } catch (...) {
        return host.status(ORT_FAIL, "[NvTensorRTRTX EP] unknown exception");
    }
}

} // namespace ingot::ort
