// SPDX-License-Identifier: Apache-2.0
// Builds engines from ONNX models and loads them from bytes: Ingot's public API with exceptions for
// errors.
#pragma once

#include "NvInfer.h"
#include "ingot.h"
#include "plugins/common/engine_trust.h"
#include "plugins/onnxruntime/log.h"
#include "plugins/onnxruntime/onnx_model.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/profiles.h"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ingot::ort {

/// The device of an engine: a GPU by its CUDA ordinal, or the CPU.
struct Target {
    Device device = Device::kCPU;
    int32_t ordinal = 0;
};

struct BuildRequest {
    Target target;
    const Options* options = nullptr;
    std::vector<ShapeProfile> profiles; // none: any shape
    bool kernels_ahead = true;          // for the GPUs in nv_target_sm
    bool without_weights = false;
    /// With without_weights: leave out only the weights with these names; null: all possible ones.
    const std::set<std::string>* left_out = nullptr;
};
using EngineBytes = std::unique_ptr<nvinfer1::IHostMemory>;

/// A loaded engine, with the objects that it needs.
struct LoadedEngine {
    std::shared_ptr<ApiLogger> logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime; // null for an engine that was built
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
};

/// The engine of a model as bytes. `what` names it in messages. Errors: Unsupported with the reason
/// of every node, InvalidArgument for profiles that do not fit.
EngineBytes build_engine(const OnnxModel& model, const BuildRequest& request,
                         const std::shared_ptr<ApiLogger>& logger, const std::string& what);
/// The same as a file, which is written whole or not at all. Errors: Io too.
void build_engine_file(const OnnxModel& model, const BuildRequest& request, const std::string& path,
                       const std::shared_ptr<ApiLogger>& logger, const std::string& what);
/// The same, to run at once on the request's device.
LoadedEngine build_loaded_engine(const OnnxModel& model, const BuildRequest& request,
                                 const std::shared_ptr<ApiLogger>& logger, const std::string& what);

/// For each node of the model, "" or the reason why Ingot does not run it. A result of an
/// unsupported node gets the type in the model, so that later nodes can be judged.
std::vector<std::string> claim_nodes(const OnnxModel& model, size_t node_count,
                                     const std::shared_ptr<ApiLogger>& logger);

/// A copy of an engine, signed by a private key in PEM. Errors: InvalidArgument.
EngineBytes sign_engine(std::span<const std::byte> engine, const std::string& private_key,
                        ApiLogger& logger);

/// Bytes of an engine, and the file that they are mapped from, if any.
struct EngineContent {
    std::span<const std::byte> bytes;
    std::string folder, file; // beneath the folder; "": none
    std::string digest;       // engine_digest() of the bytes
};
/// The identity of an engine, from its first bytes (ingot::engineDigest()); "" when they are no
/// engine's.
std::string engine_digest(std::span<const std::byte> bytes);
EngineContent content_of(const EngineBytes& engine);
/// Errors: InvalidEngine; InvalidArgument for malformed keys.
LoadedEngine load_engine(const EngineContent& content, const Target& target,
                         const EngineTrust& trust, const std::shared_ptr<ApiLogger>& logger,
                         const std::string& what);

/// Names of the weights that an engine was written without and has not got since.
std::vector<std::string> missing_weights(const LoadedEngine& engine);
/// Gives an engine the weights that it was written without; their values are taken as they are.
/// Errors: InvalidEngine for other types or shapes than its own.
void give_weights(const LoadedEngine& engine,
                  const std::map<std::string, TensorView, std::less<>>& weights,
                  const std::string& what);

} // namespace ingot::ort
