// SPDX-License-Identifier: Apache-2.0
// If and Loop.
#include "ir/rewrite.h"
#include "onnx/branches.h"
#include "onnx/ops/support/bodies.h"
#include "onnx/ops/support/inputs.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

namespace ingot::onnx {

namespace {

// --- If ----------------------------------------------------------------------------------------

Dims differing_sizes(NodeContext& c, const ingot::Graph& a, const ingot::Graph& b) {
    c.ensure(a.outputs().size() == b.outputs().size(), "the branches have ", a.outputs().size(),
             " and ", b.outputs().size(), " results");
    Dims fresh;
    for (size_t i = 0; i < a.outputs().size(); ++i) {
        const Type& l = a.type(a.outputs()[i]);
        const Type& r = b.type(b.outputs()[i]);
        c.ensure(l.dtype == r.dtype, "result ", i, " is ", l, " in one branch and ", r,
                 " in the other");
        if (l.rank() != r.rank()) {
            throw RanksDiffer(ErrorCode::Unsupported,
                              str("result ", i, " is ", l, " in one branch and ", r,
                                  " in the other: a rank that depends on data is not supported"),
                              RefusalKind::Size);
        }
        for (size_t d = 0; d < l.dims.size(); ++d) {
            if (!(l.dims[d] == r.dims[d])) {
                fresh.push_back(c.g.fresh_symbol());
            }
        }
    }
    return fresh;
}

Values inlined_branch(NodeContext& c, std::string_view attribute) {
    NodeContext::Body b = c.body(attribute, {});
    std::string origin = c.g.origin();
    Values out = inline_graph(c.g, *b.graph, b.captures);
    c.g.set_origin(origin);
    return out;
}

// The only node of a branch besides constants, if it computes the branch's only result from a value
// of the outer graph; else null.
const Node* only_node(const NodeContext& c, std::string_view attribute) {
    const Attribute* a = c.attribute(attribute);
    if (a == nullptr || a->g == nullptr || a->g->outputs.size() != 1) {
        return nullptr;
    }
    const Node* only = nullptr;
    for (const Node& n : a->g->nodes) {
        bool constant = n.op_type == "Constant";
        if (only != nullptr && !constant) {
            return nullptr;
        }
        only = constant ? only : &n;
    }
    bool makes_it = only != nullptr && only->outputs.size() == 1 &&
                    only->outputs[0] == a->g->outputs[0].name && !only->inputs.empty();
    return makes_it ? only : nullptr;
}

// Whether a value depends only on sizes and constants, not on elements of inputs.
bool follows_from_sizes(const ingot::Graph& g, Value v) {
    Values open = {v};
    std::set<uint32_t> seen;
    while (!open.empty()) {
        Value next = open.back();
        open.pop_back();
        const ingot::Node* n = g.producer(next);
        if (n == nullptr) {
            return false;
        }
        if (seen.insert(next.id).second) {
            open.insert(open.end(), n->inputs.begin(), n->inputs.end());
        }
    }
    return true;
}

// TorchScript writes x.squeeze(d) as If(size d == 1, Squeeze(x, d), x), whose rank depends on a
// size. Its readers assume the rank of the Squeeze; the run checks it.
std::string_view squeeze_branch(const NodeContext& c) {
    if (!follows_from_sizes(c.g, c.in(0))) {
        return "";
    }
    constexpr std::array<std::string_view, 2> names = {"then_branch", "else_branch"};
    for (size_t i = 0; i < 2; ++i) {
        const Node* squeeze = only_node(c, names[i]);
        const Node* same = only_node(c, names[1 - i]);
        if (squeeze != nullptr && same != nullptr && squeeze->op_type == "Squeeze" &&
            same->op_type == "Identity" && squeeze->inputs[0] == same->inputs[0]) {
            return names[i];
        }
    }
    return "";
}

// When the condition is known, only the taken branch is imported.
Values conditional(NodeContext& c) {
    c.ensure(c.dtype(0) == DType::Bool, "the condition is ", c.type(0), ", expected bool");
    if (auto known = c.maybe_constant(0)) {
        c.ensure(known->count() == 1, "the condition is ", known->type(), ", expected a scalar");
        return inlined_branch(c, known->get_i64(0) != 0 ? "then_branch" : "else_branch");
    }
    if (std::string_view squeeze = squeeze_branch(c); !squeeze.empty()) {
        return inlined_branch(c, squeeze);
    }
    constexpr std::array<std::string_view, 2> names = {"then_branch", "else_branch"};
    std::vector<NodeContext::Body> b = c.bodies(names);
    Values in = {to_scalar(c.g, c.in(0))};
    in.insert(in.end(), b[0].captures.begin(), b[0].captures.end());
    Dims fresh = differing_sizes(c, *b[0].graph, *b[1].graph);
    return c.g.add(if_def, If{b[0].graph, b[1].graph, fresh}, in);
}

// --- Loop --------------------------------------------------------------------------------------

// The iteration and the condition are scalars here; a body may declare them as lists of one.
std::vector<Type> leading_types(NodeContext& c) {
    std::vector<Type> out = {{DType::I64, {}}, {DType::Bool, {}}};
    const Attribute* a = c.attribute("body");
    c.ensure(a != nullptr && a->g != nullptr, "required attribute 'body' is missing");
    for (size_t i = 0; i < 2 && i < a->g->inputs.size(); ++i) {
        const ValueInfo& info = a->g->inputs[i];
        if (info.has_shape && info.dims.size() == 1) {
            out[i].dims = {Dim(1)};
        }
    }
    return out;
}

struct LoopBody {
    NodeContext::Body body;
    Dims varying; // fresh symbols: sizes of carried values that change between iterations
};

// Imports the body with the initial types; replaces sizes that change by symbols and imports it
// again, until its results have its input types.
LoopBody stable_body(NodeContext& c, std::vector<Type> types) {
    LoopBody r;
    for (bool changed = true; changed;) {
        changed = false;
        r.body = c.body("body", types);
        const ingot::Graph& g = *r.body.graph;
        c.ensure(g.outputs().size() + 1 >= types.size(), "the body has ", g.outputs().size(),
                 " results, expected at least ", types.size() - 1);
        for (size_t i = 2; i < types.size(); ++i) {
            const Type& after = g.type(g.outputs()[i - 1]);
            c.ensure(after.dtype == types[i].dtype, "carried value ", i - 2, " goes in as ",
                     types[i], " and comes out as ", after);
            if (after.rank() != types[i].rank()) {
                c.refuse(RefusalKind::Size, "carried value ", i - 2, " goes in as ", types[i],
                         " and comes out as ", after,
                         ": a rank that changes between iterations is not supported");
            }
            for (size_t d = 0; d < after.dims.size(); ++d) {
                Dim& size = types[i].dims[d];
                bool varies =
                    std::find(r.varying.begin(), r.varying.end(), size) != r.varying.end();
                if (!varies && !(after.dims[d] == size)) {
                    size = c.g.fresh_symbol();
                    r.varying.push_back(size);
                    changed = true;
                }
            }
        }
    }
    return r;
}

Value true_scalar(ingot::Graph& g) {
    return ops::scalar_i64(g, DType::Bool, 1);
}

// The trip count of a loop that nothing else can end.
Dim trip_count(NodeContext& c, bool endless) {
    if (endless && c.has(0)) {
        auto known = ops::known_dims(c.g, c.in(0));
        if (known && known->size() == 1 && (*known)[0].bounds().low >= 0) {
            return (*known)[0];
        }
    }
    return c.g.fresh_symbol();
}

Values loop(NodeContext& c) {
    std::vector<Type> types = leading_types(c);
    auto carried = static_cast<size_t>(std::max(c.input_count() - 2, 0));
    for (size_t i = 0; i < carried; ++i) {
        types.push_back(c.type(static_cast<int>(i) + 2));
    }
    LoopBody b = stable_body(c, types);
    const ingot::Graph& from = *b.body.graph;

    ingot::Graph body = c.g.sibling(from.name());
    Values args = {body.add_input(from.value_name(from.inputs()[0]), {DType::I64, {}}),
                   body.add_input(from.value_name(from.inputs()[1]), {DType::Bool, {}})};
    Value condition_in = args[1];
    Values rest = add_inputs_like(body, from, std::span(from.inputs()).subspan(2));
    args.insert(args.end(), rest.begin(), rest.end());
    for (size_t i = 0; i < 2; ++i) {
        args[i] = ops::reshape(body, args[i], from.type(from.inputs()[i]).dims);
    }
    Values results = inline_graph(body, from, args);
    Value go_on = c.has(1) ? to_scalar(body, results[0]) : true_scalar(body);
    bool starts = !c.has(1) || known_true(c.g, c.in(1));
    bool endless = starts && (known_true(body, go_on) || go_on == condition_in);
    body.add_output("condition", go_on);
    auto inner = inner_symbols(body, b.varying);
    Loop l;
    l.carried = static_cast<int64_t>(carried);
    l.symbols = b.varying;
    for (size_t i = 1; i < results.size(); ++i) {
        bool scanned = i > carried;
        Value v = scanned ? with_outer_sizes(body, results[i], inner, l.symbols) : results[i];
        body.add_output(from.output_names()[i], v);
    }
    l.count = trip_count(c, endless);
    l.body = std::make_shared<const ingot::Graph>(std::move(body));

    Value trips = c.has(0) ? to_scalar(c.g, to_i64(c.g, c.in(0)))
                           : ops::scalar_i64(c.g, DType::I64, INT64_MAX);
    Values in = {trips, c.has(1) ? to_scalar(c.g, c.in(1)) : true_scalar(c.g)};
    for (size_t i = 0; i < carried; ++i) {
        in.push_back(c.in(static_cast<int>(i) + 2));
    }
    in.insert(in.end(), b.body.captures.begin(), b.body.captures.end());
    return c.g.add(loop_def, std::move(l), in);
}

const ImporterRow rows[] = {
    {"", "If", 1, conditional, no_shapes},
    {"", "Loop", 1, loop, shape_inputs({0})},
};

} // namespace

extern const ImporterTable control_importers;
const ImporterTable control_importers = rows;

} // namespace ingot::onnx
