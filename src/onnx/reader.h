// SPDX-License-Identifier: Apache-2.0
// Reads ONNX files: bounds-checked protobuf wire format, no libprotobuf, no limit of 2 GB. Nothing
// in the file is trusted; memory use is bounded by the bytes present. Every error is an Error
// (InvalidModel; Io for a file that the system refused) that names file, graph, node and field.
#pragma once

#include "onnx/model.h"

#include <memory>
#include <span>
#include <string>

namespace ingot::onnx {

/// The maximum nesting of graphs in attributes, including the outermost.
inline constexpr int max_nesting = 64;
/// The maximum number of dims of a tensor.
inline constexpr int64_t max_rank = 64;

/// Maps and decodes a model; external data is searched in the file's folder.
Model read_model_file(const std::string& path);
/// Decodes a model in memory. Tensors point into `bytes`; `owner` keeps them alive, or is null when
/// the caller does. An empty `folder` refuses external data.
Model read_model(std::span<const std::byte> bytes, std::string folder,
                 std::shared_ptr<const void> owner);
/// The same, but initializers of the main graph may lack their data: `missing` gives the reason,
/// and the caller must supply the bytes before using the model.
Model read_model_without_data(std::span<const std::byte> bytes, std::string folder,
                              std::shared_ptr<const void> owner);

/// A file that holds one TensorProto (the .pb files of test data).
Tensor read_tensor_file(const std::string& path);
/// The same in memory: the tensor points into `bytes`, which the caller keeps alive.
Tensor read_tensor(std::span<const std::byte> bytes);

} // namespace ingot::onnx
