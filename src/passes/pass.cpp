// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "ir/verify.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

namespace ingot {

namespace {

// The sizes of a body's results have names that the outer node uses. When a pass computes such a
// size and no node binds its name any more, this binds it again.
Graph with_result_sizes(Graph now, const Graph& before) {
    SymbolSet defined = input_symbols(now);
    for (const Node& n : now.nodes()) {
        defined.merge(declared_symbols(n));
    }
    Dims lost;
    Dims found;
    for (size_t i = 0; i < now.outputs().size(); ++i) {
        const Dims& want = before.type(before.outputs()[i]).dims;
        const Dims& have = now.type(now.outputs()[i]).dims;
        for (size_t d = 0; d < want.size(); ++d) {
            bool named = !want[d].symbol_name().empty() && !(want[d] == have[d]);
            if (named && defined.insert(std::string(want[d].symbol_name())).second) {
                lost.push_back(want[d]);
                found.push_back(have[d]);
            }
        }
    }
    if (lost.empty()) {
        return now;
    }
    Rewriter r(now);
    for (const Node& n : now.nodes()) {
        r.replace(n, r.copy(n));
    }
    Graph& g = r.out();
    g.add(tensor_to_dims_def, TensorToDims{lost}, std::array{ops::dims_tensor(g, found)});
    for (size_t i = 0; i < now.outputs().size(); ++i) {
        Value v = r.mapped(now.outputs()[i]);
        Dims dims = ops::dims(g, v);
        const Dims& want = before.type(before.outputs()[i]).dims;
        for (size_t d = 0; d < dims.size(); ++d) {
            bool again = std::find(lost.begin(), lost.end(), want[d]) != lost.end();
            dims[d] = again ? want[d] : dims[d];
        }
        g.add_output(now.output_names()[i], ops::reshape(g, v, dims));
    }
    return std::move(g);
}

bool is_open(const Node& n) {
    return n.def->has_bodies && !n.is(fused_def) && !bodies(n).empty();
}

bool has_open_bodies(const Graph& g) {
    return std::any_of(g.nodes().begin(), g.nodes().end(), is_open);
}

} // namespace

Graph run_pass(const Pass& pass, const Graph& g, const PassOptions& options) {
    // Groups, which one kernel runs, keep their bodies.
    std::function<Graph(const Graph&)> body;
    auto run = [&](const Graph& one) {
        return has_open_bodies(one) ? pass.run(rewrite_bodies(one, body, is_open), options)
                                    : pass.run(one, options);
    };
    body = [&](const Graph& b) { return with_result_sizes(run(b), b); };
    return with_place([&] { return str("pass '", pass.name, "'"); },
                      [&] { return pass.handles_bodies ? pass.run(g, options) : run(g); });
}

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
    std::chrono::duration<double, std::milli> d = std::chrono::steady_clock::now() - start;
    return d.count();
}

} // namespace

Graph run_passes(std::span<const Pass* const> list, const Graph& g,
                 const PipelineOptions& options) {
    Graph now = g;
    size_t nodes = count_nodes(now);
    bool is_verified = false;
    std::set<const Pass*> idle; // these gave the graph back as it is now, and would again
    for (size_t i = 0; i < list.size(); ++i) {
        const Pass& pass = *list[i];
        const auto& off = options.disabled;
        if (std::find(off.begin(), off.end(), pass.name) != off.end()) {
            continue;
        }
        check_interrupt();
        if (options.progress) {
            options.progress(pass, i, list.size());
        }
        auto start = std::chrono::steady_clock::now();
        size_t before = nodes;
        Graph made = idle.contains(&pass) ? now : run_pass(pass, now, options.pass);
        bool changed = !made.shares_all(now);
        if (changed) {
            now = std::move(made);
            nodes = count_nodes(now);
            idle.clear();
        } else if (made.is_live()) {
            now.set_live();
        }
        idle.insert(&pass);
        if ((changed || !is_verified) && (options.verify || is_always_verified())) {
            with_place([&] { return str("after pass '", pass.name, "'"); }, [&] { verify(now); });
            is_verified = true;
        }
        log(LogLevel::Verbose, "pass ", pass.name, ": ", before, " -> ", nodes, " nodes",
            changed ? "" : ", unchanged,", " in ", static_cast<int64_t>(milliseconds_since(start)),
            " ms");
        if (options.dump_after) {
            options.dump_after(pass, now);
        }
    }
    return now;
}

} // namespace ingot
