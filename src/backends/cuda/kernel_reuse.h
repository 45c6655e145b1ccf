// SPDX-License-Identifier: Apache-2.0
// KernelReuse: of tactics that cost nearly the same, the one whose kernels the plan has already.
// Few different kernels compile sooner. A function of the plan's steps in their order, of nothing
// else.
#pragma once

#include "kernels/family.h"

#include <set>
#include <string>
#include <vector>

namespace ingot::cuda {

class KernelReuse {
public:
    /// Another plan is made.
    void begin_plan() { known_.clear(); }
    /// The place of the tactic, best first in `tactics`; `emitted` gets its launches.
    size_t choose(const kernels::Family& family, const kernels::Problem& problem,
                  const std::vector<kernels::Tactic>& tactics, kernels::Emitted& emitted);

private:
    bool has(const std::vector<std::string>& keys) const;

    std::set<std::string> known_;
};

} // namespace ingot::cuda
