// SPDX-License-Identifier: Apache-2.0
// end_at_bytes: a map of integer sums that rounds to bytes on its way (as before a mean of
// quantised values) ends there, and a second map goes on from the bytes. The first is then an
// epilogue that stores bytes, which oneDNN does with the product.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

/// The instructions of an expression that lead to one of them, with inputs numbered anew.
class Part {
public:
    /// Instruction `known` (if any) is input 0 of the part, with elements of type `stored`.
    Part(const Expr& e, int known, DType stored) : e_(e) {
        if (known >= 0) {
            done_[known] = body.in(0, stored);
            inputs.push_back(-1);
        }
    }

    int take(int i) {
        if (auto at = done_.find(i); at != done_.end()) {
            return at->second;
        }
        ExprInstr x = e_.code[static_cast<size_t>(i)];
        for (int a = 0; a < argument_count(x); ++a) {
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

    Expr body;
    std::vector<int> inputs; // of the whole expression

private:
    const Expr& e_;
    std::map<int, int> done_;
};

/// The last instruction but the result that makes bytes of floats, or -1.
int last_bytes(const Expr& e) {
    for (int i = static_cast<int>(e.code.size()) - 2; i > 0; --i) {
        const ExprInstr& x = e.code[static_cast<size_t>(i)];
        if (x.op == ExprOp::Cast && is_byte(x.to) &&
            e.code[static_cast<size_t>(x.args[0])].type == DType::F32) {
            return i;
        }
    }
    return -1;
}

/// A product's sums of 32 bits, which nothing else reads.
bool are_sums(const Graph& g, Value v, uint32_t readers) {
    const Node* n = g.producer(v);
    return n != nullptr && readers == 1 && g.type(v).dtype == DType::I32 &&
           (n->is(ops::conv_def) || n->is(dot_def));
}

std::optional<Values> two_maps(Rewriter& r, const Node& n, std::span<const Value> in,
                               std::span<const uint32_t> readers) {
    int bytes = n.is(map_def) ? last_bytes(n.as<Map>().body) : -1;
    if (bytes < 0) {
        return std::nullopt;
    }
    const auto& m = n.as<Map>();
    DType stored = m.body.code[static_cast<size_t>(bytes)].to;
    Part first(m.body, -1, stored);
    first.take(bytes);
    Part second(m.body, bytes, stored);
    second.take(static_cast<int>(m.body.code.size()) - 1);
    Graph& g = r.out();
    auto value = [&](int i) { return in[static_cast<size_t>(i)]; };
    bool ends_sums = false;
    Values of_first;
    for (int i : first.inputs) {
        of_first.push_back(value(i));
        ends_sums =
            ends_sums || (are_sums(g, value(i), readers[n.inputs[static_cast<size_t>(i)].id]) &&
                          g.type(value(i)).dims == r.mapped(r.from().type(n.outputs[0]).dims));
    }
    Values of_second;
    for (int i : second.inputs) {
        if (i >= 0 && g.type(value(i)).rank() > 0) {
            return std::nullopt; // the rest reads another tensor
        }
        of_second.push_back(i < 0 ? Value{} : value(i));
    }
    if (!ends_sums) {
        return std::nullopt;
    }
    of_second[0] = ops::map(g, std::move(first.body), stored, of_first);
    return Values{ops::map(g, std::move(second.body), m.dtype, of_second)};
}

Graph with_bytes(const Graph& g) {
    std::vector<uint32_t> readers = use_counts(g);
    return dead_code(rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        return two_maps(r, n, in, readers);
    }));
}

} // namespace

Pass end_at_bytes(const KernelSet&) {
    return {
        .name = "end_at_bytes",
        .summary = "maps of integer sums end where they have rounded to bytes",
        .run = [](const Graph& g, const PassOptions&) { return with_bytes(g); },
        .structural = true,
    };
}

} // namespace ingot::plan
