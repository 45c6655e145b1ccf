// SPDX-License-Identifier: Apache-2.0
// IRefitter over an EngineState: keeps the weights that were set, by name, until the refit.
#pragma once

#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/engine_state.h"

#include <map>
#include <string>

namespace ingot::api {

class Refitter final : public nvinfer1::IRefitter {
public:
    /// Errors: InvalidArgument for an engine that is not refittable.
    Refitter(std::shared_ptr<EngineState> state, const Report& report);
    ~Refitter() noexcept override = default;

    const Engine& engine() const { return state_->engine(); }
    /// Weights of a model, which this object keeps alive. Errors: InvalidArgument.
    void set(const NamedTensors& weights);

    bool setWeights(const char* layer_name, nvinfer1::WeightsRole role,
                    nvinfer1::Weights weights) noexcept override;
    bool refitCudaEngine() noexcept override;
    int32_t getMissing(int32_t size, const char** layer_names,
                       nvinfer1::WeightsRole* roles) noexcept override;
    int32_t getAll(int32_t size, const char** layer_names,
                   nvinfer1::WeightsRole* roles) noexcept override;
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override {
        report_.set_recorder(recorder);
    }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override {
        return report_.recorder();
    }
    bool setNamedWeights(const char* name, nvinfer1::Weights weights) noexcept override;
    bool setNamedWeights(const char* name, nvinfer1::Weights weights,
                         nvinfer1::TensorLocation location) noexcept override;
    int32_t getMissingWeights(int32_t size, const char** weights_names) noexcept override;
    int32_t getAllWeights(int32_t size, const char** weights_names) noexcept override;
    nvinfer1::ILogger* getLogger() const noexcept override { return report_.logger(); }
    bool setMaxThreads(int32_t max_threads) noexcept override;
    int32_t getMaxThreads() const noexcept override { return max_threads_; }
    nvinfer1::Weights getNamedWeights(const char* weights_name) const noexcept override;
    nvinfer1::TensorLocation getWeightsLocation(const char* weights_name) const noexcept override;
    bool unsetNamedWeights(const char* weights_name) noexcept override;
    void setWeightsValidation(bool validates) noexcept override { validates_ = validates; }
    bool getWeightsValidation() const noexcept override { return validates_; }
    bool refitCudaEngineAsync(cudaStream_t stream) noexcept override;
    nvinfer1::Weights getWeightsPrototype(const char* weights_name) const noexcept override;
    bool releaseRefitResources() noexcept override;

private:
    /// Values in the caller's memory, or a tensor that is kept here.
    struct Given {
        nvinfer1::Weights weights{};
        nvinfer1::TensorLocation location = nvinfer1::TensorLocation::kHOST;
        Tensor tensor;
        bool is_in_engine = false; // the refit has taken it
    };
    const RefitSource& source() const { return *state_->engine().source(); }
    /// Everything that can be replaced: weights, then defaults of inputs.
    std::vector<const Weight*> all() const;
    const Weight& find(const char* name) const;
    const Weight& find(const char* layer, nvinfer1::WeightsRole role) const;
    void set(const Weight& w, const nvinfer1::Weights& weights, nvinfer1::TensorLocation location);
    Tensor tensor_of(const Weight& w, const Given& given, cudaStream_t stream) const;
    std::vector<const Weight*> missing() const;
    bool refit(const char* method, cudaStream_t stream) noexcept;

    std::shared_ptr<EngineState> state_;
    Report report_;
    std::vector<Weight> defaults_; // of optional inputs
    std::map<std::string, Given, std::less<>> given_;
    int32_t max_threads_ = 1;
    bool validates_ = true;
};

} // namespace ingot::api
