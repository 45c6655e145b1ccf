// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the bytes choose ops, attributes and operands. Each node is either refused by its
// inference or the graph verifies, comes back from text and bytes, survives the passes, and runs or
// fails with an Error.
#include "base/error.h"
#include "base/interrupt.h"
#include "chosen_graph.h"
#include "ir/binary.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/evaluator.h"
#include "passes/pipeline.h"

#include <cstdio>
#include <cstdlib>

namespace ingot {
namespace {

void expect(bool holds, const char* what, const Graph& g) {
    if (!holds) {
        std::fprintf(stderr, "%s\n%s\n", what, print(g).c_str());
        std::abort();
    }
}

void check_forms(const Graph& g) {
    PrintOptions full;
    full.full = true;
    std::string text = print(g, full);
    expect(print(parse_graph(text, {find_op, {}}), full) == text, "the text form differs", g);
    std::vector<Tensor> placed;
    auto place = [&](const Tensor& t) {
        placed.push_back(t);
        return placed.size() - 1;
    };
    std::vector<std::byte> bytes = write_graph(g, place);
    ReadOptions options{find_op, [&](DType, const Shape&, uint64_t i) { return placed.at(i); }};
    Graph back = read_graph(bytes, options);
    placed.clear();
    expect(write_graph(back, place) == bytes, "the binary form differs", g);
}

std::optional<std::vector<Tensor>> run(const Graph& g) {
    std::vector<Tensor> inputs;
    for (Value v : g.inputs()) {
        const Type& t = g.type(v);
        Tensor x = Tensor::zeros(t.dtype, eval(t.dims, {{"N", 3}}));
        for (int64_t i = 0; i < x.count(); ++i) {
            x.set_i64(i, i % 3);
        }
        inputs.push_back(x);
    }
    set_time_limit(std::chrono::milliseconds(500));
    try {
        auto results = evaluate(g, inputs, {}, {{"N", 3}});
        set_time_limit(std::chrono::milliseconds(0));
        return results;
    } catch (const Error&) {
        set_time_limit(std::chrono::milliseconds(0));
        return std::nullopt;
    }
}

void check(const Graph& g) {
    check_forms(g);
    Graph expanded = expand_composites(g, [](const Graph&, const Node&) { return false; });
    verify(expanded);
    Graph optimised = run_aot_passes(g);
    if (!may_run(expanded) || !may_run(optimised)) {
        return;
    }
    auto results = run(g);
    auto after = run(optimised);
    if (!results) {
        return; // passes may drop what fails
    }
    expect(after.has_value(), "fails after the passes only", g);
    for (size_t i = 0; i < results->size(); ++i) {
        expect((*results)[i].dtype() == (*after)[i].dtype() &&
                   (*results)[i].shape() == (*after)[i].shape(),
               "another type after the passes", g);
    }
}

} // namespace
} // namespace ingot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ingot;
    Choices choices(std::span(data, size));
    std::optional<Graph> g = make_graph(choices, nullptr, 0);
    try {
        g->reserve_symbols();
        verify(*g);
    } catch (const Error&) { // such as a symbol that nothing defines
        return 0;
    }
    try {
        check(*g);
    } catch (const Error& e) {
        expect(e.code() == ErrorCode::Unsupported || e.code() == ErrorCode::OutOfMemory, e.what(),
               *g);
    }
    return 0;
}
