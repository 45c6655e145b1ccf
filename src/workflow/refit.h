// SPDX-License-Identifier: Apache-2.0
// New weights for an engine: the AOT passes run again over the graph that it keeps, so that the
// result is, bit for bit, the engine that a build from the new weights would have given (ADR 0009).
#pragma once

#include "engine/engine.h"
#include "passes/pipeline.h"

namespace ingot {

namespace onnx {
struct Model;
} // namespace onnx

/// How the passes run for a build, and again for a refit.
PipelineOptions pipeline_options(DType precision, const std::vector<std::string>& disabled);

/// The engine with these weights in place of those of their names; the others stay. The tensors are
/// copied. Errors: InvalidArgument for an engine that cannot be refitted, for unknown names, wrong
/// types and shapes, weights that are still missing, and, where `validate` is set and the engine
/// was built for identical weights, for others than those. Weights are compared and copied by
/// `threads` threads, the caller's among them; the passes run on one.
std::shared_ptr<const Engine> refitted(const Engine& engine, const NamedTensors& weights,
                                       bool validate = true, int threads = 1);
/// Names of the weights that have to be given because the engine lacks them.
std::vector<std::string> missing_weights(const RefitSource& source, const NamedTensors& given);

/// For messages: the first of the names.
std::string listed_weights(const std::vector<std::string>& names);
/// Errors: InvalidArgument for another type or shape.
void check_weight(const Weight& w, const Tensor& t);

/// The weights of an engine as a model has them: initializers and Constant nodes, in bodies too.
/// Errors: InvalidArgument when the model lacks some, has others of their names' types or shapes,
/// or differs in a constant that shaped the engine.
NamedTensors weights_of_model(const RefitSource& source, const onnx::Model& model);

} // namespace ingot
