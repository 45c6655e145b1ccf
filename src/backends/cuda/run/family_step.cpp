// SPDX-License-Identifier: Apache-2.0
// FamilyStep: the launches that a family emitted, with addresses filled in as arguments.
#include "backends/cuda/options.h"
#include "backends/cuda/run/launch_list.h"
#include "backends/cuda/run/steps.h"
#include "base/error.h"
#include "base/log.h"
#include "kernels/common/joined_launch.h"
#include "kernels/copy/copy.h"
#include "ops/dft_basis.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace ingot::cuda {

namespace {

using kernels::Emitted;
using kernels::Family;
using kernels::Problem;
using kernels::Tactic;

class FamilyStep : public JoinableStep, public ReadyStep, public plan::LaunchReporter {
public:
    FamilyStep(CudaDevice& device, std::string what)
        : what_(what), specialise_(device.state().options.specialise),
          most_blocks_(kernels::most_joined_blocks(device.arch())),
          launches_(device, std::move(what)) {}

    /// Emits the launches of the generic tactic, for a chosen one that does not compile.
    void set_fallback(std::function<Emitted()> f) { fallback_ = std::move(f); }

    void reserve_scratch(int64_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

    void set_choice(plan::ChoiceReport choice) { choice_ = std::move(choice); }

    void report(plan::StepReport& to) override {
        if (choice_) {
            to.choices.push_back(*choice_);
        }
        launches_.report(to.launches);
    }

    void set(Emitted e, std::string tactic) {
        scratch_bytes_ = std::max(scratch_bytes_, e.scratch);
        tactic_ = std::move(tactic);
        bool joins = !complete_ && scratch_bytes_ == 0 && e.launches.size() == 1 &&
                     e.launches[0].grid[0] <= most_blocks_ && kernels::can_join(e.launches[0]);
        if (joins) {
            waiting_ = std::move(e);
        } else {
            launches_.set(e, specialise_, tactic_);
        }
    }

    const kernels::Launch* waiting() const override {
        return waiting_ ? waiting_->launches.data() : nullptr;
    }
    void start() override {
        complete_ = true;
        if (std::optional<Emitted> e = std::exchange(waiting_, std::nullopt)) {
            launches_.set(*e, specialise_, tactic_);
        }
    }

    bool get_ready() noexcept override {
        return succeeds([this] {
            compile();
            launches_.make_state();
        });
    }

    Status run(const RunContext& c) noexcept override {
        return launched(c, [&] {
            compile();
            launches_.run(c.buffers, scratch < 0 ? nullptr : c.buffers[scratch]);
        });
    }

    std::string implementation() const override { return tactic_; }
    int64_t scratch_bytes() const override { return scratch_bytes_; }
    bool recordable() const override { return true; }
    bool is_stale() const override { return launches_.is_stale(); }

private:
    void compile() {
        CHECK(!tactic_.empty(), what_, " was left without kernels by its plan");
        if (!compiled_) {
            start();
            wait_for_kernels();
        }
    }

    /// Waits for the compiler; replaces a kernel that it rejects by the generic tactic.
    void wait_for_kernels() {
        try {
            launches_.wait();
        } catch (const Error& e) {
            if (fallback_ == nullptr || e.code() != ErrorCode::Internal) {
                throw;
            }
            log(LogLevel::Warning, "cuda: ", what_, ", tactic ", tactic_,
                " does not compile, the generic one runs instead: ", e.what());
            Emitted generic = fallback_();
            require(generic.scratch <= scratch_bytes_, ErrorCode::Internal, what_,
                    ": the generic tactic needs more memory than was planned");
            set(generic, "generic");
            if (choice_) {
                choice_->reason = plan::ChoiceReason::Fallback;
                choice_->tactic = "generic";
            }
            launches_.wait();
        }
        compiled_ = true;
    }

    std::string what_;
    Specialise specialise_;
    int64_t most_blocks_;
    bool complete_ = false; // the plan is complete
    std::optional<Emitted> waiting_;
    LaunchList launches_;
    std::string tactic_;
    std::optional<plan::ChoiceReport> choice_; // nullopt: there is none to make
    std::function<Emitted()> fallback_;
    bool compiled_ = false;
    int64_t scratch_bytes_ = 0;
};

/// The cheapest other tactic by the model is the runner-up.
plan::ChoiceReport choice_report(const std::vector<Tactic>& tactics, const Tactic& chosen,
                                 plan::ChoiceReason reason) {
    plan::ChoiceReport r;
    r.tactic = chosen.name;
    r.reason = tactics.size() == 1 ? plan::ChoiceReason::Only : reason;
    r.predicted_us = chosen.cost_us;
    r.candidates = static_cast<int64_t>(tactics.size());
    for (const Tactic& t : tactics) {
        if (t.name != chosen.name && (r.runner_up.empty() || t.cost_us < r.runner_up_us)) {
            r.runner_up = t.name;
            r.runner_up_us = t.cost_us;
        }
    }
    if (r.reason == plan::ChoiceReason::Model && r.candidates > 1 &&
        r.runner_up_us < r.predicted_us) {
        r.reason = plan::ChoiceReason::Preferred;
    }
    return r;
}

/// Selects the step's launches by the options, else by timings, else by the cost model; tactics
/// with similar cost are decided when the plan is complete.
void choose(FamilyStep& step, const Family& family, const Problem& problem,
            const std::shared_ptr<KnownProblem>& known, CudaDevice& device,
            const std::string& layer) {
    const CudaState& state = device.state();
    const std::vector<Tactic>& tactics = known->tactics;
    auto name = [&family](const Tactic& t, bool timed = false) {
        return implementation_text(family.name, t.name, timed);
    };
    auto it = std::find_if(tactics.begin(), tactics.end(), [&](const Tactic& t) {
        return !state.options.force_tactic.empty() &&
               t.name.starts_with(state.options.force_tactic);
    });
    size_t tactic = 0;
    bool timed = false;
    if (it != tactics.end()) {
        tactic = static_cast<size_t>(it - tactics.begin());
    } else if (state.tuner != nullptr) {
        tactic = device.choices().choose(*state.tuner, family, problem, tactics, layer, timed);
    }
    using plan::ChoiceReason;
    const ProfilePrograms* profile = state.profile_programs.get();
    if (it == tactics.end() && !timed && profile != nullptr && !profile->is_open()) {
        Emitted emitted;
        tactic = profile->choose(family, problem, tactics, emitted);
        step.set(std::move(emitted), name(tactics[tactic]));
        step.set_choice(choice_report(tactics, tactics[tactic],
                                      tactic == 0 ? ChoiceReason::Model : ChoiceReason::Profile));
    } else if (it == tactics.end() && state.tuner == nullptr) {
        auto use = [&step, name, known](const Tactic& t, const Emitted& e) {
            bool first = t.name == known->tactics[0].name && t.variant == 0;
            step.set(e, name(t));
            step.set_choice(choice_report(known->tactics, t,
                                          first ? ChoiceReason::Model : ChoiceReason::Shared));
        };
        step.reserve_scratch(device.reuse().add(family, problem, known, use));
    } else {
        step.set(family.emit(problem, tactics[tactic]), name(tactics[tactic], timed));
        step.set_choice(choice_report(tactics, tactics[tactic],
                                      timed                 ? ChoiceReason::Timed
                                      : it != tactics.end() ? ChoiceReason::Forced
                                                            : ChoiceReason::Model));
    }
}

/// Drops tactics above the workspace limit of a step; the generic one stays if all exceed it.
void keep_to_workspace(std::vector<Tactic>& tactics, const Family& family, const Problem& problem,
                       const CompileOptions& options, const std::string& what) {
    if (options.workspace == std::numeric_limits<int64_t>::max()) {
        return;
    }
    auto generic = tactics.back();
    std::erase_if(tactics, [&](const Tactic& t) {
        int64_t bytes = family.emit(problem, t).scratch;
        if (bytes > options.workspace && options.on_limit) {
            options.on_limit(str(what, ": tactic ", t.name, " is skipped, it needs ", bytes,
                                 " bytes of workspace, the limit is ", options.workspace));
        }
        return bytes > options.workspace;
    });
    if (tactics.empty()) {
        tactics.push_back(std::move(generic)); // the planner reports its requirement
    }
}

} // namespace

/// Whether it multiplies by a matrix of a Fourier transform, of whose results TF32 loses the small
/// ones.
static bool multiplies_by_dft_basis(const StepArgs& a) {
    bool multiplies = std::any_of(a.group.nodes.begin(), a.group.nodes.end(), [](const Node& n) {
        return n.is(dot_def) || n.is(ops::conv_def) || n.is(ops::conv_transpose_def);
    });
    for (size_t i = 0; multiplies && i < a.in.size(); ++i) {
        const plan::View& v = a.in[i].view;
        if (a.constants[i] == nullptr || a.in[i].dtype != DType::F32 || v.count() == 0) {
            continue;
        }
        const StoredConstant& c = *a.constants[i];
        if (c.is_gathered() && c.dtype() != DType::F32) {
            continue;
        }
        auto value = [&](int64_t at) {
            float x = 0;
            auto index = static_cast<size_t>(c.source_index(v.offset + at));
            c.source().read(index * sizeof(x), std::as_writable_bytes(std::span(&x, 1)),
                            ThreadPool::shared());
            return x;
        };
        if (is_dft_basis(value, v.shape, v.strides)) {
            return true;
        }
    }
    return false;
}

std::unique_ptr<Step> make_family_step(const StepArgs& args) {
    const auto& family = *static_cast<const Family*>(args.kernel.family);
    auto& device = static_cast<CudaDevice&>(args.device);
    std::vector<const std::byte*> constants = constant_marks(args);
    Problem problem{args.group,
                    args.symbols,
                    args.in,
                    args.out,
                    constants,
                    device.arch(),
                    device.state().options.tf32 && !multiplies_by_dft_basis(args),
                    args.options.batch_invariant};
    problem.backwards = device.tile_order().add(problem);
    std::string what = layer_text(args.node.name, family.name);
    std::shared_ptr<KnownProblem> known = device.reuse().known(family, problem, [&] {
        std::vector<Tactic> made = family.tactics(problem);
        CHECK(!made.empty(), "family ", family.name, " has no tactic for a node it accepted");
        keep_to_workspace(made, family, problem, args.options, what);
        return made;
    });
    const std::vector<Tactic>& tactics = known->tactics;
    auto step = std::make_unique<FamilyStep>(device, what);
    choose(*step, family, problem, known, device, args.node.name);
    if (tactics.size() > 1) {
        // Keeps copies of operands and symbols; the program keeps the graph.
        step->set_fallback([kept = KeptProblem(problem), &family, generic = tactics.back()] {
            return family.emit(kept.problem(), generic);
        });
    }
    return step;
}

std::unique_ptr<Step> make_device_copy(const Operand& from, const Operand& to, Device& device) {
    auto& cuda = static_cast<CudaDevice&>(device);
    auto step = std::make_unique<FamilyStep>(cuda, "a copy");
    step->set(kernels::emit_copy(from, to, cuda.arch()), "copy");
    return step;
}

} // namespace ingot::cuda
