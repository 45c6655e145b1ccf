// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/kept_launches.h"

namespace ingot::cuda {

static constexpr uint64_t few_plans = 8;

LaunchList& MadeLaunches::list(CudaDevice& device, const std::string& what) {
    if (list_ == nullptr) {
        auto list = std::make_unique<LaunchList>(device, what);
        list->set(emitted_, device.state().options.specialise, tactic_);
        list_ = std::move(list);
        if (!can_join_) {
            emitted_ = {};
        }
    }
    return *list_;
}

const std::string& MadeLaunches::joinable_text() const {
    if (joinable_text_.empty()) {
        joinable_text_ = kernels::short_text(joinable()->program);
    }
    return joinable_text_;
}

KeptLaunches::Key::Key(const Node& n, std::shared_ptr<const KnownProblem> p, size_t t, int v,
                       const kernels::Problem& problem)
    : node(&n), known(std::move(p)), tactic(t), variant(v), backwards(problem.backwards),
      constants(problem.constants.begin(), problem.constants.end()) {
    for (std::span<const Operand> part : {problem.in, problem.out}) {
        for (const Operand& o : part) {
            places.insert(places.end(), {o.buffer, o.view.offset});
            places.insert(places.end(), o.view.strides.begin(), o.view.strides.end());
        }
    }
}

std::shared_ptr<PendingKernel>& KeptLaunches::joined_kernel(const Parts& parts) {
    std::vector<std::string> key;
    for (const auto& part : parts) {
        key.push_back(part->joinable_text());
    }
    return *find_in(joined_kernels_, std::move(key),
                    [] { return std::make_shared<std::shared_ptr<PendingKernel>>(); });
}

void KeptLaunches::end_plan() {
    auto unused = [this](const auto& entry) { return entry.second.plan + few_plans <= plan_; };
    std::erase_if(steps_, unused);
    std::erase_if(joined_, unused);
    std::erase_if(joined_kernels_, unused);
}

void KeptLaunches::clear() {
    steps_.clear();
    joined_.clear();
    joined_kernels_.clear();
}

} // namespace ingot::cuda
