// SPDX-License-Identifier: Apache-2.0
// Additions of ingot.h.
#include "ingot.h"

#include <cstring>
#include <memory>

namespace {

class Samples : public ingot::IInt8MseCalibrator {
public:
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void*[], const char*[], int32_t) noexcept override { return false; }
    const void* readCalibrationCache(std::size_t&) noexcept override { return nullptr; }
    void writeCalibrationCache(const void*, std::size_t) noexcept override {}
};

const char* const row_sum = R"(
extern "C" __global__ void row_sum(const float* x, float* y, long long n, long long m) {
    long long row = blockIdx.x * 256LL + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (long long i = 0; i < m; ++i) sum += x[row * m + i];
    y[row] = sum;
}
)";

} // namespace

nvinfer1::ITensor* add_row_sum(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor& x);
nvinfer1::ITensor* add_row_sum(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor& x) {
    ingot::CudaSource const source{
        "RowSum",           row_sum, "row_sum", "float32[n, m] -> float32[n]", "n, m",
        "ceil_div(n, 256)", "256",   nullptr};
    nvinfer1::ITensor* const inputs[] = {&x};
    nvinfer1::ILayer* const layer = ingot::addCudaSourceLayer(network, inputs, 1, source);
    return layer != nullptr ? layer->getOutput(0) : nullptr;
}

bool choose(nvinfer1::IBuilderConfig& config, nvinfer1::IRuntime& runtime,
            const nvinfer1::ICudaEngine& engine);
bool choose(nvinfer1::IBuilderConfig& config, nvinfer1::IRuntime& runtime,
            const nvinfer1::ICudaEngine& engine) {
    return ingot::setDevice(config, ingot::Device::kCPU) &&
           ingot::setDevice(runtime, ingot::Device::kGPU, 1) &&
           ingot::getDevice(engine) == ingot::Device::kGPU && ingot::setCacheFolder("cache") &&
           std::strcmp(ingot::getCacheFolder(), "cache") == 0;
}

bool give_way(nvinfer1::ICudaEngine& engine);
bool give_way(nvinfer1::ICudaEngine& engine) {
    const std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine.createRuntimeConfig());
    return ingot::setPriority(*config, ingot::Priority::kLOW) &&
           ingot::getPriority(*config) == ingot::Priority::kLOW;
}

bool share_graphs(nvinfer1::IRuntimeConfig& one, nvinfer1::IRuntimeConfig& other);
bool share_graphs(nvinfer1::IRuntimeConfig& one, nvinfer1::IRuntimeConfig& other) {
    return ingot::setGraphLimit(one, 8) && ingot::setGraphLimit(other, 8, &one) &&
           ingot::setRecordFirstRun(one, true) && ingot::countGraphs(one) == 0 &&
           ingot::getCompilerProblem(90) == nullptr;
}

int main() {
    Samples samples;
    return samples.getAlgorithm() == ingot::kMSE_CALIBRATION && std::strlen(ingot::version()) > 0
               ? 0
               : 1;
}
