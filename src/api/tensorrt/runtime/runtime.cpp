// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/runtime.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/globals.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/runtime/engine.h"
#include "api/tensorrt/runtime/lean_library.h"
#include "api/tensorrt/runtime/read_engine.h"
#include "api/tensorrt/runtime/validity.h"
#include "api/tensorrt/unused.h"
#include "backends/backends.h"
#include "base/cpus.h"
#include "engine/container.h"

#include <algorithm>
#include <thread>

namespace ingot::api {

using nvinfer1::EngineInvalidityDiagnostics;
using nvinfer1::EngineValidity;
using nvinfer1::ICudaEngine;

static int32_t all_threads() {
    return static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
}

RuntimeObject::RuntimeObject(nvinfer1::ILogger* logger)
    : report_(logger), max_threads_(all_threads()) {}

template <class Read>
ICudaEngine* RuntimeObject::make(const Read& read, CheckWeights check) const {
    Place place = first_place();
    MemoryChange change(report_, place.backend, "Engine deserialization");
    // The CPU reads weights in place; a GPU has its own copies.
    EngineBytes bytes = read(place.is_gpu ? nullptr : memory_source(allocator_));
    report_.log(nvinfer1::ILogger::Severity::kINFO,
                str("Loaded engine size: ", bytes.size >> 20U, " MiB"));
    std::unique_ptr<EngineObject> engine = make_engine(load_engine(bytes, check, trust_), place,
                                                       allocator_, report_, !deferred_, &plugins_);
    engine->state()->engine().check_weights();
    if (max_threads_ < all_threads() || is_confined()) { // the process's pool is on all CPUs
        engine->state()->set_threads(max_threads_);
    }
    if (deferred_) {
        engine->state()->expect_weights(std::move(bytes));
    }
    engine->state()->upload_weights();
    return engine.release();
}

Place RuntimeObject::first_place() const {
    if (found_device_.exchange(true)) {
        return find_place(device_, ordinal_);
    }
    MemoryChange change(report_, nullptr, "Init CUDA");
    Place place = find_place(device_, ordinal_);
    if (place.is_gpu) {
        change.set_device(*place.backend);
    }
    return place;
}

ICudaEngine* RuntimeObject::deserializeCudaEngine(const void* blob, std::size_t size) noexcept {
    return report_.guard(
        "IRuntime::deserializeCudaEngine", static_cast<ICudaEngine*>(nullptr), [&] {
            require(blob != nullptr, ErrorCode::InvalidArgument,
                    "the engine's bytes are at a null address");
            if (check_weights_ == CheckWeights::Never) {
                return make([&](const auto& source) { return copy_bytes(blob, size, source); },
                            CheckWeights::Never);
            }
            return make([&](const auto& source) { return copy_checked(blob, size, source); },
                        CheckWeights::Never);
        });
}

ICudaEngine* RuntimeObject::deserializeCudaEngine(nvinfer1::IStreamReaderV2& reader) noexcept {
    return report_.guard(
        "IRuntime::deserializeCudaEngine", static_cast<ICudaEngine*>(nullptr),
        [&] { return make([&](const auto& s) { return read_all(reader, s); }, check_weights_); });
}

ICudaEngine* RuntimeObject::deserializeCudaEngine(nvinfer1::IStreamReader& reader) noexcept {
    return report_.guard(
        "IRuntime::deserializeCudaEngine", static_cast<ICudaEngine*>(nullptr),
        [&] { return make([&](const auto& s) { return read_all(reader, s); }, check_weights_); });
}

ICudaEngine* RuntimeObject::deserialize_file(const EngineFile& file) noexcept {
    return report_.guard("ingot::deserializeFile", static_cast<ICudaEngine*>(nullptr), [&] {
        EngineBytes bytes = map_engine(file);
        auto place = [&] {
            return file.folder == nullptr ? std::string(file.path)
                                          : str(file.folder, '/', file.path);
        };
        return with_place(place,
                          [&] { return make([&](const auto&) { return bytes; }, check_weights_); });
    });
}

bool RuntimeObject::setMaxThreads(int32_t threads) noexcept {
    return report_.guard("IRuntime::setMaxThreads", false, [&] {
        require(threads >= 1, ErrorCode::InvalidArgument, "the number of threads is ", threads,
                ", expected at least 1");
        max_threads_ = threads;
        return true;
    });
}

void RuntimeObject::setTemporaryDirectory(const char* path) noexcept {
    report_.guard("IRuntime::setTemporaryDirectory", [&] {
        temporary_ = path == nullptr ? "" : path;
        if (!temporary_.empty()) {
            log_unused(report_, "IRuntime::setTemporaryDirectory", false,
                       "no temporary files are made");
        }
    });
}

void RuntimeObject::setTempfileControlFlags(nvinfer1::TempfileControlFlags flags) noexcept {
    report_.guard("IRuntime::setTempfileControlFlags", [&] {
        require(flags <= 3, ErrorCode::InvalidArgument, "flags are ", flags,
                ", expected bits of 3");
        tempfile_flags_ = flags;
        log_unused(report_, "IRuntime::setTempfileControlFlags", true,
                   "no temporary files are made");
    });
}

void RuntimeObject::setEngineHostCodeAllowed(bool allowed) noexcept {
    trust_.allow_code = allowed; // the engine's maker is trusted, of whom it brings GPU code
}

bool RuntimeObject::set_trusted_keys(const char* public_keys) noexcept {
    return report_.guard("ingot::setTrustedKeys", false, [&] {
        trust_.keys =
            public_keys == nullptr ? std::vector<TrustedKey>() : parse_trusted_keys(public_keys);
        return true;
    });
}

void RuntimeObject::setDLACore(int32_t core) noexcept {
    dla_core_ = core;
    log_unused(report_, "IRuntime::setDLACore", false, "there is no DLA");
}

nvinfer1::IRuntime* RuntimeObject::loadRuntime(const char* path) noexcept {
    return report_.guard("IRuntime::loadRuntime", static_cast<nvinfer1::IRuntime*>(nullptr),
                         [&] { return LeanLibrary::load_runtime(path, report_).release(); });
}

int64_t RuntimeObject::getEngineHeaderSize() const noexcept {
    return static_cast<int64_t>(engine_header_bytes);
}

/// For the device on which this runtime's engines run.
DeviceFacts RuntimeObject::device_facts(const EngineHead& engine) const {
    DeviceFacts facts;
    try {
        Place place = find_place(device_, ordinal_);
        facts.is_gpu = place.is_gpu;
        if (!place.is_gpu) {
            facts.problem = device_ == Device::kCPU ? CudaProblem::None : cuda_problem();
            return facts;
        }
        int capability = place.backend->compute_capability();
        facts.compiles = compiles_kernels(*place.backend);
        facts.runs_kernels = std::any_of(engine.capabilities.begin(), engine.capabilities.end(),
                                         [&](int cc) { return runs_kernels_of(capability, cc); });
        facts.memory_bytes = place.backend->memory().total;
    } catch (const Error& e) {
        facts.is_gpu = true;
        facts.is_supported = e.code() != ErrorCode::Unsupported;
        facts.problem = facts.is_supported ? CudaProblem::Failed : CudaProblem::None;
    }
    return facts;
}

EngineValidity RuntimeObject::getEngineValidity(const void* blob, int64_t size,
                                                uint64_t* diagnostics) const noexcept {
    Validity v{EngineValidity::kINVALID,
               static_cast<uint64_t>(EngineInvalidityDiagnostics::kMALFORMED_ENGINE)};
    report_.guard("IRuntime::getEngineValidity", [&] {
        std::span<const std::byte> bytes;
        if (blob != nullptr && size > 0) {
            bytes = {static_cast<const std::byte*>(blob), static_cast<size_t>(size)};
        }
        EngineHead head = read_engine_head(bytes);
        v = judge(head, device_facts(head));
    });
    if (diagnostics != nullptr) {
        *diagnostics = v.diagnostics;
    }
    return v.answer;
}

bool RuntimeObject::setDLAWorkspaceAllocationStrategy(
    nvinfer1::DLAWorkspaceAllocationStrategy strategy) noexcept {
    return report_.guard("IRuntime::setDLAWorkspaceAllocationStrategy", false, [&] {
        dla_workspace_ = checked(strategy, "the strategy");
        log_unused(report_, "IRuntime::setDLAWorkspaceAllocationStrategy", false,
                   "there is no DLA");
        return true;
    });
}

bool RuntimeObject::set_device(int32_t device, int32_t ordinal) noexcept {
    return report_.guard("ingot::setDevice", false, [&] {
        static_cast<void>(find_place(static_cast<Device>(device), ordinal));
        device_ = static_cast<Device>(device);
        ordinal_ = ordinal;
        return true;
    });
}

} // namespace ingot::api

