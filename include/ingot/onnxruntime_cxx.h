// SPDX-License-Identifier: Apache-2.0
// The C++ API of ONNX Runtime, as far as programs need it that make sessions and compile models:
// its own header where that is found, else classes of the same names and signatures. Those open
// ONNX Runtime's shared library when it is first needed.
#pragma once

#if !defined(ORT_CXX_API_THROW) && !defined(INGOT_ONNXRUNTIME_DECLARATIONS)
#if __has_include(<onnxruntime_cxx_api.h>)
#include <onnxruntime_cxx_api.h>
#elif __has_include(<onnxruntime/onnxruntime_cxx_api.h>)
#include <onnxruntime/onnxruntime_cxx_api.h>
#elif __has_include(<onnxruntime/core/session/onnxruntime_cxx_api.h>)
#include <onnxruntime/core/session/onnxruntime_cxx_api.h>
#endif
#endif

#include "ingot/onnxruntime_c.h"

#ifndef ORT_CXX_API_THROW

#include <exception>
#include <string>
#include <utility>
#include <vector>

#define ORT_CXX_API_THROW(string, code) throw Ort::Exception(string, code)

namespace Ort {

/// An error of ONNX Runtime, or of an execution provider. Lifetime: a value that owns its text;
/// const methods are safe from any thread.
class Exception : public std::exception {
public:
    Exception(std::string text, OrtErrorCode code) : text_(std::move(text)), code_(code) {}
    OrtErrorCode GetOrtErrorCode() const noexcept { return code_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    std::string text_;
    OrtErrorCode code_;
};

namespace detail {
inline const OrtApi*& api() noexcept {
    static const OrtApi* chosen = nullptr;
    return chosen;
}
} // namespace detail

/// Names the functions to use, before anything else of this namespace is called.
inline void InitApi(const OrtApi* api) noexcept {
    detail::api() = api;
}

/// The functions that InitApi() named, else those of ingot::openOnnxRuntime(). Safe from any thread
/// after the first call. Errors: std::runtime_error where there is no such library.
inline const OrtApi& GetApi() {
    if (detail::api() == nullptr) {
        detail::api() = &ingot::onnxRuntimeApi(ingot::openOnnxRuntime());
    }
    return *detail::api();
}

/// The result of a call: success or an error.
/// Lifetime: it releases its status. One thread at a time.
class Status {
public:
    explicit Status(OrtStatus* status) noexcept : status_(status) {}
    ~Status() {
        if (status_ != nullptr) {
            GetApi().ReleaseStatus(status_);
        }
    }
    Status(Status&& from) noexcept : status_(std::exchange(from.status_, nullptr)) {}
    Status& operator=(Status&& from) noexcept {
        std::swap(status_, from.status_);
        return *this;
    }
    Status(const Status&) = delete;
    Status& operator=(const Status&) = delete;
    bool IsOK() const noexcept { return status_ == nullptr; }
    /// The error's text; "" where there was none.
    std::string GetErrorMessage() const { return IsOK() ? "" : GetApi().GetErrorMessage(status_); }
    OrtErrorCode GetErrorCode() const { return IsOK() ? ORT_OK : GetApi().GetErrorCode(status_); }

private:
    OrtStatus* status_;
};

/// Takes a status over. Errors: Exception with its text, unless it is null.
inline void ThrowOnError(OrtStatus* returned) {
    const Status status(returned);
    if (!status.IsOK()) {
        ORT_CXX_API_THROW(status.GetErrorMessage(), status.GetErrorCode());
    }
}

namespace detail {
/// An object of ONNX Runtime. Lifetime: it releases the object at its end, and is moved, never
/// copied. Errors are Exceptions. Safe from as many threads as the object itself.
template <class T, void (*OrtApi::*release)(T*)>
class Owner {
public:
    ~Owner() {
        if (object_ != nullptr) {
            (GetApi().*release)(object_);
        }
    }
    Owner(Owner&& from) noexcept : object_(std::exchange(from.object_, nullptr)) {}
    Owner& operator=(Owner&& from) noexcept {
        std::swap(object_, from.object_);
        return *this;
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    operator T*() const noexcept { return object_; } // NOLINT(google-explicit-constructor)

    /// Where a function puts the object that it makes; the owner holds none before.
    T** out() noexcept { return &object_; }
    Owner() = default;

protected:
    T* object_ = nullptr;
};
} // namespace detail

/// The environment: logging and the libraries of execution providers. Lifetime: it outlives its
/// sessions. Safe from any thread. Errors: Exception.
class Env : public detail::Owner<OrtEnv, &OrtApi::ReleaseEnv> {
public:
    explicit Env(OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING, const char* name = "") {
        ThrowOnError(GetApi().CreateEnv(level, name, &object_));
    }
};

/// How a session is made. Lifetime: it may serve several sessions and end before them. One thread
/// at a time. Errors: Exception.
class SessionOptions : public detail::Owner<OrtSessionOptions, &OrtApi::ReleaseSessionOptions> {
public:
    SessionOptions() { ThrowOnError(GetApi().CreateSessionOptions(&object_)); }
    SessionOptions& AddConfigEntry(const char* key, const char* value) {
        ThrowOnError(GetApi().AddSessionConfigEntry(object_, key, value));
        return *this;
    }
    SessionOptions& SetGraphOptimizationLevel(GraphOptimizationLevel level) {
        ThrowOnError(GetApi().SetSessionGraphOptimizationLevel(object_, level));
        return *this;
    }
    /// The data stays the caller's and outlives the sessions.
    SessionOptions& AddExternalInitializersFromFilesInMemory(const std::vector<std::string>& names,
                                                             const std::vector<char*>& data,
                                                             const std::vector<size_t>& bytes) {
        std::vector<const char*> files;
        for (const std::string& name : names) {
            files.push_back(name.c_str());
        }
        ThrowOnError(GetApi().AddExternalInitializersFromFilesInMemory(
            object_, files.data(), data.data(), bytes.data(), files.size()));
        return *this;
    }
};

/// A model that is ready to run. Lifetime: it ends before its environment. Runs are safe from any
/// thread. Errors: Exception.
class Session : public detail::Owner<OrtSession, &OrtApi::ReleaseSession> {
public:
    Session(const Env& env, const char* path, const SessionOptions& options) {
        ThrowOnError(GetApi().CreateSession(env, path, options, &object_));
    }
    Session(const Env& env, const void* model, size_t bytes, const SessionOptions& options) {
        ThrowOnError(GetApi().CreateSessionFromArray(env, model, bytes, options, &object_));
    }
};

/// The allocator of host memory that the library has. Lifetime: that of the process. Safe from any
/// thread. Errors: Exception.
class AllocatorWithDefaultOptions {
public:
    AllocatorWithDefaultOptions() {
        ThrowOnError(GetApi().GetAllocatorWithDefaultOptions(&allocator_));
    }
    operator OrtAllocator*() const noexcept {
        return allocator_;
    } // NOLINT(google-explicit-constructor)
    void Free(void* data) { ThrowOnError(GetApi().AllocatorFree(allocator_, data)); }

private:
    OrtAllocator* allocator_ = nullptr;
};

/// The model to compile, and the output.
/// Lifetime: texts and buffers stay the caller's and live until CompileModel() has returned. One
/// thread at a time.
/// Errors: Exception.
class ModelCompilationOptions {
public:
    ModelCompilationOptions(const Env& env, const SessionOptions& options) {
        ThrowOnError(api().CreateModelCompilationOptionsFromSessionOptions(env, options, &object_));
    }
    ~ModelCompilationOptions() { api().ReleaseModelCompilationOptions(object_); }
    ModelCompilationOptions(const ModelCompilationOptions&) = delete;
    ModelCompilationOptions& operator=(const ModelCompilationOptions&) = delete;
    operator OrtModelCompilationOptions*() const noexcept {
        return object_;
    } // NOLINT(google-explicit-constructor)

