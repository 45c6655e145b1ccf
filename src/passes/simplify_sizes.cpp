// SPDX-License-Identifier: Apache-2.0
// Rules for shape arithmetic: symbolically known values are not computed from tensors.
#include "base/error.h"
#include "passes/simplify.h"

#include <algorithm>

namespace ingot::passes {

namespace {

// All elements as integers, or nullopt.
std::optional<std::vector<int64_t>> integers(const Dims& d) {
    std::vector<int64_t> out;
    for (const Dim& x : d) {
        if (!x.is_const()) {
            return std::nullopt;
        }
        out.push_back(x.value());
    }
    return out;
}

Value constant_of(Graph& g, const Type& t, const std::vector<int64_t>& v) {
    Shape shape;
    if (t.rank() == 1) {
        shape.push_back(static_cast<int64_t>(v.size()));
    }
    return ops::constant(g, Tensor::of(t.dtype, shape, std::span<const int64_t>(v)));
}

// A small integer tensor whose contents are known as sizes.
std::optional<Values> known_contents(Site& s) {
    const Node& n = s.node();
    HostRef host = s.results() == 1 ? s.old_host() : nullptr;
    if (host == nullptr || n.is(constant_def) || n.is(tensor_to_dims_def) || n.is(iota_def) ||
        n.is(dims_to_tensor_def) || !declared_symbols(n).empty()) {
        return std::nullopt;
    }
    Type t = s.result();
    bool sizes = t.dtype == DType::I64 || t.dtype == DType::I32;
    if (t.rank() > 1 || (!sizes && t.dtype != DType::Bool)) {
        return std::nullopt;
    }
    auto dims = host->dims();
    bool fits = dims && (t.rank() == 0 ? dims->size() == 1
                                       : t.dims[0].is_const(static_cast<int64_t>(dims->size())));
    if (!fits) {
        return std::nullopt;
    }
    for (Dim& d : *dims) {
        d = s.rewriter().mapped(d);
    }
    if (auto v = integers(*dims)) {
        return Values{constant_of(s.g(), t, *v)};
    }
    if (!sizes) {
        return std::nullopt;
    }
    return Values{s.g().add1(dims_to_tensor_def, DimsToTensor{*dims, t.dtype, t.rank() == 0}, {})};
}

std::optional<Values> constant_sizes(Site& s) {
    auto v = integers(s.as<DimsToTensor>().values);
    return v ? std::optional(Values{constant_of(s.g(), s.result(), *v)}) : std::nullopt;
}

// Whether some size is what this symbol and another size broadcast to. With a number in its place
// the broadcast is another expression (ir/dim.h), and types would not agree any more.
bool is_broadcast(const Graph& g, const Dim& symbol) {
    auto zero = [&](std::string_view name) {
        return name == symbol.symbol_name() ? std::optional<Dim>(0) : std::nullopt;
    };
    auto broadcasts = [&](const Dim& d) {
        return !(d == symbol) && d.has_symbol(symbol.symbol_name()) &&
               d == max(symbol, d.substitute(zero));
    };
    return std::any_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) {
        return std::any_of(n.outputs.begin(), n.outputs.end(), [&](Value v) {
            const Dims& dims = g.type(v).dims;
            return std::any_of(dims.begin(), dims.end(), broadcasts);
        });
    });
}

// Symbols bound to contents that are known.
std::optional<Values> bound_to_known(Site& s) {
    auto known = ops::known_dims(s.g(), s.in());
    const Dims& symbols = s.as<TensorToDims>().symbols;
    if (!known || known->size() != symbols.size()) {
        return std::nullopt;
    }
    for (size_t i = 0; i < symbols.size(); ++i) {
        bool is_size = symbols[i].symbol_name().starts_with('~') || (*known)[i].bounds().low >= 0;
        if (!is_size || (*known)[i].has_symbol(symbols[i].symbol_name()) ||
            ((*known)[i].is_const() && is_broadcast(s.rewriter().from(), symbols[i]))) {
            return std::nullopt;
        }
    }
    for (size_t i = 0; i < symbols.size(); ++i) {
        s.rewriter().replace_symbol(symbols[i].symbol_name(), (*known)[i]);
    }
    return Values{s.in()};
}

} // namespace

Rules size_rules() {
    static const RuleRow rows[] = {{&tensor_to_dims_def, bound_to_known},
                                   {&dims_to_tensor_def, constant_sizes},
                                   {nullptr, known_contents}};
    return rows;
}

} // namespace ingot::passes
