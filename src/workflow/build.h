// SPDX-License-Identifier: Apache-2.0
// From model file to engine in memory: import, the AOT passes, profiles.
#pragma once

#include "engine/engine.h"
#include "onnx/importer.h"
#include "workflow/io_formats.h"
#include "workflow/layer_types.h"
#include "workflow/quantization/calibration_cache.h"

#include <functional>
#include <optional>

namespace ingot {

/// INT8 for a model that does not quantise by itself.
struct CalibrationConfig {
    /// Scales of tensors by name (calibrate.h makes them). Without any, a build is refused.
    CalibrationCache cache;
    /// Without scales: take those of a few random inputs, which is logged as a warning. For
    /// measuring speed: results are not to be trusted.
    bool guess_ranges = false;
};

struct BuildConfig {
    std::vector<Profile> profiles;
    /// Makes the engine's profiles from `profiles`, once it is known what the graph's inputs are
    /// (some command lines state values of inputs where others state shapes). May be empty.
    std::function<std::vector<Profile>(const Graph&, std::vector<Profile>)> choose_profiles;
    /// Computes in F16 or BF16 where that is safe; F32 leaves types alone.
    DType precision = DType::F32;
    /// Computes in int8 where the calibration has scales (quantize.h). A model that quantises by
    /// itself needs none and is built as it is.
    std::optional<CalibrationConfig> calibration;
    /// Types and formats of inputs and outputs where they are to differ from the model's, row major
    /// ones (io_types.h).
    std::string input_types;
    std::string output_types;
    /// How inputs and outputs may lie in memory. build_engine() adds what the two lists say.
    AllowedFormats formats;
    LayerTypes layer_types;
    std::vector<std::string> disabled_passes;
    /// Lets weights be replaced later (refit.h). What the model's import looked at is added to it.
    std::optional<RefitRequest> refit;
    /// A part of the weights may stay on the host (CompileOptions::weight_budget).
    bool weight_streaming = false;
    /// Tensors of the model that are to be outputs behind its own, for debugging
    /// (Engine::result_count); its inputs and outputs are left out. Needs keep_names.
    std::vector<std::string> debug_tensors;
    /// Keep ONNX tensor names on values.
    bool keep_names = false;
    /// Makes the graph of a model in the importer's place; may be empty.
    std::function<Graph(const onnx::Model&, const BuildConfig&)> import;
    /// Called as the build proceeds: phase name, fraction done. May be empty.
    std::function<void(std::string_view phase, double fraction)> progress;
    /// Called with the graph after import ("import") and after each pass. May be empty.
    std::function<void(std::string_view pass, const Graph&)> after_pass;
};

/// Errors: Io, InvalidModel, Unsupported (all refused nodes), InvalidArgument (profiles, passes,
/// calibration).
std::shared_ptr<const Engine> build_engine(const std::string& model_path,
                                           const BuildConfig& config);
/// The engine of a graph as the importer, or a network, made it; input and output types and
/// calibration are not its matter. `properties` go to the engine's metadata. Errors: as above.
std::shared_ptr<const Engine> build_engine_from_graph(Graph g, Properties properties,
                                                      const BuildConfig& config);
/// The metadata that a model gives its engine.
Properties model_properties(const onnx::Model& model);
/// The engine with kernels for GPUs of these compute capabilities (90 for 9.0), compiled for the
/// opt shapes of its profiles, or its own where all sizes are known. Needs NVRTC, no GPU. Errors:
/// InvalidArgument when a size is not known.
std::shared_ptr<const Engine> with_kernels_ahead(const Engine& engine,
                                                 std::span<const int> capabilities,
                                                 const CompileOptions& options);
/// The kernels that with_kernels_ahead would compile.
std::vector<KernelUse> list_kernels(const Engine& engine, int capability,
                                    const CompileOptions& options);
/// An engine file or an ONNX model, told apart by content.
bool is_engine_file(const std::string& path);

/// "name:1x3x224x224,other:1x77" -> pairs; names may hold colons (the last one splits).
std::vector<std::pair<std::string, Shape>> parse_shapes(std::string_view spec);
/// Profile from the three specs; min and max default to opt, opt to max, as trtexec does. Empty
/// specs give no profile.
std::vector<Profile> profile_from_specs(std::string_view min, std::string_view opt,
                                        std::string_view max);

} // namespace ingot
