// SPDX-License-Identifier: Apache-2.0
// Engine: an optimised graph with its profiles and weights, in a file or in memory; independent of
// the device. Context: one execution of it on a backend.
#pragma once

#include "base/bytes.h"
#include "engine/storage.h"
#include "engine/trust.h"
#include "engine/weights.h"
#include "plan/backend.h"

#include <atomic>
#include <functional>
#include <map>

namespace ingot {

using Properties = std::map<std::string, std::string>;

class WeightCheck;

/// When a loaded engine's weights are compared with their hashes.
enum class CheckWeights {
    Beside, // concurrently; done before a Context returns a result or the engine is written
    First,  // done when load() returns
    Never,  // damage shows as wrong results
};

/// Immutable; may be shared across threads. Weights of a loaded engine stay in the mapped file.
class Engine {
public:
    /// Errors: Io, InvalidEngine (with path, found, needed and remedy), also as
    /// reason_for_distrust().
    static std::shared_ptr<const Engine> load(const std::string& path,
                                              CheckWeights check = CheckWeights::Beside,
                                              const Trust& trust = {});
    /// Loads from memory that `owner` keeps alive; without an owner, the memory must outlive all
    /// engines derived from this one.
    static std::shared_ptr<const Engine> load(std::span<const std::byte> bytes,
                                              std::shared_ptr<const void> owner,
                                              CheckWeights check = CheckWeights::Beside,
                                              const Trust& trust = {});
    /// Waits for the comparison of the weights. Call before passing weights, or data derived from
    /// them, to code that does not check them. Cheap after the first call. Errors: InvalidEngine
    /// for damaged weights, with the chunk and the remedy.
    void check_weights() const;
    /// An engine without a file. Errors: InvalidArgument for a profile that does not fit.
    static std::shared_ptr<const Engine> create(Graph graph, std::vector<Profile> profiles,
                                                Properties metadata);
    /// This engine with kernels compiled ahead of time for GPUs of these compute capabilities (90
    /// for 9.0); none: those it had kernels for.
    std::shared_ptr<const Engine> with_kernels(KernelBinaries kernels,
                                               std::span<const int> capabilities = {}) const;
    /// This engine with another graph and metadata, and what was loaded with it: its profiles,
    /// formats and kernels, and whether its code may run; without the data for a refit. Errors:
    /// InvalidArgument for a graph that these do not fit.
    std::shared_ptr<const Engine> with_graph(Graph graph, Properties metadata) const;
    /// This engine with the data for a refit; null: it cannot be refitted.
    std::shared_ptr<const Engine> with_source(std::shared_ptr<const RefitSource> source) const;
    /// This engine with these memory formats for inputs and outputs. Its graph, profiles and shapes
    /// remain those of the tensors. Errors: InvalidArgument as check_formats().
    std::shared_ptr<const Engine> with_formats(IoFormats formats) const;
    /// Gives memory of this many bytes, aligned to 64.
    using AllocateWeights = std::function<std::shared_ptr<std::byte>(size_t)>;
    /// This engine, which has weights, with a copy of them, equal ones once: what they lie in now
    /// may go. Errors: those of `allocate`.
    std::shared_ptr<const Engine> with_own_weights(const AllocateWeights& allocate) const;

