// SPDX-License-Identifier: Apache-2.0
// end_at_bytes: a map of integer sums that rounds to bytes on its way (as before an activation or a
// mean of quantised values) ends there, and a second map goes on from the bytes. The first is then
// an epilogue that stores bytes, which oneDNN does with the product.
#include "backends/cpu/expr_part.h"
#include "backends/cpu/numbers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

namespace ingot::plan {

namespace {

/// The instructions but the result that make bytes of floats.
std::vector<int> bytes_on_the_way(const Expr& e) {
    std::vector<int> out;
    for (int i = 1; i + 1 < static_cast<int>(e.code.size()); ++i) {
        const ExprInstr& x = e.code[static_cast<size_t>(i)];
        if (x.op == ExprOp::Cast && is_byte(x.to) &&
            e.code[static_cast<size_t>(x.args[0])].type == DType::F32) {
            out.push_back(i);
        }
    }
    return out;
}

/// A product's sums of 32 bits, which nothing else reads.
bool are_sums(const Graph& g, Value v, uint32_t readers) {
    const Node* n = g.producer(v);
    return n != nullptr && readers == 1 && g.type(v).dtype == DType::I32 &&
           (n->is(ops::conv_def) || n->is(dot_def));
}

/// The map as one that ends at instruction `bytes` and one that goes on, if the first reads sums
/// and the second no other tensor.
std::optional<Values> split_at(int bytes, Rewriter& r, const Node& n, std::span<const Value> in,
                               std::span<const uint32_t> readers) {
    const auto& m = n.as<Map>();
    DType stored = m.body.code[static_cast<size_t>(bytes)].to;
    cpu::ExprPart first(m.body);
    first.take(bytes);
    cpu::ExprPart second(m.body, bytes, stored);
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
        if (i >= 0 && g.type(value(i)).rank() > 0 && cpu::number(g, value(i)) == nullptr) {
            return std::nullopt;
        }
        of_second.push_back(i < 0 ? Value{} : value(i));
    }
    if (!ends_sums) {
        return std::nullopt;
    }
    of_second[0] = ops::map(g, std::move(first.body), stored, of_first);
    return Values{ops::map(g, std::move(second.body), m.dtype, of_second)};
}

std::optional<Values> two_maps(Rewriter& r, const Node& n, std::span<const Value> in,
                               std::span<const uint32_t> readers) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    for (int bytes : bytes_on_the_way(n.as<Map>().body)) {
        if (auto split = split_at(bytes, r, n, in, readers)) {
            return split;
        }
    }
    return std::nullopt;
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
