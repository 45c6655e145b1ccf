// SPDX-License-Identifier: Apache-2.0
// Engine: an optimised graph with its profiles and weights, in a file or in memory. Portable: it
// knows no device. Context: one execution of it on a backend.
#pragma once

#include "base/bytes.h"
#include "engine/storage.h"
#include "engine/weights.h"
#include "plan/backend.h"

#include <atomic>
#include <map>

namespace ingot {

using Properties = std::map<std::string, std::string>;

class WeightCheck;

/// When the weights of an engine that is loaded are compared with their hashes.
enum class CheckWeights {
    Beside, // of what follows: done before a Context gives a result, or the engine is written
    First,  // done when load() returns
    Never,  // damage shows as wrong results
};

/// Immutable; may be shared across threads. Weights of a loaded engine stay in the mapped file.
class Engine {
public:
    /// Errors: Io, InvalidEngine (with path, found, needed and remedy).
    static std::shared_ptr<const Engine> load(const std::string& path,
                                              CheckWeights check = CheckWeights::Beside);
    /// From memory that `owner` keeps alive; without one it lives as long as all engines made of
    /// this one.
    static std::shared_ptr<const Engine> load(std::span<const std::byte> bytes,
                                              std::shared_ptr<const void> owner,
                                              CheckWeights check = CheckWeights::Beside);
    /// Waits until the weights have been compared, and so has to be called before anything made of
    /// them goes where this engine's own check does not. Cheap from the second time on. Errors:
    /// InvalidEngine when they are damaged, with the chunk and what to do.
    void check_weights() const;
    /// Without a file. Errors: InvalidArgument for a profile that does not fit.
    static std::shared_ptr<const Engine> create(Graph graph, std::vector<Profile> profiles,
                                                Properties metadata);
    /// This engine with kernels that were compiled ahead of time, for GPUs of these compute
    /// capabilities (90 for 9.0); none: of those that it had kernels for.
    std::shared_ptr<const Engine> with_kernels(KernelBinaries kernels,
                                               std::span<const int> capabilities = {}) const;
    /// This engine with what a refit needs; null: it cannot be refitted.
    std::shared_ptr<const Engine> with_source(std::shared_ptr<const RefitSource> source) const;
    /// This engine with inputs and outputs that lie so in memory when it runs. Its graph, profiles
    /// and shapes stay those of the tensors. Errors: InvalidArgument as check_formats().
    std::shared_ptr<const Engine> with_formats(IoFormats formats) const;

    const Graph& graph() const { return *graph_; }
    std::shared_ptr<const Graph> graph_ref() const { return graph_; }
    const std::vector<Profile>& profiles() const { return profiles_; }
    const Properties& metadata() const { return metadata_; }
    const IoFormats& formats() const { return formats_; }
    /// How many of the graph's outputs, from the first, the model has; the others are there for who
    /// debugs it (put_debug_outputs).
    size_t result_count() const;
    uint64_t weight_bytes() const;
    /// What a refit needs; null where weights cannot be replaced.
    const std::shared_ptr<const RefitSource>& source() const { return source_; }
    /// It was written without weights: it cannot run before a refit.
    bool weights_missing() const { return source_ != nullptr && source_->missing; }
    /// Kernels compiled ahead of time, of all architectures; null when there are none.
    const std::shared_ptr<const KernelBinaries>& kernels() const { return kernels_; }

private:
    Engine() = default;
    static std::shared_ptr<const Engine> load_from(std::span<const std::byte> bytes,
                                                   std::shared_ptr<const void> owner,
                                                   CheckWeights check, const std::string& path);
    std::shared_ptr<const Graph> graph_;
    std::vector<Profile> profiles_;
    Properties metadata_;
    std::shared_ptr<const KernelBinaries> kernels_;
    std::shared_ptr<const RefitSource> source_;
    std::shared_ptr<WeightCheck> check_; // null: there is nothing to wait for
    IoFormats formats_;
};

/// Says in the metadata that the last `count` outputs of the graph are for debugging.
void put_debug_outputs(size_t count, Properties& metadata);

/// Writes an engine file, whole or not at all. The same arguments give the same bytes. Weights are
/// streamed from where they are; equal ones are stored once.
void write_engine(const std::string& path, const Graph& graph, const std::vector<Profile>& profiles,
                  const Properties& metadata, const KernelBinaries& kernels = {});
/// How an engine that can be refitted is written.
struct WriteOptions {
    bool weights = true; // false: those that a refit brings are left out
    bool refit = true;   // false: it cannot be refitted any more once it is loaded
};
/// As its build asked for: without weights where that was to strip them.
WriteOptions as_built(const Engine& engine);
/// The same with all that the engine has. Errors: InvalidArgument for options that leave nothing to
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
    /// Another context with plans and memory of its own that shares this one's lowering.
    std::unique_ptr<Context> sibling() const;

    /// Inputs in the order of the graph; shapes are checked against types and profiles. Results are
    /// new tensors, or the given ones where `outputs` has them (Execution::run). Tensors are row
    /// major: they are copied where the engine has other formats. Errors: InvalidArgument naming
    /// input, dimension, got and allowed; what the run reports.
    std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs = {});
    /// The same on memory of the device, which holds inputs and outputs in the engine's formats, in
    /// the order of `stream` (Execution::enqueue). Shapes are those of the tensors, but `memory` is
    /// told those of their arrays. Errors: as run().
    void enqueue(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                 const OutputMemory& memory = {});
    /// run() in three parts, for runs that are repeated: inputs become the arrays that the engine's
    /// formats ask for, these run, and the results become tensors. Errors: as run().
    std::vector<Tensor> stored(std::span<const Tensor> inputs) const;
    std::vector<Tensor> run_stored(std::span<const Tensor> inputs,
                                   std::span<const Tensor> outputs = {});
    std::vector<Tensor> unstored(std::span<const Tensor> outputs,
                                 std::span<const Tensor> inputs) const;
    /// Plans ahead for these shapes.
    void prepare(std::span<const Shape> shapes);
    /// Execution::activation_bytes and capturable for these shapes of the engine's inputs.
    int64_t activation_bytes(std::span<const Shape> shapes);
    bool capturable(std::span<const Shape> shapes) const;
    /// Its shapes are those of arrays (Storage).
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
    // Of an enqueue() with formats, kept so that the next one allocates nothing.
    std::vector<Shape> shapes_;
    std::vector<Shape> stored_shapes_;
    std::vector<Binding> bindings_;
};

} // namespace ingot
