// SPDX-License-Identifier: Apache-2.0
// OnnxModel: nodes of ONNX Runtime's graph as an ONNX model for Ingot's parser. Large constants
// stay in ONNX Runtime's memory.
#pragma once

#include "plugins/onnxruntime/graph.h"

#include <map>
#include <set>
#include <span>
#include <string>

namespace ingot::ort {

/// The place of a constant outside the model file.
struct ExternalPlace {
    std::string file; // as the model names it
    uint64_t offset = 0;
};

struct OnnxModel {
    std::string bytes; // of a ModelProto
    /// Initializers without data in `bytes`; they belong to the source graph.
    std::map<std::string, TensorView, std::less<>> weights;
    /// Files of external constants, by name.
    std::map<std::string, ExternalPlace, std::less<>> external;
    /// Those of `weights` that `bytes` names as data of files beside the source model.
    std::set<std::string, std::less<>> in_files;
    std::string path; // of the source model, with in_files
    /// The model's inputs by name, in the order of first use.
    std::vector<std::string> inputs;
};

struct OnnxModelRequest {
    std::span<const OrtNode* const> nodes; // in execution order
    std::vector<const OrtValueInfo*> outputs;
    bool value_types = false; // add the type of every value
    /// Put all constants into the bytes: for a file for other programs.
    bool self_contained = false;
    /// Name the files of external constants, whose data need not outlive the graph then.
    bool name_files = false;
};
/// Values that the nodes read but do not compute become inputs, unless they are constants. Errors:
/// Unsupported naming node and attribute.
OnnxModel onnx_model(const Host& host, const OrtGraph* graph, const OnnxModelRequest& request);

/// A model that has only initializers, with their data beside it.
OnnxModel model_of_tensors(const std::map<std::string, TensorView, std::less<>>& tensors);

} // namespace ingot::ort
