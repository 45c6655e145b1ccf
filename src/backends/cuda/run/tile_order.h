// SPDX-License-Identifier: Apache-2.0
// TileOrder: in which direction each product of a plan makes its tiles. One that reads the result
// of another goes the other way: L2 still holds the end of what was stored last.
#pragma once

#include "kernels/family.h"
#include "ops/ops.h"

#include <set>

namespace ingot::cuda {

class TileOrder {
public:
    /// Starts another plan.
    void begin_plan() { backwards_.clear(); }
    /// Takes the next step of the plan. True where it goes backwards: a product whose first operand
    /// was written forwards, as by all other kernels.
    bool add(const kernels::Problem& p) {
        const Node& n = p.group.first();
        bool product = n.is(dot_def) || n.is(ops::conv_def);
        bool back = product && backwards_.count(p.operand(n.inputs[0]).buffer) == 0;
        for (const kernels::Operand& o : p.out) {
            if (back) {
                backwards_.insert(o.buffer);
            } else {
                backwards_.erase(o.buffer);
            }
        }
        return back;
    }

private:
    std::set<int> backwards_; // buffers
};

} // namespace ingot::cuda
