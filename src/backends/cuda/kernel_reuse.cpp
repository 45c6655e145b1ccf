// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernel_reuse.h"

#include "base/hash.h"

#include <algorithm>

namespace ingot::cuda {

namespace {

/// A tactic may cost so much more than the best: what a cost model does not tell apart.
constexpr double slack_us = 0.3;
constexpr double slack = 0.06;

std::vector<std::string> keys_of(const kernels::Emitted& e) {
    std::vector<std::string> keys;
    for (const kernels::Launch& l : e.launches) {
        std::string text = kernels::full_text(l.program);
        HashStream s(false);
        s.add(std::as_bytes(std::span(l.entry)));
        s.add(std::as_bytes(std::span(text)));
        keys.push_back(to_text(s.xxh3()));
    }
    return keys;
}

} // namespace

bool KernelReuse::has(const std::vector<std::string>& keys) const {
    return std::all_of(keys.begin(), keys.end(),
                       [this](const std::string& k) { return known_.count(k) != 0; });
}

size_t KernelReuse::choose(const kernels::Family& family, const kernels::Problem& problem,
                           const std::vector<kernels::Tactic>& tactics, kernels::Emitted& emitted) {
    emitted = family.emit(problem, tactics[0]);
    std::vector<std::string> keys = keys_of(emitted);
    double most = tactics[0].cost_us * (1 + slack) + slack_us;
    for (size_t i = 1; !has(keys) && i < tactics.size() && tactics[i].cost_us <= most; ++i) {
        kernels::Emitted other = family.emit(problem, tactics[i]);
        if (has(keys_of(other))) {
            emitted = std::move(other);
            return i;
        }
    }
    known_.insert(keys.begin(), keys.end());
    return 0;
}

} // namespace ingot::cuda
