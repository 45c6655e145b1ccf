// SPDX-License-Identifier: Apache-2.0
// From an ONNX model to an engine, and from its bytes to one that runs: Ingot's public API with its
// errors as exceptions.
#pragma once

#include "NvInfer.h"
#include "ingot.h"
#include "plugins/onnxruntime/log.h"
#include "plugins/onnxruntime/onnx_model.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/profiles.h"

#include <memory>
#include <string>
#include <vector>

namespace ingot::ort {

/// Where engines run: a GPU by its CUDA ordinal, or the CPU.
struct Target {
    Device device = Device::kCPU;
    int32_t ordinal = 0;
};

struct BuildRequest {
    Target target;
    const Options* options = nullptr;
    std::vector<ShapeProfile> profiles; // none: any shape
    bool kernels_ahead = true;          // for the GPUs that nv_target_sm names
};
using EngineBytes = std::unique_ptr<nvinfer1::IHostMemory>;

/// The engine of a model as bytes. `what` names it in messages. Errors: Unsupported with the reason
/// of every node, InvalidArgument for profiles that do not fit.
EngineBytes build_engine(const OnnxModel& model, const BuildRequest& request,
                         const std::shared_ptr<ApiLogger>& logger, const std::string& what);

/// For each node of the model, "" or why Ingot does not run it. A result of a node that is not
/// supported has the type that the model says, so that nodes behind it can be judged.
std::vector<std::string> claim_nodes(const OnnxModel& model, size_t node_count,
                                     const std::shared_ptr<ApiLogger>& logger);

/// An engine that is ready to make contexts, with what it needs to live.
struct LoadedEngine {
    std::shared_ptr<ApiLogger> logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
};
/// Errors: InvalidEngine.
LoadedEngine load_engine(const void* bytes, size_t size, const Target& target,
                         const std::shared_ptr<ApiLogger>& logger, const std::string& what);

} // namespace ingot::ort
