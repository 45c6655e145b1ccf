// SPDX-License-Identifier: Apache-2.0
// IRefitter: new weights for an engine. Included by NvInferRuntime.h.
#pragma once

#include "ingot/runtime_types.h"

namespace nvinfer1 {

/// Replaces weights of an engine that was built with kREFIT, kREFIT_IDENTICAL, kREFIT_INDIVIDUAL
/// or kSTRIP_PLAN. Weights are named as in the network (setWeightsName(), else "<layer>.kernel",
/// ".bias", ".shift", ".scale", ".power" or ".constant") or the ONNX file (initializers, outputs of
/// Constant nodes). Constants from which the network's shapes were made are not among them.
///
/// After a refit the engine is the one that a build from the new weights would have given, bit for
/// bit; contexts made before run with the new weights from their next run on.
///
/// Lifetime: made by createInferRefitter(), deleted by the caller; it keeps the engine's content
/// alive. Weights that are set stay the application's and must live until the refit has ended.
/// Thread safety: one thread at a time; no run and no other refitter of the engine meanwhile.
/// Errors: unknown names, wrong types and counts are reported with found and expected.
class IRefitter : public INoCopy {
public:
    virtual ~IRefitter() noexcept = default;

    /// By layer and role. Returns false for an unknown pair or a wrong type or count.
    virtual bool setWeights(const char* layerName, WeightsRole role,
                            const Weights weights) noexcept = 0;
    /// Puts the weights that were set into the engine; the others stay. Returns false, and changes
    /// nothing, when weights are missing that the engine was written without, or when those of a
    /// kREFIT_IDENTICAL engine differ. No run of the engine goes on meanwhile.
    virtual bool refitCudaEngine() noexcept = 0;
    /// Weights that the engine was written without and that are not set yet: up to `size` of them
    /// by layer and role; the arrays may be nullptr. Returns how many there are.
    virtual int32_t getMissing(int32_t size, const char** layerNames,
                               WeightsRole* roles) noexcept = 0;
    /// All weights that can be refitted, as getMissing().
    virtual int32_t getAll(int32_t size, const char** layerNames, WeightsRole* roles) noexcept = 0;
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
    /// By name, in host memory. Returns false for an unknown name or a wrong type or count.
    virtual bool setNamedWeights(const char* name, Weights weights) noexcept = 0;
    /// The same; kDEVICE for weights in device memory.
    virtual bool setNamedWeights(const char* name, Weights weights,
                                 TensorLocation location) noexcept = 0;
    /// Names of the weights that getMissing() tells: up to `size`. Returns how many there are.
    virtual int32_t getMissingWeights(int32_t size, const char** weightsNames) noexcept = 0;
    /// Names of all weights that can be refitted.
    virtual int32_t getAllWeights(int32_t size, const char** weightsNames) noexcept = 0;
    virtual ILogger* getLogger() const noexcept = 0;
    /// Most threads of the host, the caller's included, that compare and copy weights in a refit.
    /// Default 1. Returns false for less than 1.
    virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
    virtual int32_t getMaxThreads() const noexcept = 0;
    /// The weights set under this name; {kFLOAT, nullptr, 0} for none.
    virtual Weights getNamedWeights(const char* weightsName) const noexcept = 0;
    virtual TensorLocation getWeightsLocation(const char* weightsName) const noexcept = 0;
    /// Forgets what was set. Returns false when nothing was.
    virtual bool unsetNamedWeights(const char* weightsName) noexcept = 0;
    /// Whether values are compared and checked (kREFIT_IDENTICAL). Default true.
    virtual void setWeightsValidation(bool weightsValidation) noexcept = 0;
    virtual bool getWeightsValidation() const noexcept = 0;
    /// As refitCudaEngine(); weights in device memory are read after what `stream` holds. The refit
    /// has ended when it returns.
    virtual bool refitCudaEngineAsync(cudaStream_t stream) noexcept = 0;
    /// Type and count that weights of this name must have; values is nullptr.
    virtual Weights getWeightsPrototype(const char* weightsName) const noexcept = 0;
    /// Frees the copies of weights that this refitter keeps and that a refit has put into the
    /// engine: those that IParserRefitter read from a model. A later refit leaves these weights as
    /// the engine has them. Weights that were set and not refitted since stay set. Returns true.
    virtual bool releaseRefitResources() noexcept = 0;
};

} // namespace nvinfer1
