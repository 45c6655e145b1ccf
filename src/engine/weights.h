// SPDX-License-Identifier: Apache-2.0
// The data that an engine keeps to replace its weights (ADR 0009): the graph before the AOT passes,
// whose constants have names, and the options of the passes.
#pragma once

#include "ir/graph.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ingot {

/// A layer that uses weights, and their role: the number of an nvinfer1::WeightsRole.
struct WeightUse {
    std::string layer;
    int32_t role = 0;
    bool operator==(const WeightUse&) const = default;
};

struct Weight {
    std::string name;
    DType dtype = DType::F32;
    Shape shape;
    std::string hash; // of its bytes at build time
    std::vector<WeightUse> uses;

    int64_t bytes() const { return byte_size(dtype, count_of(shape)); }
};

struct RefitSource {
    /// The graph before the AOT passes. Weights keep their names, in bodies too.
    std::shared_ptr<const Graph> graph;
    std::vector<Weight> weights; // the replaceable weights, in graph order
    /// Hashes of the named constants that cannot be replaced, because they shaped the graph or were
    /// not requested; "" when several share a name.
    std::map<std::string, std::string, std::less<>> fixed;
    bool identical = false; // refits must bring the weights of the build
    bool stripped = false;  // built to be written without weights
    bool missing = false;   // written without weights and not refitted since
    DType precision = DType::F32;
    std::vector<std::string> disabled_passes;

    const Weight* find(std::string_view name) const;
    /// The total over all weights.
    int64_t bytes() const;
};

/// Which weights a build makes refittable.
struct RefitRequest {
    bool identical = false;
    bool stripped = false;
    /// Only these names; all when `only_named` is false.
    bool only_named = false;
    std::set<std::string, std::less<>> named;
    /// Constants whose elements were read while the graph was built (ir/value_reads.h).
    std::set<std::string, std::less<>> read;
    /// Layers and roles by name; a missing name denotes the constant of a layer of the same name.
    std::map<std::string, std::vector<WeightUse>, std::less<>> uses;
};
/// Errors: InvalidArgument when a requested name cannot be replaced.
RefitSource refit_source(const Graph& g, const RefitRequest& request);

/// A hash of a tensor's bytes, as text.
std::string weight_hash(const Tensor& t);
using NamedTensors = std::map<std::string, Tensor, std::less<>>;
/// The graph with new values for the constants with these names.
Graph with_constants(const Graph& g, const NamedTensors& values);
/// The named constants of the graph.
NamedTensors named_constants(const Graph& g);

/// Tensors without values, which read as zeros and take no memory.
class AbsentTensors {
public:
    Tensor make(DType dtype, const Shape& shape);
    bool has(const Tensor& t) const;

private:
    std::map<const void*, std::shared_ptr<void>> blocks_;
    size_t bytes_ = 0;
    std::byte* zeros_ = nullptr;
};
/// The source without its weights; also the optimised graph without constants derived from them.
Graph without_weights(const RefitSource& source, AbsentTensors& absent);
Graph without_weights(const Graph& optimised, AbsentTensors& absent);

/// Set in the metadata of an engine whose weights may be streamed.
inline constexpr const char* streaming_property = "weight_streaming";
/// Bytes of the streamable constants: those of streamable_bytes (plan/device_parts.h) and more.
int64_t streamable_weight_bytes(const Graph& g);

/// Everything except the graph, as text.
std::string to_json_text(const RefitSource& source, bool missing);
/// Errors: InvalidEngine for a type, InvalidArgument for the text.
RefitSource refit_source_from_json(std::string_view text);

} // namespace ingot
