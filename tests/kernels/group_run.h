// SPDX-License-Identifier: Apache-2.0
// One group of nodes on a device, without planner and backend: operands in the family's layouts,
// each in an allocation of its own.
#pragma once

#include "backends/cuda/backend.h"
#include "kernels/family.h"
#include "kernels/harness.h"
#include "kernels/test_device.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace ingot::test {

/// A graph as a group: constants and inputs become the group's inputs.
class GroupCase {
public:
    /// Errors: InvalidArgument when no family of that name takes it, with the refusal.
    /// `made` is taken in place of a family of that name.
    GroupCase(const Graph& g, std::string_view family, const kernels::Family* made = nullptr);
    const plan::Group& group() const { return *group_; }
    const kernels::Family& family() const { return *family_; }
    /// The tensor behind an input of the group that was a constant, else null.
    const Tensor* constant(size_t input) const { return sources_[input].constant; }
    /// The graph input of a group's input.
    size_t graph_input(size_t input) const { return sources_[input].graph_input; }

private:
    struct Source {
        const Tensor* constant = nullptr;
        size_t graph_input = 0;
    };

    Graph kept_; // owns the constants
    Graph body_;
    std::vector<Source> sources_;
    std::unique_ptr<plan::Group> group_;
    const kernels::Family* family_ = nullptr;
};

/// Views of all operands, and the family's layouts and launches for them.
class Placement {
public:
    Placement(const GroupCase& c, const kernels::Arch& arch, const FamilyOptions& options);
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;

    std::vector<kernels::Tactic> tactics() const { return case_.family().tactics(problem()); }
    /// Emits, and keeps the programs for emitted_programs().
    kernels::Emitted emit(const kernels::Tactic& t) const;
    /// Equal where the launches are.
    std::string fingerprint(const kernels::Tactic& t) const;
    std::span<const plan::Operand> in() const { return in_; }
    std::span<const plan::Operand> out() const { return out_; }

private:
    kernels::Problem problem() const;

    const GroupCase& case_;
    const kernels::Arch& arch_;
    const FamilyOptions& options_;
    std::vector<plan::Operand> in_, out_; // buffers: inputs, then results
    std::vector<const std::byte*> constants_;
};

/// Compiles programs on all CPUs, beside the runs of those that are ready. Errors show when they
/// run.
class AheadCompiler {
public:
    /// `emitted`: in the order of their runs.
    AheadCompiler(const std::vector<kernels::Emitted>& emitted, const kernels::Arch& arch);
    /// Leaves out what has not begun.
    ~AheadCompiler();
    AheadCompiler(const AheadCompiler&) = delete;
    AheadCompiler& operator=(const AheadCompiler&) = delete;
    /// Returns when the launches' programs are compiled.
    void wait_for(const kernels::Emitted& emitted);

private:
    struct Slot {
        explicit Slot(std::string t) : text(std::move(t)) {}
        std::string text;
        std::once_flag once;
    };
    void compile(Slot& slot);

    TestDevice device_;
    std::deque<Slot> slots_;
    std::map<std::string_view, Slot*> by_text_;
    std::atomic<size_t> next_{0};
    std::vector<std::thread> threads_;
};

/// Memory and launches.
class GroupRun {
public:
    GroupRun(const GroupCase& c, const kernels::Arch& arch, const FamilyOptions& options,
             const Placement& placement);
    ~GroupRun();
    GroupRun(const GroupRun&) = delete;
    GroupRun& operator=(const GroupRun&) = delete;

    kernels::Emitted emit(const kernels::Tactic& t) { return placement_.emit(t); }
    /// Fills memory anew, launches, and reads the results. Errors: Device.
    std::vector<Tensor> execute(const kernels::Emitted& e, const std::vector<Tensor>& inputs,
                                bool reversed);

private:
    std::byte* allocate(int64_t bytes, bool constant);
    /// The bytes of a result; where nothing was poisoned, only those of its elements.
    void read(std::vector<std::byte>& bytes, const std::byte* from, const plan::Operand& o);
    void launch(const kernels::Launch& l);
    void release();

    const GroupCase& case_;
    const FamilyOptions& options_;
    const Placement& placement_;
    TestDevice device_;
    std::unique_ptr<cuda::Stream> stream_;
    std::vector<std::byte*> buffers_; // inputs, results
    std::byte* scratch_ = nullptr;
    std::byte* error_word_ = nullptr;
    std::byte* run_state_ = nullptr;
};

} // namespace ingot::test
