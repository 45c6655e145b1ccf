// SPDX-License-Identifier: Apache-2.0
#include "workflow/finite.h"

#include "base/text.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace ingot {

namespace {

/// The number of elements of v for which `test` holds, as a scalar.
Value count_of(Graph& g, Value v, ExprOp test) {
    Value hit = ops::cast(g, ops::unary(g, test, v), DType::I64);
    std::vector<int64_t> axes(static_cast<size_t>(g.type(v).rank()));
    std::iota(axes.begin(), axes.end(), 0);
    return axes.empty() ? hit : ops::reduce_sum(g, hit, axes);
}

/// Float values that are not constants, in the order in which they are computed.
Values watched(const Graph& g) {
    Values out;
    auto look = [&](Value v) {
        if (is_float(g.type(v).dtype) && bit_width(g.type(v).dtype) >= 16 &&
            g.constant(v) == nullptr) {
            out.push_back(v);
        }
    };
    for (Value v : g.inputs()) {
        look(v);
    }
    for (const Node& n : g.nodes()) {
        for (Value v : n.outputs) {
            look(v);
        }
    }
    return out;
}

/// A run of the graph with other outputs.
std::vector<Tensor> run(const Engine& engine, Graph g, size_t added, const Backend& backend,
                        const CompileOptions& options, std::span<const Tensor> inputs) {
    Context context(engine.with_graph(std::move(g), engine.metadata()), backend, options);
    std::vector<Tensor> results = context.run(inputs);
    results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(added));
    return results;
}

Shape position_of(const Shape& shape, int64_t element) {
    Shape out(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
        out[i] = element % shape[i];
        element /= shape[i];
    }
    return out;
}

NotFinite described(const Graph& g, Value v, const Tensor& t, bool want_nan) {
    NotFinite out;
    const Node* n = g.producer(v);
    out.layer = n == nullptr ? str("input '", g.value_name(v), "'") : str("'", n->name, "'");
    out.op = n == nullptr ? "" : std::string(n->def->name);
    out.type = t.type();
    for (int64_t i = 0; i < t.count(); ++i) {
        double x = t.get_f64(i);
        if (std::isfinite(x)) {
            continue;
        }
        out.count++;
        if (out.value.empty() && (!want_nan || std::isnan(x))) {
            out.value = std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
            out.position = position_of(t.shape(), i);
        }
    }
    return out;
}

} // namespace

std::string NotFinite::text() const {
    std::string where = str(position);
    return str(layer, op.empty() ? "" : str(" (", op, ")"), op.empty() ? " has " : " gives ", value,
               " at ", where, " of ", type, "; ", count, " of its elements ",
               count == 1 ? "is" : "are", " not finite",
               arises ? ", and all that it reads is finite" : "");
}

std::vector<NotFinite> find_not_finite(const Engine& engine, const Backend& backend,
                                       const CompileOptions& options,
                                       std::span<const Tensor> inputs) {
    const Graph& g = engine.graph();
    Values values = watched(g);
    Graph counting = g;
    for (Value v : values) {
        counting.add_output(str("infinities ", v.id), count_of(counting, v, ExprOp::IsInf));
        counting.add_output(str("nans ", v.id), count_of(counting, v, ExprOp::IsNan));
    }
    std::vector<Tensor> counts =
        run(engine, std::move(counting), 2 * values.size(), backend, options, inputs);
    std::vector<bool> bad(g.value_count(), false);
    std::optional<size_t> first;
    std::optional<size_t> first_nan;
    for (size_t i = 0; i < values.size(); ++i) {
        bool nan = counts[2 * i + 1].get_i64(0) > 0;
        bad[values[i].id] = nan || counts[2 * i].get_i64(0) > 0;
        first = !first && bad[values[i].id] ? std::optional(i) : first;
        first_nan = !first_nan && nan ? std::optional(i) : first_nan;
    }
    if (!first) {
        return {};
    }
    bool later = first_nan && *first_nan != *first;
    Graph showing = g;
    showing.add_output("first", values[*first]);
    if (later) {
        showing.add_output("first nan", values[*first_nan]);
    }
    std::vector<Tensor> shown =
        run(engine, std::move(showing), later ? 2 : 1, backend, options, inputs);
    std::vector<NotFinite> out{described(g, values[*first], shown[0], !later && first_nan)};
    if (later) {
        out.push_back(described(g, values[*first_nan], shown[1], true));
    }
    for (size_t i = 0; i < out.size(); ++i) {
        const Node* n = g.producer(values[i == 0 ? *first : *first_nan]);
        out[i].arises = n != nullptr && std::none_of(n->inputs.begin(), n->inputs.end(),
                                                     [&](Value v) { return bad[v.id]; });
    }
    return out;
}

} // namespace ingot
