// SPDX-License-Identifier: Apache-2.0
// Recognises handwritten digits through TensorRT's C++ API: parses an ONNX model, builds an engine
// with a profile, runs it on a GPU if there is one (and CUDA was there at build time), else on the
// CPU. Usage: classify FOLDER, which has digits.onnx, held_out_images.npy, held_out_labels.npy.
#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "ingot.h"

#ifdef WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

template <class T>
using Ptr = std::unique_ptr<T>;

class Logger : public nvinfer1::ILogger {
    void log(Severity severity, const char* text) noexcept override {
        if (severity <= Severity::kWARNING) {
            std::fprintf(stderr, "%s\n", text);
        }
    }
};

void require(bool ok, const std::string& what) {
    if (!ok) {
        throw std::runtime_error(what);
    }
}

/// The elements of a .npy file, which are of type T.
template <class T>
std::vector<T> read_npy(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    require(bytes.size() > 10 && bytes.compare(1, 5, "NUMPY") == 0, "cannot read " + path);
    const size_t header =
        static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
    std::vector<T> values((bytes.size() - 10 - header) / sizeof(T));
    std::memcpy(values.data(), bytes.data() + 10 + header, values.size() * sizeof(T));
    return values;
}

/// The engine of an ONNX model for 1 to `batch` pictures at once.
Ptr<nvinfer1::IHostMemory> build(nvinfer1::ILogger& logger, const std::string& model, int batch) {
    Ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    Ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
    Ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    const auto verbosity = static_cast<int32_t>(nvinfer1::ILogger::Severity::kWARNING);
    require(parser->parseFromFile(model.c_str(), verbosity), "cannot parse " + model);

    nvinfer1::IOptimizationProfile* profile = builder->createOptimizationProfile();
    const nvinfer1::Dims4 one{1, 1, 8, 8};
    const nvinfer1::Dims4 all{batch, 1, 8, 8};
    profile->setDimensions("image", nvinfer1::OptProfileSelector::kMIN, one);
    profile->setDimensions("image", nvinfer1::OptProfileSelector::kOPT, all);
    profile->setDimensions("image", nvinfer1::OptProfileSelector::kMAX, all);
    Ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    config->addOptimizationProfile(profile);
    Ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    require(plan != nullptr, "cannot build an engine");
    return plan;
}

/// Memory where the engine runs: the GPU's, or the host's for an engine on the CPU.
class Memory {
public:
    Memory(bool on_gpu, size_t bytes) : on_gpu_(on_gpu) {
        if (!on_gpu) {
            host_.resize(bytes);
            address_ = host_.data();
        }
#ifdef WITH_CUDA
        else {
            require(cudaMalloc(&address_, bytes) == cudaSuccess, "no memory on the GPU");
        }
#endif
    }
    ~Memory() {
#ifdef WITH_CUDA
        if (on_gpu_) {
            cudaFree(address_);
        }
#endif
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void* address() const {
        return address_;
    }
    void write(const void* from, size_t bytes) {
        copy(address_, from, bytes);
    }
    void read(void* to, size_t bytes) const {
        copy(to, address_, bytes);
    }

private:
    void copy(void* to, const void* from, size_t bytes) const {
#ifdef WITH_CUDA
        if (on_gpu_) {
            require(cudaMemcpy(to, from, bytes, cudaMemcpyDefault) == cudaSuccess, "a copy failed");
            return;
        }
#endif
        std::memcpy(to, from, bytes);
    }

    bool on_gpu_;
    void* address_ = nullptr;
    std::vector<char> host_;
};

/// Ten scores for each of `count` pictures of 8x8 values.
std::vector<float> run(nvinfer1::ICudaEngine& engine, const std::vector<float>& images, int count) {
    const bool on_gpu = ingot::getDevice(engine) == ingot::Device::kGPU;
    Ptr<nvinfer1::IExecutionContext> context(engine.createExecutionContext());
    std::vector<float> scores(static_cast<size_t>(count) * 10);
    Memory in(on_gpu, images.size() * sizeof(float));
    Memory out(on_gpu, scores.size() * sizeof(float));
    in.write(images.data(), images.size() * sizeof(float));
    context->setInputShape("image", nvinfer1::Dims4{count, 1, 8, 8});
    context->setTensorAddress("image", in.address());
    context->setTensorAddress("scores", out.address());
    require(context->enqueueV3(nullptr), "the run failed");
    out.read(scores.data(), scores.size() * sizeof(float)); // waits for the default stream
    return scores;
}

int classify(const std::string& folder) {
    Logger logger;
    const auto images = read_npy<float>(folder + "/held_out_images.npy");
    const auto labels = read_npy<uint8_t>(folder + "/held_out_labels.npy");
    const int count = static_cast<int>(labels.size());
    Ptr<nvinfer1::IHostMemory> plan = build(logger, folder + "/digits.onnx", count);
    Ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
#ifndef WITH_CUDA
    ingot::setDevice(*runtime, ingot::Device::kCPU);
#endif
    Ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    require(engine != nullptr, "cannot load the engine");
    const std::vector<float> scores = run(*engine, images, count);
    int correct = 0;
    for (int i = 0; i < count; ++i) {
        const auto row = scores.begin() + i * 10;
        correct += std::max_element(row, row + 10) - row == labels[static_cast<size_t>(i)];
    }
    std::printf("%d of %d digits recognised\n", correct, count);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return classify(argc > 1 ? argv[1] : "examples/digits");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "classify: %s\n", e.what());
        return 1;
    }
}
