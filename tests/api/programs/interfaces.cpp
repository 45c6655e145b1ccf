// SPDX-License-Identifier: Apache-2.0
// Every interface of the newest generation, with only its required methods.
#include "NvInfer.h"
#include "NvInferRuntime.h"

#include <cstdlib>

namespace {

struct Log : nvinfer1::ILogger {
    void log(Severity, const char*) noexcept override {}
};
struct Times : nvinfer1::v_1_0::IProfiler {
    void reportLayerTime(const char*, float) noexcept override {}
};
struct Allocator : nvinfer1::IGpuAsyncAllocator {
    void* allocateAsync(const uint64_t size, uint64_t const, nvinfer1::AllocatorFlags const,
                        cudaStream_t) noexcept override {
        return std::malloc(size);
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        std::free(memory);
        return true;
    }
};
struct SyncAllocator : nvinfer1::IGpuAllocator {
    void* allocateAsync(uint64_t const, uint64_t const, nvinfer1::AllocatorFlags const,
                        cudaStream_t) noexcept override {
        return nullptr;
    }
    bool deallocateAsync(void* const, cudaStream_t) noexcept override { return true; }
    void* reallocate(void* const, uint64_t, uint64_t) noexcept override { return nullptr; }
};
struct Outputs : nvinfer1::IOutputAllocator {
    void* reallocateOutputAsync(const char*, void* currentMemory, uint64_t, uint64_t,
                                cudaStream_t) override {
        return currentMemory;
    }
    void notifyShape(const char*, const nvinfer1::Dims&) noexcept override {}
};
struct Debug : nvinfer1::IDebugListener {
    bool processDebugTensor(const void*, nvinfer1::TensorLocation, nvinfer1::DataType,
                            const nvinfer1::Dims&, const char*, cudaStream_t) override {
        return true;
    }
};
struct Reader : nvinfer1::IStreamReaderV2 {
    int64_t read(void*, int64_t, cudaStream_t) noexcept override { return 0; }
    bool seek(int64_t, nvinfer1::SeekPosition where) noexcept override {
        return where == nvinfer1::SeekPosition::kSET;
    }
};
struct OldReader : nvinfer1::IStreamReader {
    int64_t read(void*, int64_t) override { return 0; }
};
struct Writer : nvinfer1::IStreamWriter {
    int64_t write(const void*, int64_t nbBytes) override { return nbBytes; }
};
struct Monitor : nvinfer1::IProgressMonitor {
    void phaseStart(const char*, const char*, int32_t) noexcept override {}
    bool stepComplete(const char*, int32_t) noexcept override { return false; }
    void phaseFinish(const char*) noexcept override {}
};
struct Finder : nvinfer1::ILoggerFinder {
    nvinfer1::ILogger* findLogger() override { return nullptr; }
};

} // namespace

int main() {
    Log log;
    Times times;
    Allocator allocator;
    SyncAllocator sync_allocator;
    Outputs outputs;
    Debug debug;
    Reader reader;
    OldReader old_reader;
    Writer writer;
    Monitor monitor;
    Finder finder;
    const nvinfer1::IVersionedInterface* const all[] = {
        &log,    &times,      &allocator, &sync_allocator, &outputs, &debug,
        &reader, &old_reader, &writer,    &monitor,        &finder};
    for (const auto* const one : all) {
        if (one->getInterfaceInfo().major != 1 ||
            one->getAPILanguage() != nvinfer1::APILanguage::kCPP) {
            return 1;
        }
    }
    return 0;
}
