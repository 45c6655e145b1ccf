// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/tune/kernel_reuse.h"

#include "backends/cuda/tune/tuning_job.h"
#include "base/hash.h"

#include <algorithm>
#include <set>

namespace ingot::cuda {

using kernels::Emitted;
using kernels::Family;
using kernels::Operand;
using kernels::Problem;
using kernels::Tactic;

namespace {

/// The excess cost of an acceptable tactic: the resolution of the cost model.
constexpr double slack_us = 0.3;
constexpr double slack = 0.05;
/// The extra cost of a more general program.
constexpr double variant_us = 0.02;
constexpr double variant_part = 0.003;
/// The value of saving one kernel, in time and as a share of a run.
constexpr double worth_us = 0.4;
constexpr double worth_part = 0.0008;
/// The cost of a problem without a kernel.
constexpr double unserved = 1e6;
constexpr size_t none = SIZE_MAX; // no text

/// Equal for equal texts: device files are identified by name.
std::string hash_of(const kernels::Launch& l) {
    HashStream s(false);
    auto add = [&s](std::string_view part) {
        s.add(std::as_bytes(std::span(part)));
        s.add(std::as_bytes(std::span("\n", 1)));
    };
    add(l.entry);
    for (std::string_view file : l.program.uses) {
        add(file);
    }
    add(generated_text(l.program));
    add(l.program.family);
    return to_text(s.xxh3());
}

/// Which operands and results lie where an earlier one does, or elsewhere in its buffer: tactics
/// and their scratch memory may depend on it.
std::string sharing_text(const Problem& p) {
    std::vector<const Operand*> all;
    for (std::span<const Operand> part : {p.in, p.out}) {
        for (const Operand& o : part) {
            all.push_back(&o);
        }
    }
    std::string text;
    for (size_t i = 0; i < all.size(); ++i) {
        auto shares = [o = all[i]](const Operand* other) { return other->buffer == o->buffer; };
        auto same = [&](const Operand* other) {
            return shares(other) && other->view.offset == all[i]->view.offset;
        };
        auto first = [&](const auto& what) {
            return static_cast<size_t>(std::find_if(all.begin(), all.end(), what) - all.begin());
        };
        if (first(shares) < i) {
            append(text, first(same) < i ? str(' ', i, '=', first(same))
                                         : str(' ', i, '~', first(shares)));
        }
    }
    return text;
}

/// Looks at the tactics that are nearly as good as the best, and at their variants.
void find_candidates(KnownProblem& known, const Family& family, const Problem& problem) {
    const std::vector<Tactic>& tactics = known.tactics;
    double most = tactics[0].cost_us * (1 + slack) + slack_us;
    for (size_t i = 0; i < tactics.size() && (i == 0 || tactics[i].cost_us <= most); ++i) {
        for (int v = 0; v < family.variants; ++v) {
            Tactic t = tactics[i];
            t.variant = v;
            Emitted e = family.emit(problem, t);
            double variant = v == 0 ? 0 : variant_us + variant_part * t.cost_us;
            KnownProblem::Candidate c{t.cost_us - tactics[0].cost_us + variant, i, v, {}};
            for (const kernels::Launch& l : e.launches) {
                c.texts.push_back(hash_of(l));
            }
            known.texts.insert(known.texts.end(), c.texts.begin(), c.texts.end());
            bool best = i == 0 && v == 0;
            known.scratch = best ? e.scratch : known.scratch;
            bool seen =
                std::any_of(known.candidates.begin(), known.candidates.end(),
                            [&c](const KnownProblem::Candidate& o) { return o.texts == c.texts; });
            if (best || (!seen && e.scratch <= known.scratch)) {
                known.candidates.push_back(std::move(c));
            }
        }
    }
}

} // namespace

void KernelReuse::begin_plan() {
    numbers_.clear();
    open_.clear();
    in_plan_.clear();
    choices_.clear();
    steps_.clear();
    total_us_ = 0;
}

std::shared_ptr<KnownProblem> KernelReuse::known(const Family& family, const Problem& problem,
                                                 const std::function<std::vector<Tactic>()>& make) {
    constexpr size_t most_problems = 1000; // of about 20 KB each
    std::string& nodes = group_texts_[problem.group.nodes.data()];
    if (nodes.empty()) {
        nodes = group_text(family, problem.group);
    }
    std::string text = nodes;
    add_operands(text, problem);
    append(text, sharing_text(problem));
    for (const auto& [name, size] : problem.symbols) { // attributes may be in terms of them
        if (nodes.find(name) != std::string::npos) {
            append(text, str(' ', name, '=', size));
        }
    }
    if (auto it = problems_.find(text); it != problems_.end()) {
        return it->second;
    }
    if (problems_.size() >= most_problems) {
        problems_.clear();
    }
    auto fresh = std::make_shared<KnownProblem>();
    fresh->tactics = make();
    problems_.emplace(std::move(text), fresh);
    return fresh;
}

size_t KernelReuse::number_of(const std::string& text) {
    return numbers_.emplace(text, numbers_.size()).first->second;
}

KernelReuse::Choices KernelReuse::numbered(const KnownProblem& known) {
    for (const std::string& text : known.texts) {
        number_of(text);
    }
    open_.resize(numbers_.size(), false);
    Choices out;
    for (const KnownProblem::Candidate& k : known.candidates) {
        Candidate c{k.cost_us, k.tactic, k.variant, {}};
        for (const std::string& text : k.texts) {
            c.texts.push_back(number_of(text));
        }
        out.candidates.push_back(std::move(c));
    }
    return out;
}

int64_t KernelReuse::add(const Family& family, const Problem& problem,
                         const std::shared_ptr<KnownProblem>& known, Use use) {
    const std::vector<Tactic>& tactics = known->tactics;
    total_us_ += tactics[0].cost_us;
    if (tactics.size() == 1 && family.variants == 1) {
        return use(problem, 0, 0);
    }
    if (known->candidates.empty()) {
        find_candidates(*known, family, problem);
    }
    auto [it, fresh] = in_plan_.emplace(known, choices_.size());
    if (fresh) {
        choices_.push_back(numbered(*known));
    }
    Choices& c = choices_[it->second];
    c.steps += 1;
    if (c.candidates.size() == 1) {
        return use(problem, 0, 0);
    }
    steps_.push_back({it->second, KeptProblem(problem), std::move(use)});
    return known->scratch;
}

/// The cheapest candidate whose texts are all open; `without` counts as closed.
const KernelReuse::Candidate* KernelReuse::cheapest(const Choices& c, size_t without) const {
    const Candidate* best = nullptr;
    for (const Candidate& o : c.candidates) {
        bool has = std::all_of(o.texts.begin(), o.texts.end(),
                               [&](size_t t) { return open_[t] && t != without; });
        if (has && (best == nullptr || o.cost_us < best->cost_us)) {
            best = &o;
        }
    }
    return best;
}

double KernelReuse::worth_of_a_text() const {
    return worth_us + worth_part * total_us_;
}

/// Opens the most valuable texts until every problem has one and no further text pays.
void KernelReuse::open_texts() {
    for (;;) {
        std::map<std::vector<size_t>, double> gains;
        for (const Choices& c : choices_) {
            const Candidate* now = cheapest(c, none);
            double cost = now == nullptr ? unserved : c.steps * now->cost_us;
            for (const Candidate& o : c.candidates) {
                gains[o.texts] += std::max(0.0, cost - c.steps * o.cost_us);
            }
        }
        const std::vector<size_t>* best = nullptr;
        double most = 0;
        for (const auto& [texts, gain] : gains) {
            auto closed =
                std::count_if(texts.begin(), texts.end(), [this](size_t t) { return !open_[t]; });
            double net = gain - static_cast<double>(closed) * worth_of_a_text();
            if (closed > 0 && net > most) {
                most = net;
                best = &texts;
            }
        }
        if (best == nullptr) {
            return;
        }
        for (size_t t : *best) {
            open_[t] = true;
        }
    }
}

/// Closes texts that others can replace, one by one.
void KernelReuse::close_texts() {
    for (;;) {
        std::vector<double> losses(open_.size(), 0);
        for (const Choices& c : choices_) {
            const Candidate* now = cheapest(c, none);
            for (size_t t : now->texts) {
                const Candidate* then = cheapest(c, t);
                losses[t] += then == nullptr ? unserved : c.steps * (then->cost_us - now->cost_us);
            }
        }
        size_t least = none;
        for (size_t t = 0; t < open_.size(); ++t) {
            if (open_[t] && losses[t] < (least == none ? worth_of_a_text() : losses[least])) {
                least = t;
            }
        }
        if (least == none) {
            return;
        }
        open_[least] = false;
    }
}

/// Chooses among the open texts. A problem that turns out to share none of its texts takes its best
/// candidate, closed so far, where that has no more texts: texts open one by one, so the sharer for
/// which one was opened may have found a better one since.
void KernelReuse::choose() {
    auto texts = [](const Candidate& c) { return std::set(c.texts.begin(), c.texts.end()); };
    std::vector<size_t> users(open_.size(), 0);
    for (Choices& c : choices_) {
        c.chosen = static_cast<size_t>(cheapest(c, none) - c.candidates.data());
        for (size_t t : texts(c.candidates[c.chosen])) {
            users[t] += 1;
        }
    }
    for (Choices& c : choices_) {
        std::set<size_t> now = texts(c.candidates[c.chosen]);
        bool alone =
            std::all_of(now.begin(), now.end(), [&users](size_t t) { return users[t] == 1; });
        if (alone && texts(c.candidates[0]).size() <= now.size()) {
            c.chosen = 0;
        }
    }
}

void KernelReuse::finish() {
    open_texts();
    close_texts();
    choose();
    for (const Step& s : steps_) {
        const Candidate& c = choices_[s.choices].candidates[choices_[s.choices].chosen];
        s.use(s.problem.problem(), c.tactic, c.variant);
    }
    begin_plan();
}

} // namespace ingot::cuda
