// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "ir/rewrite.h"

#include <algorithm>

namespace ingot {

namespace {

// Which nodes are live; symbols keep alive the node that defines them. A node stands after what it
// reads and after the definitions of its symbols, so one walk backwards finds all.
std::vector<bool> live_nodes(const Graph& g) {
    SymbolSet given = input_symbols(g);
    std::map<std::string, size_t, std::less<>> definers;
    for (size_t i = 0; i < g.nodes().size(); ++i) {
        for (const std::string& s : declared_symbols(g.nodes()[i])) {
            if (given.count(s) == 0) {
                definers.emplace(s, i);
            }
        }
    }
    std::vector<bool> read(g.value_count(), false);
    for (Value v : g.outputs()) {
        read[v.id] = true;
    }
    std::vector<bool> live(g.nodes().size(), false);
    for (size_t i = live.size(); i-- > 0;) {
        const Node& n = g.nodes()[i];
        bool is_read =
            std::any_of(n.outputs.begin(), n.outputs.end(), [&](Value v) { return read[v.id]; });
        live[i] = live[i] || is_read;
        if (!live[i]) {
            continue;
        }
        for (Value v : n.inputs) {
            read[v.id] = true;
        }
        if (definers.empty()) {
            continue;
        }
        SymbolSet mentioned;
        collect_symbols(g, n, mentioned);
        for (const std::string& s : mentioned) {
            auto at = definers.find(s);
            if (at != definers.end()) {
                live[at->second] = true;
            }
        }
    }
    return live;
}

} // namespace

Graph dead_code(const Graph& g) {
    if (g.is_live()) {
        return g;
    }
    Graph cleaned = rewrite_all(g, [](const Graph& one) {
        std::vector<bool> live = live_nodes(one);
        check_interrupt();
        if (std::find(live.begin(), live.end(), false) == live.end()) {
            return one;
        }
        Rewriter r(one);
        for (size_t i = 0; i < live.size(); ++i) {
            if (live[i]) {
                r.replace(one.nodes()[i], r.copy(one.nodes()[i]));
            }
        }
        return r.finish();
    });
    cleaned.set_live();
    return cleaned;
}

} // namespace ingot
