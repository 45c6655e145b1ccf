// SPDX-License-Identifier: Apache-2.0
// FilesBeside: constants that the host has mapped from files beside the model, to be mapped again
// from there.
#pragma once

#include "plugins/onnxruntime/onnx_model.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ingot::ort {

/// Reads what is mapped in this process now.
class FilesBeside {
public:
    explicit FilesBeside(const std::string& model_path);
    /// The place of a constant's bytes, relative to the model's folder. nullopt unless they are
    /// this place of that file in memory: the application may have given other values, or the host
    /// may have read the file.
    std::optional<ExternalPlace> find(const ExternalPlace& place, const TensorView& t);

private:
    using FileNumber = std::pair<uint64_t, uint64_t>; // device and inode; zeros: none
    struct Map {
        uintptr_t begin = 0;
        uintptr_t end = 0;
        uint64_t offset = 0;
        uint64_t device = 0;
        uint64_t file = 0; // its inode
    };
    FileNumber number_of(const std::string& file) const;
    std::string folder_;
    std::vector<Map> maps_;
    std::map<std::string, FileNumber> numbers_; // by name
};

} // namespace ingot::ort
