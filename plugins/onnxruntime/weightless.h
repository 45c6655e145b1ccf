// SPDX-License-Identifier: Apache-2.0
// Compiled models without weights: the table of the tensors that an engine lacks, in its EPContext
// node, and the search for them in the source model or its data files. The digest identifies a
// tensor; its name and place are only the first to try.
#pragma once

#include "base/file.h"
#include "plugins/onnxruntime/engine.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ingot::ort {

/// Constants by name.
using Constants = std::map<std::string, TensorView, std::less<>>;
/// Those of a model that was made for the parser; they live as long as it and its graph.
class ModelConstants {
public:
    ModelConstants(const OnnxModel& model, ApiLogger& logger);
    const Constants& all() const { return all_; }

private:
    Constants all_;
    std::deque<std::string> copies_;
};

struct LeftOutWeight {
    std::string name;
    std::string digest; // digest_of() its bytes
    size_t bytes = 0;
    // A file beneath the source model's folder, "" for data inside the model.
    std::string file;
    uint64_t offset = 0;
    int32_t element = 0; // TensorProto.DataType
    std::vector<int64_t> dims;
};
using LeftOut = std::vector<LeftOutWeight>;
std::string to_json_text(const LeftOut& weights);
/// Errors: InvalidEngine.
LeftOut left_out_from_json(const std::string& text);
/// The identity of a tensor's bytes: "xxh3=<32 hex digits> bytes=<n>".
std::string digest_of(std::span<const std::byte> bytes);

/// The places of a source model and its data files.
struct SourcePlaces {
    std::span<const std::byte> buffer; // the model itself, if the application gave it
    std::vector<std::string> models;   // paths, in the order of the search
    std::vector<std::string> folders;  // of data files
};

/// The weights that compiled models do not hold.
enum class Weightless : uint8_t { None, ExternalOnly, All };
struct StrippedEngine {
    EngineBytes bytes;
    LeftOut left_out;
};
/// An engine without the weights that the search will find again: those that the source model has
/// as they are, or, without a source model to look at, all. `model_path` is the source model's.
/// Errors: as build_engine().
StrippedEngine build_without_weights(const OnnxModel& model, BuildRequest request, Weightless which,
                                     const SourcePlaces& places, const std::string& model_path,
                                     const std::shared_ptr<ApiLogger>& logger,
                                     const std::string& what);

/// Digests of all constants of the source model. nullopt: there is no such model to look at.
std::optional<std::set<std::string>> source_digests(const SourcePlaces& places, ApiLogger& logger);

/// Tensors and what keeps them in memory.
struct FoundWeights {
    Constants tensors;
    std::vector<std::shared_ptr<const void>> owners;
};
/// Errors: InvalidModel naming the first weights that are missing or changed, and the places that
/// were searched.
FoundWeights find_weights(const LeftOut& weights, const SourcePlaces& places, ApiLogger& logger);

/// Gives an engine the weights of these names, which its table `left_out` describes.
/// Errors: InvalidEngine for a table that lacks one; as find_weights() and give_weights().
void restore_weights(const LoadedEngine& engine, const std::vector<std::string>& names,
                     const std::string& left_out, const SourcePlaces& places,
                     const std::string& what);

} // namespace ingot::ort
