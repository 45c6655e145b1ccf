// SPDX-License-Identifier: Apache-2.0
// FamilyStep: the launches that a family emitted, with their arguments filled in as addresses
// become known.
#include "backends/cuda/launch_list.h"
#include "backends/cuda/steps.h"
#include "base/error.h"
#include "base/log.h"
#include "kernels/copy/copy.h"

#include <algorithm>
#include <functional>

namespace ingot::cuda {

namespace {

using kernels::Emitted;
using kernels::Family;
using kernels::Problem;
using kernels::Tactic;

class FamilyStep : public Step {
public:
    FamilyStep(CudaDevice& device, std::string what)
        : what_(what), specialise_(device.state().options.specialise),
          launches_(device, std::move(what)) {}

    /// Emits the launches of the family's generic tactic, for when the chosen one does not compile.
    void set_fallback(std::function<Emitted()> f) { fallback_ = std::move(f); }

    void set(const Emitted& e, std::string tactic) {
        launches_.set(e, specialise_);
        scratch_bytes_ = std::max(scratch_bytes_, e.scratch);
        tactic_ = std::move(tactic);
    }

    Status run(const RunContext& c) noexcept override {
        try {
            if (!compiled_) {
                wait_for_kernels();
            }
            launches_.run(c.buffers, scratch < 0 ? nullptr : c.buffers[scratch]);
        } catch (const Error& e) {
            c.error.set("%s", e.what());
            return {e.code(), "a kernel could not be launched"};
        } catch (const std::exception& e) {
            c.error.set("%s", e.what());
            return {ErrorCode::OutOfMemory, "a kernel could not be launched"};
        }
        return {};
    }

    std::string implementation() const override { return tactic_; }
    int64_t scratch_bytes() const override { return scratch_bytes_; }
    bool recordable() const override { return true; }
    bool is_stale() const override { return launches_.is_stale(); }

private:
    /// Waits for the compiler; a kernel that it refuses is replaced by the generic tactic.
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
            launches_.wait();
        }
        compiled_ = true;
    }

    std::string what_;
    Specialise specialise_;
    LaunchList launches_;
    std::string tactic_;
    std::function<Emitted()> fallback_;
    bool compiled_ = false;
    int64_t scratch_bytes_ = 0;
};

struct Choice {
    size_t tactic = 0;
    bool timed = false;
    Emitted emitted;
};

/// By the options, else by what was timed, else by the model, among what is compiled already.
Choice choose(const Family& family, const Problem& problem, const std::vector<Tactic>& tactics,
              CudaDevice& device, const std::string& what) {
    const CudaState& state = device.state();
    auto it = std::find_if(tactics.begin(), tactics.end(), [&](const Tactic& t) {
        return !state.options.force_tactic.empty() &&
               t.name.starts_with(state.options.force_tactic);
    });
    Choice c;
    if (it != tactics.end()) {
        c.tactic = static_cast<size_t>(it - tactics.begin());
    } else if (state.tuner != nullptr) {
        c.tactic = device.choices().choose(*state.tuner, family, problem, tactics, what, c.timed);
    }
    const ProfilePrograms* profile = state.profile_programs.get();
    if (it == tactics.end() && !c.timed && profile != nullptr && !profile->is_open()) {
        c.tactic = profile->choose(family, problem, tactics, c.emitted);
    } else if (it == tactics.end() && state.tuner == nullptr) {
        c.tactic = device.reuse().choose(family, problem, tactics, c.emitted);
    } else {
        c.emitted = family.emit(problem, tactics[c.tactic]);
    }
    return c;
}

} // namespace

std::unique_ptr<Step> make_family_step(const StepArgs& args) {
    const auto& family = *static_cast<const Family*>(args.kernel.family);
    auto& device = static_cast<CudaDevice&>(args.device);
    Problem problem{args.group,     args.symbols,  args.in,          args.out,
                    args.constants, device.arch(), args.options.tf32};
    std::vector<Tactic> tactics = family.tactics(problem);
    CHECK(!tactics.empty(), "family ", family.name, " has no tactic for a node it accepted");
    std::string what = str("node '", args.node.name, "' (", family.name, ")");
    Choice choice = choose(family, problem, tactics, device, what);
    const Tactic& t = tactics[choice.tactic];
    auto step = std::make_unique<FamilyStep>(device, std::move(what));
    step->set(choice.emitted, str(family.name, ' ', t.name, choice.timed ? " (timed)" : ""));
    if (t.name != tactics.back().name) {
        // The operands and symbols outlive the call, as copies; the graph by the program.
        struct Kept {
            std::vector<Operand> in;
            std::vector<Operand> out;
            std::vector<const std::byte*> constants;
            Symbols symbols;
        };
        Kept kept{{args.in.begin(), args.in.end()},
                  {args.out.begin(), args.out.end()},
                  {args.constants.begin(), args.constants.end()},
                  args.symbols};
        step->set_fallback([kept, &family, group = args.group, generic = tactics.back(),
                            &arch = device.arch(), tf32 = args.options.tf32] {
            return family.emit(
                Problem{group, kept.symbols, kept.in, kept.out, kept.constants, arch, tf32},
                generic);
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
