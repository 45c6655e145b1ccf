// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include "base/interrupt.h"

namespace ingot {

namespace {

constexpr int max_depth = 64;

struct Verifier {
    ErrorCode code;
    bool again_too;

    void graph(const Graph& g, SymbolSet defined, int depth) const {
        require(depth <= max_depth, code, "bodies are nested deeper than ", max_depth);
        with_place([&] { return str("graph '", g.name(), "'"); },
                   [&] { contents(g, std::move(defined), depth); });
    }

    void contents(const Graph& g, SymbolSet defined, int depth) const {
        inputs(g);
        defined.merge(input_symbols(g));
        Graph again = g.sibling(g.name());
        Values map(g.value_count());
        for (Value v : g.inputs()) {
            map[v.id] = again_too ? again.add_input({}, g.type(v)) : v;
        }
        for (size_t i = 0; i < g.nodes().size(); ++i) {
            check_interrupt();
            const Node& n = g.nodes()[i];
            with_place([&] { return str("node ", i, " '", n.name, "' (", n.def->name, ")"); },
                       [&] { node(g, n, again, map, defined, depth); });
        }
        outputs(g, map);
    }

    void inputs(const Graph& g) const {
        SymbolSet names;
        for (Value v : g.inputs()) {
            const std::string& name = g.value_name(v);
            require(g.is_input(v), code, "input '", name, "' is the result of a node");
            require(name.empty() || names.insert(name).second, code, "two inputs are named '", name,
                    "'");
        }
    }

    void outputs(const Graph& g, const Values& map) const {
        require(g.outputs().size() == g.output_names().size(), code, "has ", g.outputs().size(),
                " outputs and ", g.output_names().size(), " output names");
        SymbolSet names;
        for (size_t i = 0; i < g.outputs().size(); ++i) {
            const std::string& name = g.output_names()[i];
            require(name.empty() || names.insert(name).second, code, "two outputs are named '",
                    name, "'");
            Value v = g.outputs()[i];
            require(v.id < map.size() && map[v.id].valid(), code, "output ", i, " '", name,
                    "' is value ", v.id, ", which nothing defines");
        }
    }

    void node(const Graph& g, const Node& n, Graph& again, Values& map, SymbolSet& defined,
              int depth) const {
        Values in;
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            Value v = n.inputs[i];
            require(v.id < map.size() && map[v.id].valid(), code, "operand ", i, " is value ", v.id,
                    ", which no earlier node defines");
            in.push_back(map[v.id]);
        }
        defined.merge(declared_symbols(n));
        symbols(g, n, defined);
        for (const GraphRef& b : bodies(n)) {
            graph(*b, defined, depth + 1);
        }
        Values out = again_too ? infer(again, n, in) : n.outputs;
        require(out.size() == n.outputs.size(), code, "has ", n.outputs.size(),
                " results, inference gives ", out.size());
        for (size_t i = 0; i < out.size(); ++i) {
            Value v = n.outputs[i];
            require(v.id < map.size() && !map[v.id].valid(), code, "result ", i, " is value ", v.id,
                    ", which is defined already");
            require(!again_too || g.type(v) == again.type(out[i]), code, "result ", i, " is ",
                    g.type(v), ", inference gives ", again_too ? again.type(out[i]) : Type());
            map[v.id] = out[i];
        }
    }

    Values infer(Graph& again, const Node& n, const Values& in) const {
        try {
            return again.add(*n.def, n.attrs, in);
        } catch (const Error& e) {
            fail(code, "types do not fit: ", e.what());
        }
    }

    // Symbols inside bodies are checked when the body is.
    void symbols(const Graph& g, const Node& n, const SymbolSet& defined) const {
        SymbolSet mentioned;
        if (bodies(n).empty()) {
            collect_symbols(g, n, mentioned);
        } else {
            for (Value v : n.outputs) {
                for (const Dim& d : g.type(v).dims) {
                    d.collect_symbols(mentioned);
                }
            }
        }
        for (const std::string& s : mentioned) {
            require(defined.count(s) != 0, code, "mentions the size '", s,
                    "', which neither an input nor an earlier node defines");
        }
    }
};

} // namespace

void verify(const Graph& g, ErrorCode code) {
    Verifier{code, true}.graph(g, {}, 0);
}

void verify_names(const Graph& g, ErrorCode code) {
    Verifier{code, false}.graph(g, {}, 0);
}

} // namespace ingot
