// SPDX-License-Identifier: Apache-2.0
// New weights for an engine: runs the AOT passes again on the graph that it keeps, so that the
// result is, bit for bit, the engine of a build with the new weights (ADR 0009).
#pragma once

#include "engine/engine.h"
#include "passes/pipeline.h"
#include "workflow/half_range.h"

namespace ingot {

namespace onnx {
struct Model;
} // namespace onnx

/// The options of the passes, the same for a build and a refit.
PipelineOptions pipeline_options(DType precision, const std::vector<std::string>& disabled);

/// The passes of a build and of a refit. `find` returns the overflows (half_range.h) among the
/// values that f16 would hold, and is asked once; their nodes keep f32. Empty: none are known.
using FindOverflows =
    std::function<std::vector<Overflow>(const Graph& g, std::span<const Value> narrow)>;
Graph run_build_passes(const Graph& g, const PipelineOptions& options, const FindOverflows& find);
/// The layers that keep f32, in the metadata of an engine: a refit holds the same ones.
void put_f32_layers(std::span<const Overflow> overflows, Properties& metadata);
FindOverflows find_f32_layers(const Properties& metadata);

/// The defaults of an engine's optional inputs, which a refit replaces like weights; a build
/// without weights keeps them.
std::vector<Weight> default_weights(const Engine& engine);
/// The weights of a refittable engine, then those defaults.
std::vector<Weight> replaceable_weights(const Engine& engine);

/// The engine with these weights and defaults replaced by name; the others stay. Copies the
/// tensors. Errors:
/// InvalidArgument for an engine that cannot be refitted, for unknown names, wrong types and
/// shapes, weights that are still missing, and, if `validate` is set and the engine was built for
/// identical weights, for others than those. `threads` threads, including the caller's, compare and
/// copy weights; the passes run on one.
std::shared_ptr<const Engine> refitted(const Engine& engine, const NamedTensors& weights,
                                       bool validate = true, int threads = 1);
/// Names of the weights that the engine lacks and that are not given.
std::vector<std::string> missing_weights(const RefitSource& source, const NamedTensors& given);

/// The first of the names, for messages.
std::string listed_weights(const std::vector<std::string>& names);
/// Errors: InvalidArgument for a wrong type or shape.
void check_weight(const Weight& w, const Tensor& t);

/// The weights of a refittable engine and the defaults of its optional inputs, taken from a model:
/// initializers and Constant nodes, in bodies too. Errors: InvalidArgument when the model lacks
/// some, has others with other types or shapes, or differs in a constant that shaped the engine.
NamedTensors weights_of_model(const Engine& engine, const onnx::Model& model);

} // namespace ingot
