// SPDX-License-Identifier: Apache-2.0
// fuse_maps: maps are fused into the maps that read them, by substitution of expressions.
#include "ir/rewrite.h"
#include "lower/canonical.h"
#include "lower/epilogue_group.h"
#include "lower/lowering.h"
#include "lower/map_builder.h"
#include "ops/primitives.h"
#include "plan/views.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr size_t most_inputs = 16;
constexpr size_t most_instructions = 160;

/// The map that computes v in the new graph, or null.
const Node* map_of(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    return p != nullptr && p->is(map_def) ? p : nullptr;
}

/// The kernel (no view or source) that a map with one reader could follow; or the value's own.
const Node* kernel_before(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    bool works = p != nullptr && !p->is(map_def) && !p->inputs.empty() && !is_view(g, *p);
    return works ? p : nullptr;
}

/// Marks operands that are results of kernels, or maps over them, except the one computed last:
/// maps among them stay with their kernels.
std::vector<bool> kept_apart(const Graph& g, std::span<const Value> in) {
    std::vector<Value> last(in.size()); // the latest kernel result that each operand depends on
    std::vector<bool> behind(in.size());
    size_t newest = in.size();
    for (size_t i = 0; i < in.size(); ++i) {
        const Node* p = map_of(g, in[i]);
        for (Value v : p != nullptr ? std::span<const Value>(p->inputs) : in.subspan(i, 1)) {
            if (kernel_before(g, v) != nullptr && (!behind[i] || last[i] < v)) {
                behind[i] = true;
                last[i] = v;
            }
        }
        if (behind[i] && (newest == in.size() || last[newest] < last[i])) {
            newest = i;
        }
    }
    std::vector<bool> apart(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        apart[i] = behind[i] && last[i] != last[newest];
    }
    return apart;
}

/// Facts about the values of the graph being read.
struct Readers {
    std::vector<uint32_t> all;
    std::vector<uint32_t> maps;
    std::vector<bool> fixed;  // constants and values computed from them alone, once
    std::vector<bool> joined; // a map reads it, or a map of it, beside another whole tensor

    explicit Readers(const Graph& g)
        : all(use_counts(g)), maps(g.value_count(), 0), fixed(g.value_count(), false),
          joined(g.value_count(), false) {
        for (const Node& n : g.nodes()) {
            bool known = n.is(constant_def) || !n.inputs.empty();
            for (Value v : n.inputs) {
                maps[v.id] += n.is(map_def) ? 1 : 0;
                known = known && fixed[v.id];
                joined[v.id] = n.is(map_def) && all[v.id] == 1 && has_other_tensor(g, n, v);
            }
            for (Value v : n.outputs) {
                fixed[v.id] = known;
            }
        }
        for (size_t i = g.nodes().size(); i-- > 0;) {
            const Node& n = g.nodes()[i];
            for (Value v : n.is(map_def) && joined[n.outputs[0].id] ? n.inputs : Values()) {
                bool alone = all[v.id] == 1 && g.type(v).dims == g.type(n.outputs[0]).dims;
                joined[v.id] = joined[v.id] || alone;
            }
        }
    }

private:
    bool has_other_tensor(const Graph& g, const Node& map, Value v) const {
        return std::any_of(map.inputs.begin(), map.inputs.end(), [&](Value o) {
            return o != v && !fixed[o.id] && g.type(o).dims == g.type(v).dims;
        });
    }
};

bool is_cheap(const ExprInstr& i) {
    switch (i.op) {
    case ExprOp::In:
    case ExprOp::Const:
    case ExprOp::Cast:
    case ExprOp::Select:
    case ExprOp::Add:
    case ExprOp::Sub:
    case ExprOp::Mul:
    case ExprOp::Min:
    case ExprOp::Max:
    case ExprOp::Neg:
    case ExprOp::Abs:
    case ExprOp::And:
    case ExprOp::Or:
    case ExprOp::Not:
    case ExprOp::Eq:
    case ExprOp::Lt:
    case ExprOp::Le:
        return true;
    default:
        return false;
    }
}

/// Whether v is, through views, the result of a kernel.
bool views_kernel(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    while (p != nullptr && is_view(g, *p)) {
        p = g.producer(p->inputs[0]);
    }
    return p != nullptr && !p->is(map_def) && !p->inputs.empty();
}

/// Whether all readers of a map should recompute it: a few cheap instructions over values that are
/// in memory anyway, with no more of them to read than the result has.
bool is_cheaper_again(const Graph& g, const Node& map, uint32_t readers) {
    constexpr size_t most = 8;
    const std::vector<ExprInstr>& code = map.as<Map>().body.code;
    uint32_t whole = 0;
    for (Value v : map.inputs) {
        if (views_kernel(g, v)) {
            return false; // the map may become its epilogue
        }
        whole += g.type(v).dims == g.type(map.outputs[0]).dims ? 1 : 0;
    }
    return code.size() <= most && std::all_of(code.begin(), code.end(), is_cheap) &&
           whole * readers <= whole + 1 + readers;
}

