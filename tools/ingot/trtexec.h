// SPDX-License-Identifier: Apache-2.0
// trtexec in parts: building or loading (trtexec_build.cpp), running and reporting
// (trtexec_run.cpp), written and compared tensors (trtexec_tensors.cpp).
#pragma once

#include "engine/engine.h"
#include "trtexec_options.h"
#include "workflow/inputs/inputs.h"

namespace ingot::tool {

/// Prints as trtexec does, "[11/21/2026-12:00:00] [I] text": information to stdout, warnings and
/// errors to stderr.
void info(const std::string& text);
void warning(const std::string& text);
void error_line(const std::string& text);

struct TrtexecRun {
    TrtexecOptions t;
    CompileOptions compile;
    const Backend* backend = nullptr;
    std::shared_ptr<const Engine> engine;
    double built_s = 0; // 0 when the engine was loaded

    bool on_cpu() const { return backend->name() == "cpu"; }
};

/// Whether intermediate tensors keep their names and are saved after the run.
bool debugs_tensors(const Options& o);

/// Sets compile, backend and engine, and logs it. Errors: those of building and loading.
void open_engine(TrtexecRun& run);
/// Runs --refitFromOnnx, --dumpRefit and --timeRefit. Errors: InvalidArgument for an engine that is
/// not refittable, and for another engine's model.
void refit_engine(TrtexecRun& run);
/// Sets compile's weight_budget from --weightStreamingBudget. Errors: InvalidArgument.
void set_weight_budget(TrtexecRun& run);
/// Loads an engine file repeatedly and prints the time.
void time_deserialization(const Options& o);
/// Measures and prints all reports. Errors: those of running; InvalidArgument when outputs differ
/// from the expected ones.
void run_inference(TrtexecRun& run);
/// Prints --dumpLayerInfo, --exportLayerInfo and --dumpOptimizationProfile.
void report_engine(TrtexecRun& run);

/// "Output Tensors:" and the values of each.
void print_outputs(const Graph& g, const std::vector<Tensor>& outputs);
/// NAME.input.1.3.224.224.Float.raw for each input and output.
void dump_raw(const Engine& engine, const std::vector<Tensor>& inputs,
              const std::vector<Tensor>& outputs);
/// Runs once more and writes the tensors of --saveDebugTensors and --saveAllDebugTensors.
void save_debug_tensors(const Options& o, Context& context, const std::vector<Tensor>& inputs);
/// Runs every pair and compares. Errors: InvalidArgument when one exceeds the tolerance.
void check_accuracy(const TrtexecOptions& t, Context& context, const InputSource& source);

/// Whether a "shape" given for an input is its values: the input is a scalar or vector of integers,
/// of a fixed size, with as many elements as the shape has sizes.
bool states_values(const Graph& g, std::string_view input, const Shape& shape);
/// The inputs of a run: from files, with values or shapes from options, else random. Errors: as
/// load_inputs.
LoadedInputs trtexec_load_inputs(const TrtexecOptions& t, const Engine& engine, InputSource source);

/// The files of --loadInputs, with shapes from --shapes or the selected profile.
InputSource trtexec_inputs(const TrtexecOptions& t, const Engine& engine,
                           const ReferencePair& pair);

} // namespace ingot::tool
