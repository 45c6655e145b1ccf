// SPDX-License-Identifier: Apache-2.0
// FamilyStep: the launches that a family emitted, with addresses filled in as arguments.
#include "backends/cuda/options.h"
#include "backends/cuda/run/kept_launches.h"
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
    FamilyStep(CudaDevice& device, std::string what) : device_(device), what_(std::move(what)) {}

    void reserve_scratch(int64_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

    void set_choice(plan::ChoiceReport choice) { choice_ = std::move(choice); }

    void report(plan::StepReport& to) override {
        if (choice_) {
            to.choices.push_back(*choice_);
        }
        list().report(to.launches);
    }

    void set(std::shared_ptr<MadeLaunches> made) {
        scratch_bytes_ = std::max(scratch_bytes_, made->scratch());
        made_ = std::move(made);
        waits_ = !complete_ && scratch_bytes_ == 0 && made_->joinable() != nullptr;
        if (!waits_) {
            list();
        }
    }

    std::shared_ptr<const MadeLaunches> waiting() const override {
        return waits_ ? made_ : nullptr;
    }
    void start() override {
        complete_ = true;
        if (std::exchange(waits_, false)) {
            list();
        }
    }

    bool get_ready() noexcept override {
        return succeeds([this] {
            compile();
            list().make_state();
        });
    }

    void repeats() noexcept override { made_->repeats(); }

    Status run(const RunContext& c) noexcept override {
        return launched(c, [&] {
            compile();
            list().run(c.buffers, scratch < 0 ? nullptr : c.buffers[scratch]);
        });
    }

    std::string implementation() const override {
        return made_ == nullptr ? std::string() : made_->tactic();
    }
    int64_t scratch_bytes() const override { return scratch_bytes_; }
    bool recordable() const override { return true; }
    bool is_stale() const override { return made_ != nullptr && made_->is_stale(); }

private:
    LaunchList& list() {
        CHECK(made_ != nullptr, what_, " was left without kernels by its plan");
        return made_->list(device_, what_);
    }

    void compile() {
        if (!compiled_) {
            start();
            wait_for_kernels();
        }
    }

    /// Waits for the compiler; replaces a kernel that it rejects by the generic tactic.
    void wait_for_kernels() {
        try {
            list().wait();
        } catch (const Error& e) {
            if (made_->generic() == nullptr || e.code() != ErrorCode::Internal) {
                throw;
            }
            log(LogLevel::Warning, "cuda: ", what_, ", tactic ", made_->tactic(),
                " does not compile, the generic one runs instead: ", e.what());
            Emitted generic = made_->generic()();
            require(generic.scratch <= scratch_bytes_, ErrorCode::Internal, what_,
                    ": the generic tactic needs more memory than was planned");
            set(std::make_shared<MadeLaunches>(std::move(generic), "generic", false));
            if (choice_) {
                choice_->reason = plan::ChoiceReason::Fallback;
                choice_->tactic = "generic";
            }
            list().wait();
        }
        compiled_ = true;
    }

    CudaDevice& device_;
    std::string what_;
    bool complete_ = false; // the plan is complete
    bool waits_ = false;    // for others to join
    std::shared_ptr<MadeLaunches> made_;
    std::optional<plan::ChoiceReport> choice_; // nullopt: there is none to make
    bool compiled_ = false;
    int64_t scratch_bytes_ = 0;
};

std::shared_ptr<MadeLaunches> make_launches(Emitted e, std::string tactic, CudaDevice& device,
                                            MadeLaunches::Emit generic = nullptr) {
    bool joins = e.scratch == 0 && e.launches.size() == 1 &&
                 e.launches[0].grid[0] <= kernels::most_joined_blocks(device.arch()) &&
                 kernels::can_join(e.launches[0]);
    return std::make_shared<MadeLaunches>(std::move(e), std::move(tactic), joins,
                                          std::move(generic));
}

/// Keeps copies of operands and symbols; the program keeps the graph.
MadeLaunches::Emit generic_of(const Family& family, const Problem& problem,
                              const std::vector<Tactic>& tactics) {
    if (tactics.size() == 1) {
        return nullptr;
    }
    return [kept = KeptProblem(problem), &family, generic = tactics.back()] {
        return family.emit(kept.problem(), generic);
    };
}

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
            const std::shared_ptr<KnownProblem>& known, CudaDevice& device, const Node& node) {
    const CudaState& state = device.state();
    const std::string& layer = node.name;
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
    auto use = [&step, &device, &family, &node, name, known](const Problem& p, size_t number,
                                                             int variant, ChoiceReason reason) {
        Tactic t = known->tactics[number];
        t.variant = variant;
        auto make = [&] {
            return make_launches(family.emit(p, t), name(t), device,
                                 generic_of(family, p, known->tactics));
        };
        auto made = device.timeline() == nullptr
                        ? device.kept_launches().find({node, known, number, variant, p}, make)
                        : make();
        int64_t scratch = made->scratch();
        step.set(std::move(made));
        step.set_choice(choice_report(known->tactics, t, reason));
        return scratch;
    };
    const ProfilePrograms* profile = state.profile_programs.get();
    if (it == tactics.end() && !timed && profile != nullptr && !profile->is_open()) {
        if (!known->in_profile) {
            ProfilePrograms::Choice c = profile->choose(family, problem, tactics);
            known->in_profile = {c.tactic, c.variant};
        }
        auto [number, variant] = *known->in_profile;
        use(problem, number, variant, number == 0 ? ChoiceReason::Model : ChoiceReason::Profile);
    } else if (it == tactics.end() && state.tuner == nullptr) {
        auto use_model = [use, known](const Problem& p, size_t number, int variant) {
            bool first = known->tactics[number].name == known->tactics[0].name && variant == 0;
            return use(p, number, variant, first ? ChoiceReason::Model : ChoiceReason::Shared);
        };
        step.reserve_scratch(device.reuse().add(family, problem, known, use_model));
    } else {
        step.set(make_launches(family.emit(problem, tactics[tactic]), name(tactics[tactic], timed),
                               device, generic_of(family, problem, tactics)));
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

static bool has_exact_product(const Group& group) {
    return std::any_of(group.nodes.begin(), group.nodes.end(),
                       [](const Node& n) { return n.is(dot_def) && n.as<Dot>().exact; });
}

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
                    device.state().options.tf32 && !has_exact_product(args.group) &&
                        !multiplies_by_dft_basis(args),
                    args.options.batch_invariant};
    problem.backwards = device.tile_order().add(problem);
    std::string what = layer_text(args.node.name, family.name);
    std::shared_ptr<KnownProblem> known = device.reuse().known(family, problem, [&] {
        std::vector<Tactic> made = family.tactics(problem);
        CHECK(!made.empty(), "family ", family.name, " has no tactic for a node it accepted");
        keep_to_workspace(made, family, problem, args.options, what);
        return made;
    });
    auto step = std::make_unique<FamilyStep>(device, what);
    choose(*step, family, problem, known, device, args.node);
    return step;
}

std::unique_ptr<Step> make_device_copy(const Operand& from, const Operand& to, Device& device) {
    auto& cuda = static_cast<CudaDevice&>(device);
    auto step = std::make_unique<FamilyStep>(cuda, "a copy");
    step->set(make_launches(kernels::emit_copy(from, to, cuda.arch()), "copy", cuda));
    return step;
}

} // namespace ingot::cuda
