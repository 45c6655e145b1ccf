// SPDX-License-Identifier: Apache-2.0
#include "lower/canonical.h"

#include <algorithm>

namespace ingot::plan {

namespace {

class Ordering {
public:
    Ordering(const Expr& e, int leading)
        : from_(e), depends_(e.code.size()), at_(e.code.size(), -1) {
        for (size_t n = 0; n < e.code.size(); ++n) {
            const ExprInstr& i = e.code[n];
            depends_[n] = i.op == ExprOp::In && i.args[0] == leading;
            for (int k = 0; k < arity(i.op); ++k) {
                depends_[n] = depends_[n] || depends_[operand(i, k)];
            }
        }
        if (leading >= 0) {
            out.inputs.push_back(leading);
        }
    }

    int emit(size_t n) {
        if (at_[n] >= 0) {
            return at_[n];
        }
        ExprInstr i = from_.code[n];
        if (i.op == ExprOp::In) {
            i.args[0] = input(i.args[0]);
        }
        bool commutes = is_commutative(i.op) &&
                        ((i.op != ExprOp::Min && i.op != ExprOp::Max) || !is_float(i.type));
        if (commutes && rank(operand(i, 1)) < rank(operand(i, 0))) {
            std::swap(i.args[0], i.args[1]);
        }
        for (int k = 0; k < arity(i.op); ++k) {
            i.args[static_cast<size_t>(k)] = emit(operand(i, k));
        }
        out.body.code.push_back(i);
        at_[n] = static_cast<int>(out.body.code.size()) - 1;
        return at_[n];
    }

    int input(int old) {
        auto it = std::find(out.inputs.begin(), out.inputs.end(), old);
        if (it == out.inputs.end()) {
            out.inputs.push_back(old);
            return static_cast<int>(out.inputs.size()) - 1;
        }
        return static_cast<int>(it - out.inputs.begin());
    }

    CanonicalExpr out;

private:
    static size_t operand(const ExprInstr& i, int k) {
        return static_cast<size_t>(i.args[static_cast<size_t>(k)]);
    }

    int rank(size_t n) const {
        ExprOp op = from_.code[n].op;
        return depends_[n] ? 0 : op != ExprOp::In && op != ExprOp::Const ? 1 : 2;
    }

    const Expr& from_;
    std::vector<bool> depends_;
    std::vector<int> at_;
};

} // namespace

CanonicalExpr canonical(const Expr& e, int input_count, int leading) {
    Ordering order(e, leading);
    order.emit(e.code.size() - 1);
    for (int i = 0; i < input_count; ++i) {
        order.input(i);
    }
    return std::move(order.out);
}

} // namespace ingot::plan
