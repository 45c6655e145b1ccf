// SPDX-License-Identifier: Apache-2.0
// TileOrder: in which direction each product of a plan makes its tiles. One that reads the result
// of another goes the other way: L2 still holds the end of what was stored last.
#pragma once

#include "kernels/family.h"
#include "ops/ops.h"

#include <algorithm>
#include <set>

namespace ingot::cuda {

class TileOrder {
public:
    /// Starts another plan.
    void begin_plan() { backwards_.clear(); }
    /// Takes the next step of the plan. True where it goes backwards: a product whose first operand
    /// was written forwards, as by all other kernels, a norm before it in its own step among them.
    bool add(const kernels::Problem& p) {
        const Node& n = p.group.first();
        bool product = std::any_of(p.group.nodes.begin(), p.group.nodes.end(), is_product);
        bool back =
            product && (!is_product(n) || backwards_.count(p.operand(n.inputs[0]).buffer) == 0);
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
    static bool is_product(const Node& n) { return n.is(dot_def) || n.is(ops::conv_def); }

    std::set<int> backwards_; // buffers
};

} // namespace ingot::cuda
