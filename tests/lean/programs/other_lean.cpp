// SPDX-License-Identifier: Apache-2.0
// Simulates a lean runtime library of another release: its runtime makes no engines, and logs the
// calls that it gets.
#include "NvInferRuntime.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

class OtherRuntime final : public nvinfer1::IRuntime {
public:
    explicit OtherRuntime(nvinfer1::ILogger* logger) : logger_(logger) {}

    void setDLACore(int32_t) noexcept override {}
    int32_t getDLACore() const noexcept override { return 0; }
    int32_t getNbDLACores() const noexcept override { return 0; }
    void setGpuAllocator(nvinfer1::IGpuAllocator*) noexcept override {}
    void setErrorRecorder(nvinfer1::IErrorRecorder*) noexcept override {}
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override { return nullptr; }
    nvinfer1::ICudaEngine* deserializeCudaEngine(const void*, std::size_t size) noexcept override {
        say("an engine of " + std::to_string(size) + " bytes");
        return nullptr;
    }
    nvinfer1::ICudaEngine* deserializeCudaEngine(nvinfer1::IStreamReaderV2& r) noexcept override {
        char bytes[4096];
        int64_t all = 0;
        int64_t n = 0;
        while ((n = r.read(bytes, sizeof bytes, nullptr)) > 0) {
            all += n;
        }
        say("a stream of " + std::to_string(all) + " bytes");
        return nullptr;
    }
    nvinfer1::ICudaEngine* deserializeCudaEngine(nvinfer1::IStreamReader&) noexcept override {
        return nullptr;
    }
    nvinfer1::ILogger* getLogger() const noexcept override { return logger_; }
    bool setMaxThreads(int32_t threads) noexcept override {
        threads_ = threads;
        return true;
    }
    int32_t getMaxThreads() const noexcept override { return threads_; }
    void setTemporaryDirectory(const char*) noexcept override {}
    const char* getTemporaryDirectory() const noexcept override { return nullptr; }
    void setTempfileControlFlags(nvinfer1::TempfileControlFlags) noexcept override {}
    nvinfer1::TempfileControlFlags getTempfileControlFlags() const noexcept override { return 0; }
    nvinfer1::IPluginRegistry& getPluginRegistry() noexcept override {
        std::abort(); // nobody asks
    }
    nvinfer1::IRuntime* loadRuntime(const char*) noexcept override { return nullptr; }
    void setEngineHostCodeAllowed(bool) noexcept override {}
    bool getEngineHostCodeAllowed() const noexcept override { return false; }
    int64_t getEngineHeaderSize() const noexcept override { return 64; }
    nvinfer1::EngineValidity getEngineValidity(const void*, int64_t,
                                               uint64_t* diagnostics) const noexcept override {
        *diagnostics = 0;
        return nvinfer1::EngineValidity::kVALID;
    }
    void setDeferredWeightsLoading(bool) noexcept override {}
    bool getDeferredWeightsLoading() const noexcept override { return false; }
    bool
    setDLAWorkspaceAllocationStrategy(nvinfer1::DLAWorkspaceAllocationStrategy) noexcept override {
        return false;
    }
    nvinfer1::DLAWorkspaceAllocationStrategy
    getDLAWorkspaceAllocationStrategy() const noexcept override {
        return {};
    }

private:
    void say(const std::string& what) {
        std::string text = "other runtime, " + std::to_string(threads_) + " threads: " + what;
        logger_->log(nvinfer1::ILogger::Severity::kERROR, text.c_str());
    }
    nvinfer1::ILogger* logger_;
    int32_t threads_ = 0;
};

} // namespace

#define SHOWN extern "C" __attribute__((visibility("default")))

SHOWN void* createInferRuntime_INTERNAL(void* logger, int32_t) noexcept {
    nvinfer1::IRuntime* r = new OtherRuntime(static_cast<nvinfer1::ILogger*>(logger));
    return r;
}

SHOWN int32_t ingotRuntimeInterface() noexcept;
int32_t ingotRuntimeInterface() noexcept {
    return OTHER_INTERFACE;
}

SHOWN const char* ingotVersion() noexcept;
const char* ingotVersion() noexcept {
    return "7.1.0";
}
