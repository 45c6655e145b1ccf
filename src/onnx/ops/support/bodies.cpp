// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/bodies.h"

#include "ir/rewrite.h"

#include <algorithm>

namespace ingot::onnx {

std::set<std::string, std::less<>> inner_symbols(const ingot::Graph& g, const Dims& more) {
    SymbolSet out;
    for (const ingot::Node& n : g.nodes()) {
        out.merge(declared_symbols(n));
    }
    for (const Dim& d : more) {
        d.collect_symbols(out);
    }
    return out;
}

Value with_outer_sizes(ingot::Graph& g, Value v, const std::set<std::string, std::less<>>& inner,
                       Dims& symbols) {
    Dims dims = ops::dims(g, v);
    Dims hidden;
    Dims fresh;
    for (Dim& d : dims) {
        SymbolSet used;
        d.collect_symbols(used);
        bool outer = std::none_of(used.begin(), used.end(),
                                  [&](const std::string& s) { return inner.count(s) != 0; });
        if (!outer) {
            hidden.push_back(d);
            fresh.push_back(g.fresh_symbol());
            d = fresh.back();
        }
    }
    if (hidden.empty()) {
        return v;
    }
    g.add(tensor_to_dims_def, TensorToDims{fresh}, std::array{ops::dims_tensor(g, hidden)});
    symbols.insert(symbols.end(), fresh.begin(), fresh.end());
    return ops::reshape(g, v, dims);
}

Values add_inputs_like(ingot::Graph& to, const ingot::Graph& from, std::span<const Value> values) {
    Values out;
    for (Value v : values) {
        out.push_back(to.add_input(from.value_name(v), from.type(v)));
        to.set_host(out.back(), from.host(v));
    }
    return out;
}

bool known_true(const ingot::Graph& g, Value v) {
    auto known = ops::known_dims(g, v);
    return known && known->size() == 1 && (*known)[0].is_const() && !(*known)[0].is_const(0);
}

} // namespace ingot::onnx
