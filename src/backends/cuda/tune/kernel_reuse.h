// SPDX-License-Identifier: Apache-2.0
// KernelReuse: chooses among tactics and variants of nearly equal cost for all steps of a plan
// together, so that the plan has few different kernels, which compile sooner. Depends on the plan's
// steps in their order alone.
#pragma once

#include "kernels/family.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
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

/// A problem of any plan: a decoder's next token is a new shape, in which few problems are new.
struct KnownProblem {
    struct Candidate {
        double cost_us = 0; // above the best
        size_t tactic = 0;
        int variant = 0;
        std::vector<std::string> texts; // hashes
    };
    std::vector<kernels::Tactic> tactics; // best first
    std::vector<Candidate> candidates;    // empty until a plan asks for them
    std::vector<std::string> texts;       // of all that were looked at, in their order
    int64_t scratch = 0;                  // of the best
    /// A tactic and its variant whose programs a profile has; unset until a plan asks.
    std::optional<std::pair<size_t, int>> in_profile;
};

class KernelReuse {
public:
    /// Takes the choice: a tactic of the known problem, by number, and its variant. Returns the
    /// bytes of scratch memory.
    using Use = std::function<int64_t(const kernels::Problem&, size_t tactic, int variant)>;

    /// Starts another plan.
    void begin_plan();
    /// The problem, with the tactics from `make` the first time. The graph of its group must stay
    /// where it is.
    std::shared_ptr<KnownProblem> known(const kernels::Family& family,
                                        const kernels::Problem& problem,
                                        const std::function<std::vector<kernels::Tactic>()>& make);
    /// Adds the next step of the plan. Calls `use` with the choice: at once for a single tactic,
    /// else in finish(). Returns the largest scratch memory of the candidates.
    int64_t add(const kernels::Family& family, const kernels::Problem& problem,
                const std::shared_ptr<KnownProblem>& known, Use use);
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
        KeptProblem problem;
        Use use;
    };

    size_t number_of(const std::string& text);
    Choices numbered(const KnownProblem& known);
    const Candidate* cheapest(const Choices& c, size_t without) const;
    double worth_of_a_text() const;
    void open_texts();
    void close_texts();
    void choose();

    std::unordered_map<const Node*, std::string> group_texts_;                // by the first node
    std::unordered_map<std::string, std::shared_ptr<KnownProblem>> problems_; // of all plans
    std::map<std::string, size_t> numbers_;                                   // of texts, by hash
    std::vector<bool> open_;                                        // by number: used in the plan
    std::map<std::shared_ptr<const KnownProblem>, size_t> in_plan_; // the place in choices_
    std::vector<Choices> choices_;
    std::vector<Step> steps_;
    double total_us_ = 0;
};

} // namespace ingot::cuda
