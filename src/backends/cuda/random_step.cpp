// SPDX-License-Identifier: Apache-2.0
// RandomStep: the launches of a random op, for the run that comes. They are not recorded, since a
// recording would repeat the numbers.
#include "backends/cuda/launch_list.h"
#include "backends/cuda/steps.h"
#include "base/error.h"
#include "ops/primitives.h"

namespace ingot::cuda {

namespace {

class RandomStep : public Step {
public:
    explicit RandomStep(const StepArgs& a)
        : family_(*static_cast<const kernels::Family*>(a.kernel.family)),
          device_(static_cast<CudaDevice&>(a.device)), attrs_(a.node.as<Random>()), out_(a.out[0]),
          launches_(device_, str("node '", a.node.name, "' (random)")) {
        attrs_.dims = to_dims(out_.view.shape);
        emit_for(0);
    }

    Status run(const RunContext& c) noexcept override {
        return launched(c, [&] {
            if (c.device.runs != run_) {
                emit_for(c.device.runs);
            }
            launches_.wait();
            launches_.run(c.buffers, scratch < 0 ? nullptr : c.buffers[scratch]);
        });
    }

    std::string implementation() const override { return "random generic"; }
    int64_t scratch_bytes() const override { return scratch_bytes_; }

private:
    void emit_for(uint64_t run) {
        Graph g;
        Random attrs = attrs_;
        attrs.seed = plan::seed_of_run(attrs.seed, run);
        g.add1(random_def, attrs, {});
        Group group = group_of(g, g.nodes()[0]);
        Symbols none;
        kernels::Problem problem{group, none, {}, {&out_, 1}, {}, device_.arch()};
        kernels::Emitted e = family_.emit(problem, family_.tactics(problem).front());
        launches_.set(e, Specialise::None);
        scratch_bytes_ = e.scratch;
        run_ = run;
    }

    const kernels::Family& family_;
    CudaDevice& device_;
    Random attrs_;
    Operand out_;
    LaunchList launches_;
    int64_t scratch_bytes_ = 0;
    uint64_t run_ = 0;
};

} // namespace

std::unique_ptr<Step> make_random_step(const StepArgs& args) {
    return std::make_unique<RandomStep>(args);
}

} // namespace ingot::cuda
