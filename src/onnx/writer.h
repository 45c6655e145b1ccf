// SPDX-License-Identifier: Apache-2.0
// Writes a Model back as ONNX. Weights are copied from the mapped files to the output without being
// gathered in memory. The same model and options give the same bytes.
#pragma once

#include "onnx/model.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ingot::onnx {

struct WriteOptions {
    /// Initializers of at least this many bytes go to one file beside the model, `<name>.data`,
    /// each at a multiple of 4096. Unset: only when the model would exceed `message_limit`, and
    /// then those of at least 1024 bytes.
    std::optional<uint64_t> external_threshold;
    /// Protobuf libraries cannot read messages above 2 GB.
    uint64_t message_limit = (uint64_t{1} << 31U) - 1;
};

/// Files appear whole or not at all, the data file first. Errors: Io; Unsupported, with the
/// position, for content that the reader does not keep (strings in tensors, type_proto attributes);
/// InvalidArgument when the model exceeds the limit even with external initializers.
void write_model_file(const Model& model, const std::string& path,
                      const WriteOptions& options = {});
/// The whole model as one message in memory, nothing external.
std::string write_model(const Model& model);

} // namespace ingot::onnx
