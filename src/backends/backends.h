// SPDX-License-Identifier: Apache-2.0
// Lists the backends and answers questions about their devices before anything runs on them: the
// one header of src/backends for other folders.
#pragma once

#include "plan/backend.h"
#include "plan/option_value.h"
#include "plan/plan_report.h"

namespace ingot {

const Backend& cpu_backend();
/// The first GPU; null when there is none, and `why` says so.
const Backend* cuda_backend(std::string& why);
/// The GPU that CUDA numbers `index`.
const Backend* cuda_backend(int index, std::string& why);
/// The number of the GPU that is current for the calling thread (cudaSetDevice); 0 when none is.
int current_cuda_device();
/// A row of the table of options (src/api/options) that one backend alone knows.
struct BackendOption {
    std::string_view field; // as the row has it
    void (*set)(CompileOptions& options, const OptionValue& value);
};
std::span<const BackendOption> cpu_options();
std::span<const BackendOption> cuda_options();

/// Compiles, without a GPU, the kernels with which a GPU of a compute capability (90 for 9.0) runs
/// the graph on inputs of each of these shapes. Errors: Unsupported, InvalidArgument, what the
/// compiler says.
KernelBinaries compile_kernels_ahead(const std::shared_ptr<const Graph>& graph,
                                     std::span<const std::vector<Shape>> shapes,
                                     int compute_capability, const CompileOptions& options);
/// The kernels that compile_kernels_ahead would compile, without compiling them. Errors: its own.
std::vector<KernelUse> list_kernels_ahead(const std::shared_ptr<const Graph>& graph,
                                          std::span<const std::vector<Shape>> shapes,
                                          int compute_capability, const CompileOptions& options);
/// The plan for inputs of these shapes, as Execution::plan_text() writes it, for a GPU that is not
/// here. Errors: its own.
std::string plan_text_ahead(const std::shared_ptr<const Graph>& graph,
                            std::span<const Shape> shapes, int compute_capability,
                            const CompileOptions& options);
/// The same plan as a report (plan/plan_report.h). `compiles`: kernels are compiled, or found in
/// the options' runtime cache, so that launches have resources. Errors: its own.
std::vector<plan::StepReport> plan_report_ahead(const std::shared_ptr<const Graph>& graph,
                                                std::span<const Shape> shapes,
                                                int compute_capability,
                                                const CompileOptions& options, bool compiles);
/// The figures of a GPU that is not here. Errors: Unsupported.
plan::DeviceFigures device_figures(int compute_capability, const CompileOptions& options);
/// Those of a backend's device; nullopt for the CPU.
std::optional<plan::DeviceFigures> device_figures(const Backend& backend,
                                                  const CompileOptions& options);
/// The graph as a GPU of this compute capability (90 for 9.0) gets it; needs none. Errors:
/// Unsupported naming a node.
Graph lower_ahead(const Graph& graph, int compute_capability, const CompileOptions& options);
/// Names of the passes that lower a graph, in order.
std::vector<std::string> cpu_lowering_passes();
std::vector<std::string> cuda_lowering_passes();
/// The compiler of GPU kernels that is found here: "nvrtc 13.0"; "" when there is none.
std::string kernel_compiler();
/// Why it does not compile for this compute capability, 0 for any; "" where it does.
std::string kernel_compiler_problem(int compute_capability);

// --- what a device can do ------------------------------------------------------------------------

/// Whether the backend's device has units for products in this type.
bool is_fast(const Backend& backend, DType dtype);
/// Whether a compiler of kernels that knows the backend's GPU is found here; true for the CPU.
bool compiles_kernels(const Backend& backend);
/// Kernels exist for GPUs from this compute capability on.
int lowest_capability();
/// Whether a GPU of one compute capability runs, as they are, kernels that were compiled for
/// another.
bool runs_kernels_of(int compute_capability, int compiled_for);

/// The first error that left the backend's device unusable in this process; null while it is sound.
/// Valid as long as the backend.
const char* device_error(const Backend& backend);

/// Why no GPU can be used.
enum class CudaProblem {
    None,      // the driver works; there may still be no device
    NoDriver,  // there is none, or it has no device
    OldDriver, // it is too old
    Failed,    // it reported an error
};
CudaProblem cuda_problem();

} // namespace ingot
