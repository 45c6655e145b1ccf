// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include "base/interrupt.h"
#include "ir/infer.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ingot {

namespace {

constexpr int max_depth = 64;

struct Verifier {
    ErrorCode code;
    bool types_too;
    InferredTypes* known;
    std::vector<Type>* operands;       // of one node; keeps its memory
    using Defined = std::vector<bool>; // by value

    void graph(const Graph& g, SymbolSet defined, int depth) const {
        require(depth <= max_depth, code, "bodies are nested deeper than ", max_depth);
        with_place([&] { return str("graph '", g.name(), "'"); },
                   [&] { contents(g, std::move(defined), depth); });
    }

    void contents(const Graph& g, SymbolSet defined, int depth) const {
        inputs(g);
        defined.merge(input_symbols(g));
        Defined values(g.value_count());
        for (Value v : g.inputs()) {
            if (types_too) {
                check_size("an input", g.type(v));
            }
            values[v.id] = true;
        }
        for (size_t i = 0; i < g.nodes().size(); ++i) {
            check_interrupt();
            const Node& n = g.nodes()[i];
            with_place([&] { return str("node ", i, " '", n.name, "' (", n.def->name, ")"); },
                       [&] { node(g, n, values, defined, depth); });
        }
        outputs(g, values);
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

    void outputs(const Graph& g, const Defined& values) const {
        require(g.outputs().size() == g.output_names().size(), code, "has ", g.outputs().size(),
                " outputs and ", g.output_names().size(), " output names");
        SymbolSet names;
        for (size_t i = 0; i < g.outputs().size(); ++i) {
            const std::string& name = g.output_names()[i];
            require(name.empty() || names.insert(name).second, code, "two outputs are named '",
                    name, "'");
            Value v = g.outputs()[i];
            require(v.id < values.size() && values[v.id], code, "output ", i, " '", name,
                    "' is value ", v.id, ", which nothing defines");
        }
    }

    void node(const Graph& g, const Node& n, Defined& values, SymbolSet& defined, int depth) const {
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            Value v = n.inputs[i];
            require(v.id < values.size() && values[v.id], code, "operand ", i, " is value ", v.id,
                    ", which no earlier node defines");
        }
        defined.merge(declared_symbols(n));
        symbols(g, n, defined);
        for (const GraphRef& b : bodies(n)) {
            graph(*b, defined, depth + 1);
        }
        for (size_t i = 0; i < n.outputs.size(); ++i) {
            Value v = n.outputs[i];
            require(v.id < values.size() && !values[v.id], code, "result ", i, " is value ", v.id,
                    ", which is defined already");
            values[v.id] = true;
        }
        if (types_too) {
            types(g, n);
        }
    }

    void types(const Graph& g, const Node& n) const {
        std::vector<Type>& in = *operands;
        in.resize(std::max(in.size(), n.inputs.size()));
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            in[i] = g.type(n.inputs[i]);
        }
        std::vector<Type> out = infer(n, std::span(in).first(n.inputs.size()));
        require(out.size() == n.outputs.size(), code, "has ", n.outputs.size(),
                " results, inference gives ", out.size());
        for (size_t i = 0; i < out.size(); ++i) {
            require(g.type(n.outputs[i]) == out[i], code, "result ", i, " is ",
                    g.type(n.outputs[i]), ", inference gives ", out[i]);
        }
    }

    std::vector<Type> infer(const Node& n, std::span<const Type> in) const {
        try {
            return infer_types(*n.def, n.attrs.get(), in, *known);
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
    InferredTypes known;
    std::vector<Type> operands;
    Verifier{code, true, &known, &operands}.graph(g, {}, 0);
}

void verify_names(const Graph& g, ErrorCode code) {
    InferredTypes known;
    std::vector<Type> operands;
    Verifier{code, false, &known, &operands}.graph(g, {}, 0);
}

bool is_always_verified() {
    static const bool always = [] {
        const char* v = std::getenv("INGOT_VERIFY_PASSES");
        return v != nullptr && *v != 0 && std::string_view(v) != "0";
    }();
    return always;
}

} // namespace ingot
