// SPDX-License-Identifier: Apache-2.0
// Shared by the programs that make the calls of NVIDIA's samples: CUDA's runtime as far as they
// need it, memory of a device, and pictures of digits.
#pragma once

#include "NvInfer.h"
#include "NvOnnxParser.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

extern "C" {
int cudaMalloc(void** memory, size_t bytes);
int cudaFree(void* memory);
int cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream);
int cudaFreeAsync(void* memory, cudaStream_t stream);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, cudaStream_t stream);
int cudaStreamCreate(cudaStream_t* stream);
int cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
int cudaStreamSynchronize(cudaStream_t stream);
int cudaStreamDestroy(cudaStream_t stream);
}

namespace samples {

constexpr int to_device = 1;
constexpr int to_host = 2;

/// Ends the program with a line where a call failed.
#define NEED(call)                                                                                 \
    do {                                                                                           \
        if (!(call)) {                                                                             \
            std::fprintf(stderr, "failed: %s\n", #call);                                           \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

class Logger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const char* text) noexcept override {
        if (severity <= Severity::kWARNING) {
            std::fprintf(stderr, "%s\n", text);
        }
    }
};

class Stream {
public:
    Stream() { NEED(cudaStreamCreateWithFlags(&stream_, 1) == 0); } // does not wait for stream 0
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

/// Bytes on the device.
class Buffer {
public:
    explicit Buffer(size_t bytes) : bytes_(bytes) { NEED(cudaMalloc(&memory_, bytes) == 0); }
    ~Buffer() { cudaFree(memory_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    template <class T>
    void write(const std::vector<T>& from) {
        NEED(from.size() * sizeof(T) <= bytes_);
        NEED(cudaMemcpy(memory_, from.data(), from.size() * sizeof(T), to_device) == 0);
    }
    template <class T>
    std::vector<T> read() const {
        std::vector<T> out(bytes_ / sizeof(T));
        NEED(cudaMemcpy(out.data(), memory_, out.size() * sizeof(T), to_host) == 0);
        return out;
    }
    void* get() const { return memory_; }

private:
    void* memory_ = nullptr;
    size_t bytes_;
};

inline int64_t volume(const nvinfer1::Dims& dims) {
    return std::accumulate(dims.d, dims.d + dims.nbDims, int64_t{1}, std::multiplies<int64_t>());
}

inline std::vector<float> read_floats(const char* path) {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::vector<float> out(bytes.size() / sizeof(float));
    NEED(!out.empty());
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(out.data()));
    return out;
}

inline void print(const char* name, const std::vector<float>& values) {
    std::printf("%s:", name);
    for (float v : values) {
        std::printf(" %g", v);
    }
    std::printf("\n");
}

/// Prints the class of the highest score.
inline void print_class(const std::vector<float>& scores) {
    auto best = std::max_element(scores.begin(), scores.end());
    std::printf("class %d\n", static_cast<int>(best - scores.begin()));
}

/// Prints the class and its probability, of scores before a softmax.
inline void print_prediction(std::vector<float> scores) {
    for (float& s : scores) {
        s = std::exp(s);
    }
    float sum = std::accumulate(scores.begin(), scores.end(), 0.0F);
    std::printf("probability %.3f\n", *std::max_element(scores.begin(), scores.end()) / sum);
    print_class(scores);
}

/// The range of every tensor; the digits model's values are below it.
constexpr float range = 12.7F;

inline void set_all_ranges(nvinfer1::INetworkDefinition& network) {
    for (int32_t i = 0; i < network.getNbInputs(); ++i) {
        NEED(network.getInput(i)->setDynamicRange(-range, range));
    }
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        nvinfer1::ILayer* layer = network.getLayer(i);
        for (int32_t k = 0; k < layer->getNbOutputs(); ++k) {
            NEED(layer->getOutput(k)->setDynamicRange(-range, range));
        }
    }
}

} // namespace samples
