// SPDX-License-Identifier: Apache-2.0
// From model file to engine in memory: import, AOT passes, profiles.
#pragma once

#include "engine/engine.h"
#include "ir/value_reads.h"
#include "onnx/importer.h"
#include "workflow/half_range.h"
#include "workflow/inputs/inputs.h"
#include "workflow/io_formats.h"
#include "workflow/layer_types.h"
#include "workflow/quantization/calibration_cache.h"

#include <functional>
#include <optional>

namespace ingot {

/// INT8 for a model that does not quantise by itself.
struct CalibrationConfig {
    /// Scales of tensors by name (calibrate.h computes them). Without any, the build fails.
    CalibrationCache cache;
    /// Without scales: use those of a few random inputs and log a warning. For measuring speed
    /// only: the results are unreliable.
    bool guess_ranges = false;
};

/// Ranges of values, for a build in F16: layers that overflow keep f32.
struct HalfRangeConfig {
    /// Inputs of one run in f32.
    std::optional<InputSource> inputs;
    /// Inputs of further runs, in the order of the graph's.
    std::vector<std::vector<Tensor>> samples;
    /// Thresholds of tensors by name; the build has to keep names.
    CalibrationCache cache;
    /// Told of the overflows in the order of the graph. Empty: a warning names them.
    std::function<void(std::span<const Overflow>)> told;
};

struct BuildConfig {
    std::vector<Profile> profiles;
    /// Makes the engine's profiles from `profiles` once the graph's inputs are known (some command
    /// lines give values of inputs where others give shapes). May be empty.
    std::function<std::vector<Profile>(const Graph&, std::vector<Profile>)> choose_profiles;
    /// Shapes of the inputs in the one run that the engine is for: the importer knows them, the
    /// engine has no profile of them. Inputs may be left out.
    std::vector<std::pair<std::string, Shape>> run_shapes;
    /// Computes in F16 or BF16 where that is safe; F32 leaves types alone.
    DType precision = DType::F32;
    /// Computes in int8 where the calibration has scales (quantize.h). A model that is already
    /// quantised needs none and is built unchanged.
    std::optional<CalibrationConfig> calibration;
    /// Without effect unless `precision` is F16.
    std::optional<HalfRangeConfig> half_ranges;
    /// Types and formats of inputs and outputs that differ from the model's types and from row
    /// major (io_types.h).
    std::string input_types;
    std::string output_types;
    /// Allowed memory formats of inputs and outputs. The build of a model adds those of the two
    /// lists.
    AllowedFormats formats;
    LayerTypes layer_types;
    /// Passes to leave out; those that lower are left out where the engine runs
    /// (CompileOptions::disabled_passes).
    std::vector<std::string> disabled_passes;
    /// Makes weights replaceable later (refit.h). The build of a model adds to `read` the constants
    /// that the import read.
    std::optional<RefitRequest> refit;
    /// Allows some weights to stay on the host (CompileOptions::weight_budget).
    bool weight_streaming = false;
    /// Each row of a batch gets the same bits alone and beside any others, in every run of the
    /// engine (CompileOptions::batch_invariant).
    bool batch_invariant = false;
    /// Inputs with a default that a run may leave out (onnx/input_defaults.h); others of that kind
    /// are constants.
    std::vector<std::string> optional_inputs;
    /// Tensors to append to the outputs for debugging (Engine::result_count); inputs and outputs of
    /// the model are skipped. Needs keep_names.
    std::vector<std::string> debug_tensors;
    /// Keep ONNX tensor names on values.
    bool keep_names = false;
    /// Called as the build proceeds: phase name, fraction done. May be empty.
    std::function<void(std::string_view phase, double fraction)> progress;
    /// Called with the graph after import ("import") and after each pass. May be empty.
    std::function<void(std::string_view pass, const Graph&)> after_pass;
};

/// A build in its steps, for callers that have importers of their own. Used by the thread that
/// made it, which reads no constants of other graphs meanwhile. Keeps `config`.
class ModelBuild {
public:
    /// Reads the model, quantises it where the configuration calibrates, and fixes the sizes that
    /// the profiles have. Errors: Io, InvalidModel, InvalidArgument.
    ModelBuild(const std::string& path, const BuildConfig& config);
    /// As it is to be imported; may be changed before.
    onnx::Model& model() { return model_; }
    /// The graph as the importer makes it. Errors: Unsupported with all refused nodes.
    Graph import() const;
    /// The engine of the model's graph. Lets the model go before the passes run, which need the
    /// memory. Errors: InvalidArgument (profiles, passes).
    std::shared_ptr<const Engine> engine(Graph g) &&;

private:
    std::string path_;
    const BuildConfig& config_;
    onnx::Model model_;
    ValueReads reads_; // of the import
};

/// Errors: those of ModelBuild.
std::shared_ptr<const Engine> build_engine(const std::string& model_path,
                                           const BuildConfig& config);
/// The engine of a graph from the importer or from a network; does not apply input and output types
/// or calibration. `properties` go to the engine's metadata. Errors: as above.
std::shared_ptr<const Engine> build_engine_from_graph(Graph g, Properties properties,
                                                      const BuildConfig& config);
/// Fixes the sizes of a model's inputs that the profiles or the run's shapes fix.
void fix_input_sizes(onnx::Model& model, const BuildConfig& config);
/// The metadata that an engine takes from its model.
Properties model_properties(const onnx::Model& model);
/// The engine with kernels for GPUs of these compute capabilities (90 for 9.0), compiled for the
/// opt shapes of its profiles, or for its own if all sizes are known. Needs NVRTC, no GPU. Errors:
/// InvalidArgument when a size is unknown.
std::shared_ptr<const Engine> with_kernels_ahead(const Engine& engine,
                                                 std::span<const int> capabilities,
                                                 const CompileOptions& options);
/// The kernels that with_kernels_ahead would compile.
std::vector<KernelUse> list_kernels(const Engine& engine, int capability,
                                    const CompileOptions& options);
/// Whether a file is an engine rather than an ONNX model, by content.
bool is_engine_file(const std::string& path);

/// "name:1x3x224x224,other:1x77" -> pairs; names may hold colons (the last one splits).
std::vector<std::pair<std::string, Shape>> parse_shapes(std::string_view spec);
/// Profile from the three specs; min and max default to opt, opt to max, as trtexec does. Empty
/// specs give no profile.
std::vector<Profile> profile_from_specs(std::string_view min, std::string_view opt,
                                        std::string_view max);

} // namespace ingot
