// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/expr_part.h"

#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::cpu {

ExprPart::ExprPart(const Expr& e, int known, DType stored) : e_(e) {
    if (known >= 0) {
        done_[known] = body.in(0, stored);
        inputs.push_back(-1);
    }
}

int ExprPart::take(int i) {
    if (auto at = done_.find(i); at != done_.end()) {
        return at->second;
    }
    ExprInstr x = e_.code[static_cast<size_t>(i)];
    for (int a = 0; a < plan::argument_count(x); ++a) {
        auto k = static_cast<size_t>(a);
        x.args[k] = take(x.args[k]);
    }
    if (x.op == ExprOp::In) {
        auto known = std::find(inputs.begin(), inputs.end(), x.args[0]);
        int index = static_cast<int>(known - inputs.begin());
        if (known == inputs.end()) {
            inputs.push_back(x.args[0]);
        }
        x.args[0] = index;
    }
    body.code.push_back(x);
    return done_[i] = static_cast<int>(body.code.size()) - 1;
}

} // namespace ingot::cpu
