// SPDX-License-Identifier: Apache-2.0
// Rules for bodies: inlines a known branch and a loop that runs once, moves captured constants into
// bodies, and removes captures that no body reads.
#include "base/error.h"
#include "passes/simplify.h"

namespace ingot::passes {

namespace {

std::optional<int64_t> scalar_of(const Graph& g, Value v) {
    const Tensor* t = g.constant(v);
    return t != nullptr && t->count() == 1 ? std::optional(t->get_i64(0)) : std::nullopt;
}

// Replaces the op's own symbols in the sizes of result i by the sizes of `v`. Returns v in the
// result's type.
Value settled(Site& s, size_t i, const Dims& own, Value v) {
    const Dims now = s.g().type(v).dims;
    const Dims outside = s.result(i).dims;
    for (size_t axis = 0; axis < outside.size(); ++axis) {
        for (const Dim& d : own) {
            if (d == outside[axis] && !(d == now[axis])) {
                s.rewriter().replace_symbol(d.symbol_name(), now[axis]);
            }
        }
    }
    return ops::reshape(s.g(), v, s.result(i).dims);
}

std::optional<Values> known_branch(Site& s) {
    auto condition = scalar_of(s.g(), s.in());
    if (!condition) {
        return std::nullopt;
    }
    const If& a = s.as<If>();
    Values out =
        inline_graph(s.g(), *condition != 0 ? *a.then_body : *a.else_body, s.inputs().subspan(1));
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = settled(s, i, a.symbols, out[i]);
    }
    return out;
}

std::optional<Values> known_loop(Site& s) {
    auto trips = scalar_of(s.g(), s.in(0));
    auto condition = scalar_of(s.g(), s.in(1));
    const Loop& a = s.as<Loop>();
    auto carried = static_cast<size_t>(a.carried);
    bool none = (trips && *trips <= 0) || (condition && *condition == 0);
    bool once = !none && trips && *trips == 1 && condition;
    if (!(once || (none && s.results() == carried))) {
        return std::nullopt;
    }
    Values args(s.inputs().begin(), s.inputs().end());
    Values out(args.begin() + 2, args.begin() + 2 + a.carried);
    if (once) {
        args[0] = ops::scalar_i64(s.g(), DType::I64, 0);
        out = inline_graph(s.g(), *a.body, args);
        out.erase(out.begin());
    }
    for (size_t i = 0; i < out.size(); ++i) {
        if (i >= carried) {
            out[i] = ops::unsqueeze(s.g(), out[i], {0});
        }
        Dims own = a.symbols;
        own.push_back(a.count);
        out[i] = settled(s, i, own, out[i]);
    }
    return out;
}

// Which inputs of a body are read.
std::vector<bool> inputs_read(const Graph& body) {
    std::vector<uint32_t> uses = use_counts(body);
    std::vector<bool> out;
    for (Value v : body.inputs()) {
        out.push_back(uses[v.id] != 0);
    }
    return out;
}

struct Capture {
    bool keep = true;
    // of a removed input: its constant value, or null when it is not read
    const Tensor* constant = nullptr;
};

// The body without the removed inputs, simplified with the known values.
GraphRef without_captures(const Graph& body, const std::vector<Capture>& captures) {
    Graph out = body.sibling(body.name());
    Values map(body.value_count());
    for (size_t i = 0; i < captures.size(); ++i) {
        Value v = body.inputs()[i];
        if (captures[i].keep) {
            map[v.id] = out.add_input(body.value_name(v), body.type(v));
            out.set_host(map[v.id], body.host(v));
        } else if (captures[i].constant != nullptr) {
            map[v.id] = ops::constant(out, *captures[i].constant);
        }
    }
    for (const Node& n : body.nodes()) {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(map[v.id]);
        }
        out.set_origin(n.name);
        Values results = out.add(*n.def, n.attrs, in);
        for (size_t i = 0; i < results.size(); ++i) {
            map[n.outputs[i].id] = results[i];
            if (!body.value_name(n.outputs[i]).empty()) {
                out.set_value_name(results[i], body.value_name(n.outputs[i]));
            }
        }
    }
    for (size_t i = 0; i < body.outputs().size(); ++i) {
        out.add_output(body.output_names()[i], map[body.outputs()[i].id]);
    }
    return std::make_shared<const Graph>(simplified(out));
}

// `bodies` take operands from `first` on; operands from `captured` on are captures.
std::optional<Values> fewer_captures(Site& s, size_t first, size_t captured) {
    std::vector<Capture> plan;
    bool changed = false;
    std::vector<std::vector<bool>> read;
    for (const GraphRef& b : bodies(s.node())) {
        read.push_back(inputs_read(*b));
    }
    for (size_t i = first; i < s.input_count(); ++i) {
        Capture c;
        if (i >= captured) {
            bool needed = false;
            bool same_type = true;
            for (size_t k = 0; k < read.size(); ++k) {
                const Graph& body = *bodies(s.node())[k];
                needed = needed || read[k][i - first];
                same_type = same_type && body.type(body.inputs()[i - first]) == s.in_type(i);
            }
            const Tensor* t = s.g().constant(s.in(i));
            c.keep = needed && (t == nullptr || !same_type);
            c.constant = needed && !c.keep ? t : nullptr;
        }
        changed = changed || !c.keep;
        plan.push_back(c);
    }
    if (!changed) {
        return std::nullopt;
    }
    Values in(s.inputs().begin(), s.inputs().begin() + static_cast<int64_t>(first));
    for (size_t i = 0; i < plan.size(); ++i) {
        if (plan[i].keep) {
            in.push_back(s.in(first + i));
        }
    }
    AttrMap map;
    map.body = [&plan](const GraphRef& b) { return without_captures(*b, plan); };
    return s.g().add(*s.node().def, map_attrs(*s.node().def, s.node().attrs.get(), map), in);
}

std::optional<Values> if_captures(Site& s) {
    return fewer_captures(s, 1, 1);
}

std::optional<Values> loop_captures(Site& s) {
    return fewer_captures(s, 0, 2 + static_cast<size_t>(s.as<Loop>().carried));
}

} // namespace

Rules control_rules() {
    static const RuleRow rows[] = {{&if_def, known_branch},
                                   {&if_def, if_captures},
                                   {&loop_def, known_loop},
                                   {&loop_def, loop_captures}};
    return rows;
}

} // namespace ingot::passes