    ModelCompilationOptions& SetInputModelPath(const char* path) {
        return checked(api().ModelCompilationOptions_SetInputModelPath(object_, path));
    }
    ModelCompilationOptions& SetInputModelFromBuffer(const void* model, size_t bytes) {
        return checked(
            api().ModelCompilationOptions_SetInputModelFromBuffer(object_, model, bytes));
    }
    ModelCompilationOptions& SetOutputModelPath(const char* path) {
        return checked(api().ModelCompilationOptions_SetOutputModelPath(object_, path));
    }
    /// The result is allocated by `allocator`, which frees it too.
    ModelCompilationOptions& SetOutputModelBuffer(OrtAllocator* allocator, void** model,
                                                  size_t* bytes) {
        return checked(
            api().ModelCompilationOptions_SetOutputModelBuffer(object_, allocator, model, bytes));
    }
    ModelCompilationOptions& SetEpContextEmbedMode(bool embed) {
        return checked(api().ModelCompilationOptions_SetEpContextEmbedMode(object_, embed));
    }
    ModelCompilationOptions& SetEpContextBinaryInformation(const char* folder, const char* model) {
        return checked(
            api().ModelCompilationOptions_SetEpContextBinaryInformation(object_, folder, model));
    }

private:
    static const OrtCompileApi& api() { return *GetApi().GetCompileApi(); }
    ModelCompilationOptions& checked(OrtStatus* status) {
        ThrowOnError(status);
        return *this;
    }
    OrtModelCompilationOptions* object_ = nullptr;
};

/// Compiles a model as the options say; safe from any thread.
inline Status CompileModel(const Env& env, const ModelCompilationOptions& options) {
    return Status(GetApi().GetCompileApi()->CompileModel(env, options));
}

} // namespace Ort

#endif // ORT_CXX_API_THROW
