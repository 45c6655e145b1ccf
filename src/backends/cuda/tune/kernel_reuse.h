// SPDX-License-Identifier: Apache-2.0
// KernelReuse: chooses among tactics and variants of nearly equal cost for all steps of a plan
// together, so that the plan has few different kernels, which compile sooner. Depends on the plan's
// steps in their order alone.
#pragma once

#include "kernels/family.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ingot::cuda {

/// A problem with copied parts; the graph of its group must stay alive.
struct KeptProblem {
    explicit KeptProblem(const kernels::Problem& p)
        : group(p.group), in(p.in.begin(), p.in.end()), out(p.out.begin(), p.out.end()),
          constants(p.constants.begin(), p.constants.end()), symbols(p.symbols), arch(p.arch),
          tf32(p.tf32), batch_invariant(p.batch_invariant), backwards(p.backwards) {}
    kernels::Problem problem() const {
        return {group, symbols, in, out, constants, arch, tf32, batch_invariant, backwards};
    }

    kernels::Group group;
    std::vector<kernels::Operand> in;
    std::vector<kernels::Operand> out;
    std::vector<const std::byte*> constants;
    Symbols symbols;
    const kernels::Arch& arch;
    bool tf32;
    bool batch_invariant;
    bool backwards;
};

class KernelReuse {
public:
    using Use = std::function<void(const kernels::Tactic&, const kernels::Emitted&)>;

    /// Starts another plan.
    void begin_plan() { *this = {}; }
    /// Adds the next step of the plan, with its tactics, best first. Calls `use` with the choice:
    /// at once for a single tactic, else in finish(). Returns the largest scratch memory of the
    /// candidates.
    int64_t add(const kernels::Family& family, const kernels::Problem& problem,
                const std::vector<kernels::Tactic>& tactics, Use use);
    /// Decides, once all steps are added.
    void finish();

private:
    struct Candidate {
        double cost_us = 0; // above the best
        size_t tactic = 0;
        int variant = 0;
        std::vector<size_t> texts;
    };
    struct Choices {
        std::vector<Candidate> candidates;
        double steps = 0;
        size_t chosen = 0;
    };
    struct Step {
        size_t choices;
        const kernels::Family* family;
        KeptProblem problem;
        std::vector<kernels::Tactic> tactics;
        Use use;
    };

    std::vector<size_t> texts_of(const kernels::Emitted& e);
    Choices choices_of(const kernels::Family& family, const kernels::Problem& problem,
                       const std::vector<kernels::Tactic>& tactics, kernels::Emitted& best);
    const Candidate* cheapest(const Choices& c, size_t without) const;
    double worth_of_a_text() const;
    void open_texts();
    void close_texts();
    void choose();

    std::map<std::string, size_t> numbers_; // of texts, by hash
    std::vector<bool> open_;                // by number: used in the plan
    std::map<std::string, size_t> known_;   // by problem
    std::vector<Choices> choices_;
    std::vector<Step> steps_;
    double total_us_ = 0;
};

} // namespace ingot::cuda