    const Graph& graph() const { return *graph_; }
    std::shared_ptr<const Graph> graph_ref() const { return graph_; }
    const std::vector<Profile>& profiles() const { return profiles_; }
    const Properties& metadata() const { return metadata_; }
    const IoFormats& formats() const { return formats_; }
    /// The number of leading graph outputs that are the model's; the remaining ones are debug
    /// outputs (put_debug_outputs).
    size_t result_count() const;
    uint64_t weight_bytes() const;
    /// The data for a refit; null when weights cannot be replaced.
    const std::shared_ptr<const RefitSource>& source() const { return source_; }
    /// Whether it was written without weights: it cannot run before a refit.
    bool weights_missing() const { return source_ != nullptr && source_->missing; }
    /// Kernels compiled ahead of time, of all architectures; null when there are none.
    const std::shared_ptr<const KernelBinaries>& kernels() const { return kernels_; }
    /// Why the code that it brings may not run, as the end of a sentence; "" when it may. Engines
    /// that were not loaded are trusted.
    const std::string& distrust() const { return distrust_; }

private:
    Engine() = default;
    static std::shared_ptr<const Engine> load_from(std::span<const std::byte> bytes,
                                                   std::shared_ptr<const void> owner,
                                                   CheckWeights check, const Trust& trust,
                                                   const std::string& path);
    std::shared_ptr<const Graph> graph_;
    std::vector<Profile> profiles_;
    Properties metadata_;
    std::shared_ptr<const KernelBinaries> kernels_;
    std::shared_ptr<const RefitSource> source_;
    std::shared_ptr<WeightCheck> check_; // null: nothing to wait for
    IoFormats formats_;
    std::string distrust_;
};

/// Declares in the metadata that the last `count` outputs of the graph are debug outputs.
void put_debug_outputs(size_t count, Properties& metadata);

/// Writes an engine file, whole or not at all. The same arguments give the same bytes. Weights are
/// streamed from their current memory; equal ones are stored once.
void write_engine(const std::string& path, const Graph& graph, const std::vector<Profile>& profiles,
                  const Properties& metadata, const KernelBinaries& kernels = {});
/// Options for writing a refittable engine.
struct WriteOptions {
    bool weights = true; // false: omits the refittable weights
    bool refit = true;   // false: a loaded engine can no longer be refitted
};
/// The options of its build: without weights if the build strips them.
WriteOptions as_built(const Engine& engine);
/// Writes everything that the engine has. Errors: InvalidArgument for options that leave nothing to
/// run.
void write_engine(const std::string& path, const Engine& engine, const WriteOptions& options = {});
/// The bytes of that file.
AlignedBytes engine_bytes(const Engine& engine, const WriteOptions& options = {});

/// Plans, memory and results of one caller. Used by one thread at a time: a second one gets an
/// error.
class Context {
public:
    /// Lowers the engine for the backend. Errors: Unsupported.
    Context(std::shared_ptr<const Engine> engine, const Backend& backend,
            const CompileOptions& options = {});
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    /// Another context with its own plans and memory that shares this one's lowering.
    std::unique_ptr<Context> sibling() const;

    /// Inputs follow the order of the graph; shapes are checked against types and profiles. Results
    /// are new tensors, or those given in `outputs` (Execution::run). Tensors are row major: they
    /// are copied if the engine has other formats. Errors: InvalidArgument naming input, dimension,
    /// got and allowed; errors of the run.
    std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs = {});
    /// The same on device memory, with inputs and outputs in the engine's formats, ordered by
    /// `stream` (Execution::enqueue). Shapes are those of the tensors, but `memory` receives those
    /// of their arrays. Errors: as run().
    void enqueue(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                 const OutputMemory& memory = {});
    /// run() in three parts, for repeated runs: converts inputs to arrays in the engine's formats,
    /// runs, and converts the results to tensors. Errors: as run().
    std::vector<Tensor> stored(std::span<const Tensor> inputs) const;
    std::vector<Tensor> run_stored(std::span<const Tensor> inputs,
                                   std::span<const Tensor> outputs = {});
    std::vector<Tensor> unstored(std::span<const Tensor> outputs,
                                 std::span<const Tensor> inputs) const;
    /// Plans for these shapes in advance.
    void prepare(std::span<const Shape> shapes);
    /// Execution::activation_bytes and capturable for these shapes of the engine's inputs.
    int64_t activation_bytes(std::span<const Shape> shapes);
    bool capturable(std::span<const Shape> shapes) const;
    /// Uses the shapes of arrays (Storage).
    Execution& execution() { return *execution_; }
    const Executable& executable() const { return *executable_; }
    const Engine& engine() const { return *engine_; }

private:
    Context(std::shared_ptr<const Engine> engine, std::shared_ptr<const Storage> storage,
            std::shared_ptr<const Executable> executable);
    Status enqueue_stored(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                          const OutputMemory& memory);
    void check_inputs(std::span<const Tensor> inputs) const;
    void require_ok(const Status& s) const;

    std::shared_ptr<const Engine> engine_;
    std::shared_ptr<const Storage> storage_;
    std::shared_ptr<const Executable> executable_;
    std::unique_ptr<Execution> execution_;
    std::atomic<bool> busy_{false};
    // Buffers of enqueue() with formats, kept so that the next call allocates nothing.
    std::vector<Shape> shapes_;
    std::vector<Shape> stored_shapes_;
    std::vector<Binding> bindings_;
};

} // namespace ingot
