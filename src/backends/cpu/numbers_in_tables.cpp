// SPDX-License-Identifier: Apache-2.0
// numbers_in_tables: the scales and zero points that a function of one byte reads (an activation
// between two quantisations) become part of its expression, which is a table then.
#include "backends/cpu/byte_tables.h"
#include "backends/cpu/numbers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

/// A map's body with numbers in place of the inputs that its tables read.
class WithNumbers {
public:
    /// `numbers`: the constants among the inputs that have one element, null for others.
    WithNumbers(const Expr& e, const std::vector<const Tensor*>& numbers)
        : e_(e), numbers_(numbers) {
        std::vector<bool> known;
        for (const Tensor* t : numbers) {
            known.push_back(t != nullptr);
        }
        tables_ = cpu::byte_tables(e, known);
        take(static_cast<int>(e.code.size()) - 1, -1);
    }

    Expr body;
    std::vector<int> inputs; // of the whole expression
    bool changed = false;

private:
    static size_t at(int i) { return static_cast<size_t>(i); }

    /// `from`: the byte of the table that reads instruction i; -1 outside of tables.
    int take(int i, int from) {
        if (i == from) {
            from = -1;
        }
        if (auto done = done_.find({i, from}); done != done_.end()) {
            return done->second;
        }
        ExprInstr x = e_.code[at(i)];
        int inside = from < 0 ? tables_[at(i)] : from;
        for (int a = 0; a < argument_count(x); ++a) {
            x.args[at(a)] = take(x.args[at(a)], inside);
        }
        if (x.op == ExprOp::In) {
            x = input(x, from >= 0);
        }
        body.code.push_back(x);
        return done_[{i, from}] = static_cast<int>(body.code.size()) - 1;
    }

    ExprInstr input(ExprInstr x, bool inside) {
        const Tensor* number = numbers_[at(x.args[0])];
        if (inside && number != nullptr) {
            changed = true;
            Expr one;
            cpu::add_number(one, *number);
            return one.code[0];
        }
        auto known = std::find(inputs.begin(), inputs.end(), x.args[0]);
        auto index = static_cast<int>(known - inputs.begin());
        if (known == inputs.end()) {
            inputs.push_back(x.args[0]);
        }
        x.args[0] = index;
        return x;
    }

    const Expr& e_;
    const std::vector<const Tensor*>& numbers_;
    std::vector<int> tables_;
    std::map<std::pair<int, int>, int> done_;
};

std::optional<Values> with_numbers(Rewriter& r, const Node& n, std::span<const Value> in) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    Graph& g = r.out();
    std::vector<const Tensor*> numbers;
    for (Value v : in) {
        numbers.push_back(cpu::number(g, v));
    }
    if (std::ranges::all_of(numbers, [](const Tensor* t) { return t == nullptr; })) {
        return std::nullopt;
    }
    const auto& m = n.as<Map>();
    WithNumbers w(m.body, numbers);
    Values left;
    bool whole = false; // the result keeps its sizes without the numbers
    for (int i : w.inputs) {
        left.push_back(in[static_cast<size_t>(i)]);
        whole = whole || g.type(left.back()).dims == r.mapped(r.from().type(n.outputs[0]).dims);
    }
    if (!w.changed || !whole) {
        return std::nullopt;
    }
    return Values{ops::map(g, std::move(w.body), m.dtype, left)};
}

} // namespace

Pass numbers_in_tables(const KernelSet&) {
    return {
        .name = "numbers_in_tables",
        .summary = "numbers that functions of one byte read become part of them",
        .run = [](const Graph& g,
                  const PassOptions&) { return dead_code(rewrite(g, with_numbers)); },
        .structural = true,
    };
}

} // namespace ingot::plan
