// SPDX-License-Identifier: Apache-2.0
// fold_constants: evaluates nodes whose operands are all constant, within bounds on memory and
// work. Nodes stay that would grow (broadcasts, iota) or that kernels need as they are (dequantised
// weights, random numbers).
#include "base/error.h"
#include "base/interrupt.h"
#include "ops/evaluator.h"
#include "ops/refusal.h"
#include "passes/passes.h"

#include <algorithm>
#include <cmath>

namespace ingot::passes {

namespace {

// Views that repeat elements stay above this size.
constexpr int64_t max_repeated = 1024;

double count_of_type(const Type& t) {
    double n = 1;
    for (const Dim& d : t.dims) {
        n *= d.is_const() ? static_cast<double>(d.value()) : INFINITY;
    }
    return n;
}

double bytes_of_type(const Type& t) {
    return count_of_type(t) * bit_width(t.dtype) / 8;
}

// A rough count of a node's scalar operations; infinite where sizes are unknown.
double operations(const Graph& g, const Node& n, int depth = 0) {
    double out = 0;
    for (Value v : n.outputs) {
        out += count_of_type(g.type(v));
    }
    double in = 0;
    for (Value v : n.inputs) {
        in += count_of_type(g.type(v));
    }
    if (n.is(map_def)) {
        return out * static_cast<double>(n.as<Map>().body.code.size());
    }
    if (n.is(dot_def)) {
        double k = 1;
        for (int64_t axis : n.as<Dot>().a_contract) {
            k *= count_of_type({DType::F32, {g.type(n.inputs[0]).dims[static_cast<size_t>(axis)]}});
        }
        return out * k;
    }
    if (n.def->is_composite() && depth < 8) {
        Graph body = g.sibling("cost");
        Values args;
        for (Value v : n.inputs) {
            args.push_back(body.add_input({}, g.type(v)));
        }
        n.def->expand(body, n.attrs.get(), args);
        double sum = 0;
        for (const Node& inner : body.nodes()) {
            sum += operations(body, inner, depth + 1);
        }
        return sum;
    }
    return in + out;
}

class Folder {
public:
    Folder(const Graph& g, const PassOptions& o) : g_(g), options_(o) {}

    std::optional<Values> operator()(Rewriter& r, const Node& n, std::span<const Value> in) {
        if (!wanted(r.out(), n, in) || !affordable(n)) {
            return std::nullopt;
        }
        check_interrupt();
        std::optional<std::vector<Tensor>> results = evaluated(r.out(), n, in);
        if (!results) {
            return std::nullopt;
        }
        Values out;
        for (Tensor& t : *results) {
            out.push_back(ops::constant(r.out(), std::move(t)));
        }
        return out;
    }

private:
    bool wanted(const Graph& out, const Node& n, std::span<const Value> in) const {
        bool never = !(n.def->is_composite() || n.def->eval != nullptr) || n.is(constant_def) ||
                     n.is(random_def) || n.is(tensor_to_dims_def) || n.is(ops::dequantize_def) ||
                     n.is(ops::refusal_def);
        if (never || !bodies(n).empty() || !declared_symbols(n).empty()) {
            return false;
        }
        for (Value v : in) {
            if (out.constant(v) == nullptr && !(moves(n) && repeated(out, v) != nullptr) &&
                !(n.is(reduce_def) && map_of_constants(out, v) != nullptr)) {
                return false;
            }
        }
        SymbolSet symbols;
        collect_symbols(g_, n, symbols);
        return symbols.empty();
    }

    // Ops that need their operands in memory; a map reads repeated elements on the fly.
    static bool moves(const Node& n) {
        return n.is(scatter_def) || n.is(gather_def) || n.is(concat_def) || n.is(reduce_def) ||
               n.is(pad_def);
    }
    // The constant that v repeats.
    static const Tensor* repeated(const Graph& out, Value v) {
        const Node* p = out.producer(v);
        return p != nullptr && p->is(broadcast_def) ? out.constant(p->inputs[0]) : nullptr;
    }

    // The map that makes v of constants. It stayed, as v would have grown; a reduction need not
    // keep v (sums of bytes, say).
    const Node* map_of_constants(const Graph& out, Value v) const {
        const Node* p = out.producer(v);
        bool fits = p != nullptr && p->is(map_def) &&
                    bytes_of_type(out.type(v)) <= static_cast<double>(options_.fold_bytes);
        return fits && std::all_of(p->inputs.begin(), p->inputs.end(),
                                   [&](Value x) { return out.constant(x) != nullptr; })
                   ? p
                   : nullptr;
    }

    bool affordable(const Node& n) {
        double in = 0;
        for (Value v : n.inputs) {
            in += bytes_of_type(g_.type(v));
        }
        double out = 0;
        for (Value v : n.outputs) {
            out += bytes_of_type(g_.type(v));
        }
        bool repeats = n.is(broadcast_def) || n.is(iota_def) || n.is(window_def);
        if (repeats && count_of_type(g_.type(n.outputs[0])) > static_cast<double>(max_repeated)) {
            return false;
        }
        double work = n.is(reshape_def) ? 0 : operations(g_, n);
        double growth = n.is(reshape_def) ? 0 : std::max(0.0, out - in);
        bool fits = out <= static_cast<double>(options_.fold_bytes) &&
                    growth <= static_cast<double>(options_.fold_growth) &&
                    growth_ + growth <= static_cast<double>(options_.fold_total_growth) &&
                    work_ + work <= options_.fold_operations;
        growth_ += fits ? growth : 0;
        work_ += fits ? work : 0;
        return fits || (n.is(reshape_def) && out < INFINITY);
    }

    // Runs one node. A node that fails (an index out of range) stays, and fails at run time if it
    // runs.
    std::optional<std::vector<Tensor>> evaluated(const Graph& out, const Node& n,
                                                 std::span<const Value> in) const {
        Graph one = g_.sibling("fold");
        std::vector<Tensor> tensors;
        Values args;
        auto add = [&](const Tensor& t) {
            tensors.push_back(t);
            return one.add_input({}, t.type());
        };
        for (Value v : in) {
            const Tensor* whole = out.constant(v);
            const Tensor* t = whole != nullptr ? whole : repeated(out, v);
            if (t != nullptr) {
                args.push_back(ops::broadcast_to(one, add(*t), out.type(v).dims));
                continue;
            }
            const Node& map = *map_of_constants(out, v);
            Values of_map;
            for (Value x : map.inputs) {
                of_map.push_back(add(*out.constant(x)));
            }
            args.push_back(one.add(*map.def, map.attrs, of_map)[0]);
        }
        for (Value v : one.add(*n.def, n.attrs, args)) {
            one.add_output({}, v);
        }
        try {
            return evaluate(one, tensors);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Interrupted || e.code() == ErrorCode::OutOfMemory) {
                throw;
            }
            return std::nullopt;
        }
    }

    const Graph& g_;
    const PassOptions& options_;
    double growth_ = 0;
    double work_ = 0;
};

} // namespace

const Pass fold_constants = {
    .name = "fold_constants",
    .summary = "evaluate nodes that depend on constants only",
    .run =
        [](const Graph& g, const PassOptions& options) {
            Folder folder(g, options);
            return rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                return folder(r, n, in);
            });
        },
    .structural = true,
};

} // namespace ingot::passes
