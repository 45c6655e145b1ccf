// SPDX-License-Identifier: Apache-2.0
// What an engine keeps so that its weights can be replaced (ADR 0009): the graph as it was before
// the AOT passes, whose constants have names, and how the passes ran.
#pragma once

#include "ir/graph.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ingot {

/// A layer that uses weights, and what for: the number of an nvinfer1::WeightsRole.
struct WeightUse {
    std::string layer;
    int32_t role = 0;
    bool operator==(const WeightUse&) const = default;
};

struct Weight {
    std::string name;
    DType dtype = DType::F32;
    Shape shape;
    std::string hash; // of its bytes at the build
    std::vector<WeightUse> uses;

    int64_t bytes() const { return byte_size(dtype, count_of(shape)); }
};

struct RefitSource {
    /// Before the AOT passes. Constants of weights have their names, in bodies too.
    std::shared_ptr<const Graph> graph;
    std::vector<Weight> weights; // those that can be replaced, in the order of the graph
    /// Hashes of the named constants that cannot, because they shaped the graph or were not asked
    /// for; "" where a name stands for several.
    std::map<std::string, std::string, std::less<>> fixed;
    bool identical = false; // weights must be those of the build
    bool stripped = false;  // built to be written without weights
    bool missing = false;   // it was written so, and has not been refitted since
    DType precision = DType::F32;
    std::vector<std::string> disabled_passes;

    const Weight* find(std::string_view name) const;
    /// Of all weights together.
    int64_t bytes() const;
};

/// What a build is asked to make refittable.
struct RefitRequest {
    bool identical = false;
    bool stripped = false;
    /// Only these names; all when `only_named` is false.
    bool only_named = false;
    std::set<std::string, std::less<>> named;
    /// Constants whose elements were looked at while the graph was made (ir/value_reads.h).
    std::set<std::string, std::less<>> read;
    /// Layers and roles by name; a name that is missing is the constant of a layer of its name.
    std::map<std::string, std::vector<WeightUse>, std::less<>> uses;
};
/// Errors: InvalidArgument when a name asked for cannot be replaced.
RefitSource refit_source(const Graph& g, const RefitRequest& request);

/// A hash of a tensor's bytes, as text.
std::string weight_hash(const Tensor& t);
using NamedTensors = std::map<std::string, Tensor, std::less<>>;
/// The graph with other values for the constants of these names.
Graph with_constants(const Graph& g, const NamedTensors& values);
/// The constants of these names that the graph has.
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
/// The source without its weights; the optimised graph without what was made of them.
Graph without_weights(const RefitSource& source, AbsentTensors& absent);
Graph without_weights(const Graph& optimised, AbsentTensors& absent);

/// Set in the metadata of an engine whose weights may be streamed.
inline constexpr const char* streaming_property = "weight_streaming";
/// Bytes of the constants that can be: those of plan/backend.h's streamable_bytes and more.
int64_t streamable_weight_bytes(const Graph& g);

/// All but the graph, as text.
std::string to_json_text(const RefitSource& source, bool missing);
/// Errors: InvalidEngine for a type, InvalidArgument for the text.
RefitSource refit_source_from_json(std::string_view text);

} // namespace ingot
