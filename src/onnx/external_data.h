// SPDX-License-Identifier: Apache-2.0
// Tensor data outside the model file: parses TensorProto.external_data and maps the referenced
// files, strictly inside the model's folder.
#pragma once

#include "base/file.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::onnx {

struct ExternalLocation {
    std::string location; // relative to the model's folder
    uint64_t offset = 0;
    std::optional<uint64_t> length;
};

using StringPairs = std::vector<std::pair<std::string, std::string>>;

/// Checks keys and values. Accepts and ignores "checksum" (a SHA-1 that no writer keeps current)
/// and ONNX Runtime's "prepacked..." keys; any other unknown key is an error.
ExternalLocation parse_external(const StringPairs& entries);

/// For all models that this process reads. Set it before.
struct ExternalRules {
    /// Files that are read though a part of their name begins with a dot: locations as models have
    /// them.
    std::vector<std::string> hidden;
    /// Told of each file that a model's data lies in, once for each model; empty: it is logged.
    std::function<void(const std::string& path, uint64_t bytes)> told;
};
void set_external_rules(ExternalRules rules);

/// The external files of one model, each mapped once.
class ExternalFiles {
public:
    /// An empty folder (a model in memory) refuses every location.
    explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

    struct Slice {
        std::span<const std::byte> bytes;
        std::shared_ptr<const MappedFile> file;
    };
    /// The bytes of a tensor whose type and dims need exactly `expected` of them; `what` describes
    /// both in errors.
    Slice map(const ExternalLocation& where, uint64_t expected, std::string_view what);

private:
    std::string folder_;
    std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

} // namespace ingot::onnx
