// SPDX-License-Identifier: Apache-2.0
// Engines built from ONNX models at load, kept for the next load: files beside the compiled
// kernels, by content. Nothing here fails a load; a problem is one warning in the server's log.
#pragma once

#include "base/file.h"
#include "plugins/triton/host.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot::triton {

/// How the configuration wants an ONNX model built.
struct BuildChoices {
    bool fp16 = false; // computes in FP16 where that is safe
    bool batch_invariant = false;
    std::vector<std::string> optional_inputs = {}; // that requests may leave out
};

/// One engine's place among the kept ones. Safe from any thread of any process.
class BuiltModel {
public:
    /// `path`: the ONNX file. The key covers every file in its folder, which has its weights, the
    /// choices of the build, and the release of Ingot. Reads all of them.
    BuiltModel(const std::string& path, const BuildChoices& choices);

    /// Whether both have the same key, so that nothing has changed between them.
    bool operator==(const BuiltModel&) const = default;

    /// The engine's bytes, whole and those that were kept under this key; none otherwise. The file
    /// counts as used.
    struct Kept {
        std::shared_ptr<const MappedFile> file;
        std::span<const std::byte> engine;
    };
    std::optional<Kept> find() const;
    /// Writes the file in one step, and removes those that were used least recently until all
    /// take at most `kept_bytes`.
    void keep(std::span<const std::byte> engine) const;

    static constexpr int64_t kept_bytes = int64_t{4} << 30;

private:
    std::string folder_; // "": nothing is kept
    std::string key_;    // 64 hex digits

    std::string path() const;
};

/// The limit of all kept engines, in place of BuiltModel::kept_bytes, for tests.
void set_limit_of_built_models(int64_t bytes);

} // namespace ingot::triton