/// Whether a kernel takes the map, which stores bytes, as its epilogue.
bool is_epilogue(const KernelSet& kernels, const Graph& g, const Node& map) {
    for (size_t i = 0; i < map.inputs.size(); ++i) {
        const Node* p = kernel_before(g, map.inputs[i]);
        if (p == nullptr || p->outputs.size() != 1) {
            continue;
        }
        Values inputs;
        GraphRef body = epilogue_group(g, *p, map, map.inputs, i, inputs);
        if (kernels.find(p->def->name,
                         Group{*body, body->nodes(), body->inputs(), body->outputs()}) != nullptr) {
            return true;
        }
    }
    return false;
}

/// Whether a map widens bytes that a kernel's epilogue can store, for a map that reads another
/// tensor too: a residual is stored as bytes, and widened where it is added.
bool widens_stored_bytes(const KernelSet& kernels, const Graph& g, const Node& stores, DType wide,
                         bool joined) {
    DType narrow = g.type(stores.outputs[0]).dtype;
    bool bytes = narrow != DType::Bool && bit_width(narrow) == 8 && bit_width(wide) > 8;
    return bytes && joined && is_epilogue(kernels, g, stores);
}

std::optional<Values> fuse_into_map(const KernelSet& kernels, Rewriter& r, const Node& n,
                                    std::span<const Value> in, const Readers& readers) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    const Graph& g = r.out();
    const Dims& dims = r.mapped(r.from().type(n.outputs[0]).dims);
    MapBuilder b{g, {}, {}};
    std::vector<int> at;
    bool any = false;
    size_t budget = most_instructions;
    size_t operands = in.size();
    std::vector<bool> apart = kept_apart(g, in);
    for (size_t i = 0; i < in.size(); ++i) {
        const Node* p = map_of(g, in[i]);
        auto occurrences =
            static_cast<uint32_t>(std::count(n.inputs.begin(), n.inputs.end(), n.inputs[i]));
        Value read = n.inputs[i];
        bool alone = readers.all[read.id] == occurrences && g.type(in[i]).dims == dims;
        bool fuses =
            p != nullptr && !apart[i] &&
            !widens_stored_bytes(kernels, g, *p, n.as<Map>().dtype,
                                 readers.joined[n.outputs[0].id]) &&
            p->as<Map>().body.code.size() < budget && operands + p->inputs.size() <= most_inputs &&
            (alone || (readers.all[read.id] == readers.maps[read.id] && !readers.fixed[read.id] &&
                       is_cheaper_again(g, *p, readers.maps[read.id])));
        if (fuses) {
            budget -= p->as<Map>().body.code.size();
            operands += p->inputs.size();
            at.push_back(b.inline_map(*p));
            any = true;
        } else {
            at.push_back(b.input(in[i]));
        }
    }
    const auto& map = n.as<Map>();
    if (!any || map.body.code.size() > budget) {
        return std::nullopt;
    }
    int result = b.body.inline_expr(map.body, at);
    if (static_cast<size_t>(result) + 1 != b.body.code.size()) {
        return std::nullopt; // the result is a shared earlier instruction
    }
    return Values{r.out().add1(map_def, Map{b.body, map.dtype}, b.inputs)};
}

/// The map in canonical() form, with `leading` as first operand.
std::optional<Values> order_map(const KernelSet&, Rewriter& r, const Node& n,
                                std::span<const Value> in, const Readers&) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    const auto& map = n.as<Map>();
    CanonicalExpr c = canonical(map.body, static_cast<int>(in.size()), -1);
    Values inputs;
    for (int i : c.inputs) {
        inputs.push_back(in[static_cast<size_t>(i)]);
    }
    return Values{r.out().add1(map_def, Map{c.body, map.dtype}, inputs)};
}

using MapRule = std::optional<Values> (*)(const KernelSet&, Rewriter&, const Node&,
                                          std::span<const Value>, const Readers&);

Graph rewritten(const KernelSet& kernels, const Graph& g, MapRule rule) {
    Readers readers(g);
    return dead_code(rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        return rule(kernels, r, n, in, readers);
    }));
}

Graph fused(const KernelSet& kernels, const Graph& g) {
    // Twice: a map with two readers has one left once it is fused into the first.
    Graph once = rewritten(kernels, g, fuse_into_map);
    return rewritten(kernels, rewritten(kernels, once, fuse_into_map), order_map);
}

} // namespace

Pass fuse_maps(const KernelSet& kernels) {
    return {
        .name = "fuse_maps",
        .summary = "maps become part of the maps that read them",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(kernels, g); },
    };
}

} // namespace ingot::plan