extern "C" {

void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept {
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!ingot::api::check_version(version, log, "createInferRuntime")) {
        return nullptr;
    }
    ingot::api::remember_logger(log);
    return ingot::api::Report(log).guard(
        "createInferRuntime", static_cast<void*>(nullptr), [&]() -> void* {
            nvinfer1::IRuntime* runtime =
                std::make_unique<ingot::api::RuntimeObject>(log).release();
            return runtime;
        });
}

bool ingotSetRuntimeDevice(nvinfer1::IRuntime* runtime, int32_t device, int32_t ordinal) noexcept {
    return runtime != nullptr &&
           static_cast<ingot::api::RuntimeObject*>(runtime)->set_device(device, ordinal);
}

bool ingotSetVerifyWeights(nvinfer1::IRuntime* runtime, bool verify) noexcept {
    if (runtime == nullptr) {
        return false;
    }
    static_cast<ingot::api::RuntimeObject*>(runtime)->set_verify_weights(verify);
    return true;
}

const char* ingotGetDeviceError(const nvinfer1::ICudaEngine* engine) noexcept {
    if (engine == nullptr) {
        return nullptr;
    }
    const auto& object = static_cast<const ingot::api::EngineObject&>(*engine);
    return ingot::device_error(*object.state()->place().backend);
}

bool ingotSetTrustedKeys(nvinfer1::IRuntime* runtime, const char* public_keys) noexcept {
    return runtime != nullptr &&
           static_cast<ingot::api::RuntimeObject*>(runtime)->set_trusted_keys(public_keys);
}

bool ingotSetTrustedOnly(nvinfer1::IRuntime* runtime, bool only) noexcept {
    if (runtime == nullptr) {
        return false;
    }
    static_cast<ingot::api::RuntimeObject*>(runtime)->set_trusted_only(only);
    return true;
}

int32_t ingotGetDevice(const nvinfer1::ICudaEngine* engine) noexcept {
    if (engine == nullptr) {
        return static_cast<int32_t>(ingot::Device::kAUTO);
    }
    const auto& object = static_cast<const ingot::api::EngineObject&>(*engine);
    return static_cast<int32_t>(object.state()->place().is_gpu ? ingot::Device::kGPU
                                                               : ingot::Device::kCPU);
}

} // extern "C"
