// SPDX-License-Identifier: Apache-2.0
// Kernels: each runs one primitive, one claimed composite, or a fused group of nodes, for concrete
// shapes and strides. A backend provides a set of them, and the planner uses no others.
#pragma once

#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/graph.h"
#include "plan/view.h"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace ingot {
struct CompileOptions;
struct RunWatch;
} // namespace ingot

namespace ingot::plan {

class Device;
class PackCache;
class StoredConstant;
struct KernelSet;
struct Program;

/// A view of one buffer of a plan.
struct Operand {
    DType dtype = DType::F32;
    int buffer = -1; // index into RunContext::buffers
    View view;
};

/// The text of a run-time failure, written without allocating.
struct ErrorText {
    char text[240] = {};
    void set(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
};

struct RunContext {
    std::byte* const* buffers; // addresses in the memory of `device`
    ThreadPool& pool;
    ErrorText& error;
    Device& device;
    const RunWatch* run = nullptr;    // null where no run goes on
    const RunWatch* bodies = nullptr; // the same for the bodies of control flow

    template <class T>
    T* at(const Operand& o) const {
        return reinterpret_cast<T*>(buffers[o.buffer]) + o.view.offset;
    }
    /// The first element's bytes; offsets of packed types are even.
    std::byte* bytes(const Operand& o) const {
        return buffers[o.buffer] + o.view.offset * bit_width(o.dtype) / 8;
    }
    template <class T>
    T* scratch(int buffer) const {
        return buffer < 0 ? nullptr : reinterpret_cast<T*>(buffers[buffer]);
    }
};

/// The results of a step with data-dependent sizes.
struct DynamicResults {
    std::vector<Tensor> tensors; // one per result
    Symbols symbols;             // the symbols that the node declares
};

/// One prepared unit of work, for fixed shapes. Belongs to one execution.
class Step {
public:
    virtual ~Step() = default;
    virtual Status run(const RunContext& context) noexcept = 0;
    /// Replaces run for nodes that declare symbols. Errors: thrown, with got and expected.
    virtual void run_dynamic(const RunContext& context, DynamicResults& results);
    /// The selected implementation, as text.
    virtual std::string implementation() const { return "own"; }
    /// The plans of the programs that the step runs (the bodies of if and loop), in the form of
    /// plan_text.h.
    virtual std::string bodies_text() { return ""; }
    /// Bytes of working memory during run; the planner points `scratch` at a buffer of that size.
    virtual int64_t scratch_bytes() const { return 0; }
    /// Whether run only enqueues work, so that a device may record and replay it.
    virtual bool recordable() const { return false; }
    /// Whether run has changed since it was recorded.
    virtual bool is_stale() const { return false; }
    int scratch = -1;
};

/// The unit that a kernel runs: a node of a graph, or the body of a fused node.
struct Group {
    const Graph& graph;
    std::span<const Node> nodes;
    std::span<const Value> inputs;
    std::span<const Value> outputs;

    /// The position of v among the inputs, or -1.
    int input_index(Value v) const;
    const Node& first() const { return nodes[0]; }
};
Group group_of(const Graph& g, const Node& n);

/// The layouts that a kernel wants for its operands, decided before placement.
struct LayoutArgs {
    const Group& group;
    const Symbols& symbols;
    std::span<const View> in; // current layouts
    std::span<const Shape> out;
    /// Per input: the order in which it must be dense (the planner copies if it is not); nullopt
    /// accepts any strides. Prefilled with nullopt.
    std::span<std::optional<Order>> want;
    /// Per result: the order in which it is written. Prefilled with row major.
    std::span<Order> order;
    /// Per input: whether it is a constant, which another order costs nothing. Empty: none is.
    std::span<const char> constant = {};

    bool is_constant(size_t input) const { return input < constant.size() && constant[input] != 0; }
};

struct Kernel;

struct StepArgs {
    const Kernel& kernel;
    const Group& group;
    const Node& node;
    const Symbols& symbols;
    std::span<const Operand> in;
    std::span<const Operand> out;
    /// Per input: the contents of its buffer when it is a graph constant, else null. Where they are
    /// a tensor's own, the bytes outlive the executable, so that kernels may key packed copies by
    /// the address.
    std::span<const StoredConstant* const> constants;
    /// Programs of the node's bodies (If, Loop).
    std::span<const std::shared_ptr<const Program>> bodies;
    PackCache& packs;
    Device& device;
    ThreadPool& pool;
    const CompileOptions& options;
};

struct Kernel {
    /// An op's name, for single nodes; or a family's name, as in Fused::kernel.
    std::string_view name;
    /// The reason why this kernel cannot run the group; nullopt when it can. Used for claiming and
    /// fusing.
    std::optional<std::string> (*refuse)(const Group& group);
    std::unique_ptr<Step> (*prepare)(const StepArgs& args);
    /// Null: operands and results are dense and row major.
    void (*layout)(LayoutArgs& args) = nullptr;
    /// Results may have any strides (as parts of a larger tensor).
    bool strided_results = false;
    /// Reads operands faster whose rows begin at multiples of 16 bytes.
    bool aligned_rows = false;
    /// Runs groups of nodes, not only single ones.
    bool takes_groups = false;
    /// Groups may begin with a map that widens the main node's first operand from a 16-bit float.
    bool reads_casts = false;
    /// Result 0 may reuse the memory of a dead input of the same shape, order and width.
    bool in_place = false;
    /// Opaque backend data for `prepare`.
    const void* family = nullptr;
};

using KernelTable = std::span<const Kernel>;

/// The kernels of one backend.
struct KernelSet {
    std::string_view backend;
    /// Every table, in the order in which they are asked.
    std::span<const KernelTable* const> (*tables)();
    /// A step that copies elements between operands of one shape and dtype.
    std::unique_ptr<Step> (*make_copy)(const Operand& from, const Operand& to, Device& device);

    /// The first kernel of that name that accepts the group; null when none does. `reason` receives
    /// the last refusal.
    const Kernel* find(std::string_view name, const Group& group,
                       std::string* reason = nullptr) const;
    /// Whether a kernel of that name accepts groups that begin with a cast.
    bool reads_casts(std::string_view name) const;
};

/// Layout functions that kernels share.
void any_strides(LayoutArgs& args); // inputs in any layout, results row major

} // namespace ingot::plan
