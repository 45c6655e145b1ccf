// SPDX-License-Identifier: Apache-2.0
#include "ops/support/flops.h"

#include "ir/rewrite.h"
#include "ops/evaluator.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot {

namespace {

double elements(const Dims& dims, const Symbols& symbols) {
    double n = 1;
    for (const Dim& d : dims) {
        n *= static_cast<double>(d.try_eval(symbols).value_or(1));
    }
    return n;
}

double products_of(const Graph& g, const Node& n, const Symbols& symbols) {
    double product = 2 * elements(g.type(n.outputs[0]).dims, symbols);
    for (int64_t axis : n.as<Dot>().a_contract) {
        const Dim& d = g.type(n.inputs[0]).dims[static_cast<size_t>(axis)];
        product *= static_cast<double>(d.try_eval(symbols).value_or(1));
    }
    return product;
}

double scalars_of(const Graph& g, const Node& n, const Symbols& symbols) {
    if (n.is(map_def)) {
        const Expr& body = n.as<Map>().body;
        auto counts = [](const ExprInstr& i) {
            return i.op != ExprOp::In && i.op != ExprOp::Const && i.op != ExprOp::Cast;
        };
        auto functions = std::count_if(body.code.begin(), body.code.end(), counts);
        return static_cast<double>(functions) * elements(g.type(n.outputs[0]).dims, symbols);
    }
    bool folds = n.is(reduce_def) || n.is(arg_reduce_def) || n.is(scan_def);
    return folds ? elements(g.type(n.inputs[0]).dims, symbols) : 0;
}

Operations operations_of_primitives(const Graph& g, const Symbols& symbols) {
    Operations sum;
    for (const Node& n : g.nodes()) {
        sum.products += n.is(dot_def) ? products_of(g, n, symbols) : 0;
        sum.scalars += scalars_of(g, n, symbols);
    }
    return sum;
}

Graph expanded(const Graph& g) {
    return expand_composites(g, [](const Graph&, const Node&) { return false; });
}

/// A graph with copies of the node and its constant operands.
Graph alone(const Graph& g, const Node& n) {
    Graph one = g.sibling("one");
    Values in;
    for (Value v : n.inputs) {
        const Tensor* known = g.constant(v);
        Value copy = known != nullptr ? one.add1(constant_def, Constant{*known}, {})
                                      : one.add_input("", g.type(v));
        if (known == nullptr) {
            one.set_host(copy, g.host(v));
        }
        in.push_back(copy);
    }
    Values results = one.add(*n.def, n.attrs, in);
    for (Value v : results) {
        one.add_output("", v);
    }
    return one;
}

} // namespace

Operations count_operations(const Graph& g, const Node& n, const Symbols& symbols) {
    if (n.is(fused_def)) {
        return operations_of_primitives(expanded(*n.as<Fused>().body), symbols);
    }
    if (n.def->is_composite()) {
        return operations_of_primitives(expanded(alone(g, n)), symbols);
    }
    return {n.is(dot_def) ? products_of(g, n, symbols) : 0, scalars_of(g, n, symbols)};
}

double count_flops(const Graph& g, std::span<const Shape> inputs) {
    Symbols symbols;
    for (size_t i = 0; i < inputs.size(); ++i) {
        Value v = g.inputs()[i];
        bind_symbols(g.type(v).dims, inputs[i], symbols, g.value_name(v));
    }
    double flops = 0;
    visit_nodes(expanded(g), [&](const Graph& owner, const Node& n) {
        flops += n.is(dot_def) ? products_of(owner, n, symbols) : 0;
    });
    return flops;
}

} // namespace ingot
