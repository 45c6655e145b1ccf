// SPDX-License-Identifier: Apache-2.0
// ProfilePrograms: the programs that shapes inside an engine's profiles need, so that new shapes of
// a dynamic engine find them compiled. They are a function of engine, profiles and architecture,
// and so is what is chosen by them.
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
    /// Plans for a sample of the shapes that the state's options' profiles allow, and keeps the
    /// programs as state->profile_programs. Does nothing where a size has no bounds, or none
    /// varies.
    static void find(const std::shared_ptr<CudaState>& state,
                     const std::shared_ptr<const plan::Program>& program);

    /// The first tactic whose programs are all known; without one, the first. `emitted` gets its
    /// launches.
    size_t choose(const kernels::Family& family, const kernels::Problem& problem,
                  const std::vector<kernels::Tactic>& tactics, kernels::Emitted& emitted) const;
    /// While it is open: notes a program that a plan requested.
    void note(const std::string& text, const std::string& entry,
              std::shared_ptr<PendingKernel> kernel);
    bool is_open() const { return open_; }
    /// Whether the programs of all launches are known.
    bool has(const kernels::Emitted& e) const;
    size_t count() const { return known_.size(); }
    /// Until all of them are compiled, or have failed to.
    void wait() const;

private:
    bool open_ = true;
    std::mutex mutex_;            // while it is open
    std::set<std::string> known_; // hashes
    std::vector<std::shared_ptr<PendingKernel>> kernels_;
};

/// Shapes of the inputs that are likely to need different programs, the expected ones first: the
/// ends of the ranges, multiples of powers of two, and others. Empty where a size has no bounds or
/// none varies. The same for the same graph and profiles.
std::vector<std::vector<Shape>> sample_shapes(const Graph& g, const std::vector<Profile>& profiles,
                                              size_t count);

} // namespace ingot::cuda
