// SPDX-License-Identifier: Apache-2.0
// trtexec in parts: building or loading (trtexec_build.cpp), running and reporting
// (trtexec_run.cpp), tensors that it writes or compares (trtexec_tensors.cpp).
#pragma once

#include "engine/engine.h"
#include "trtexec_options.h"
#include "workflow/inputs/inputs.h"

namespace ingot::tool {

/// Lines as trtexec prints them, "[11/21/2026-12:00:00] [I] text": information to stdout, warnings
/// and errors to stderr.
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

/// Whether intermediate tensors keep their names and are written after the run.
bool debugs_tensors(const Options& o);

/// Sets compile, backend and engine; prints what it does. Errors: what building and loading throw.
void open_engine(TrtexecRun& run);
/// What --refitFromOnnx, --dumpRefit and --timeRefit ask for. Errors: InvalidArgument for an engine
/// that cannot be refitted, and for a model that is not the engine's.
void refit_engine(TrtexecRun& run);
/// Sets compile's weight_budget as --weightStreamingBudget asks. Errors: InvalidArgument.
void set_weight_budget(TrtexecRun& run);
/// Loads an engine file again and again and prints how long that takes.
void time_deserialization(const Options& o);
/// Measures and prints all reports. Errors: what running throws; InvalidArgument when outputs
/// differ from the expected ones.
void run_inference(TrtexecRun& run);
/// What --dumpLayerInfo, --exportLayerInfo and --dumpOptimizationProfile print of a plan.
void report_engine(TrtexecRun& run);

/// "Output Tensors:" and the values of each.
void print_outputs(const Graph& g, const std::vector<Tensor>& outputs);
/// NAME.input.1.3.224.224.Float.raw for each input and output.
void dump_raw(const Engine& engine, const std::vector<Tensor>& inputs,
              const std::vector<Tensor>& outputs);
/// Runs once more and writes tensors of the graph, as --saveDebugTensors and
/// --saveAllDebugTensors ask for.
void save_debug_tensors(const Options& o, Context& context, const std::vector<Tensor>& inputs);
/// Runs every pair and compares. Errors: InvalidArgument when one is further off than allowed.
void check_accuracy(const TrtexecOptions& t, Context& context, const InputSource& source);

/// Whether a "shape" given for an input states its values: it is a vector or scalar of integers,
/// of a fixed size, with as many elements as the shape has sizes.
bool states_values(const Graph& g, std::string_view input, const Shape& shape);
/// The inputs of a run: from files, with the values or shapes that options state, else random.
/// Errors: as load_inputs.
LoadedInputs trtexec_load_inputs(const TrtexecOptions& t, const Engine& engine, InputSource source);

/// The files of --loadInputs, and shapes by --shapes or the profile chosen.
InputSource trtexec_inputs(const TrtexecOptions& t, const Engine& engine,
                           const ReferencePair& pair);

} // namespace ingot::tool
