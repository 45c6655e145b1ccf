// SPDX-License-Identifier: Apache-2.0
// ProfilePrograms: the programs for shapes inside an engine's profiles, so that new shapes of a
// dynamic engine find them compiled. They depend on engine, profiles and architecture alone, and so
// do choices among them.
#pragma once

#include "kernels/family.h"
#include "plan/program.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ingot::cuda {

struct CudaState;
class PendingKernel;

/// Thread safe.
class ProfilePrograms {
public:
    /// Plans for a sample of the shapes in the options' profiles, and stores the programs in
    /// state->profile_programs. Does nothing where a size is unbounded, or all are fixed.
    static void find(const std::shared_ptr<CudaState>& state,
                     const std::shared_ptr<const plan::Program>& program);

    struct Choice {
        size_t tactic = 0;
        int variant = 0;
    };
    /// The first tactic whose programs are all known; without one, the first tactic.
    Choice choose(const kernels::Family& family, const kernels::Problem& problem,
                  const std::vector<kernels::Tactic>& tactics) const;
    /// While open: records a program that a plan requested.
    void note(const kernels::Program& program, const std::string& entry,
              std::shared_ptr<PendingKernel> kernel);
    /// The same for a program of the graph's own.
    void note(const std::string& text, const std::string& entry,
              std::shared_ptr<PendingKernel> kernel);
    bool is_open() const { return open_; }
    /// Whether the programs of all launches are known.
    bool has(const kernels::Emitted& e) const;
    size_t count() const { return known_.size(); }
    /// Waits until all programs are compiled or have failed.
    void wait() const;

private:
    bool open_ = true;
    std::mutex mutex_;            // while open
    std::set<std::string> known_; // hashes
    std::vector<std::shared_ptr<PendingKernel>> kernels_;
};

/// Input shapes that probably need different programs, opt shapes first: ends of ranges, multiples
/// of powers of two, and others. Empty where a size is unbounded or all are fixed. Deterministic
/// for a graph and its profiles.
std::vector<std::vector<Shape>> sample_shapes(const Graph& g, const std::vector<Profile>& profiles,
                                              size_t count);

} // namespace ingot::cuda
