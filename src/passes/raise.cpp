// SPDX-License-Identifier: Apache-2.0
#include "passes/raise.h"

namespace ingot::passes {

namespace {

Dims with_ones(const Dims& in, const std::vector<int64_t>& axes) {
    Dims out = in;
    for (int64_t a : axes) {
        out[static_cast<size_t>(a)] = 1;
    }
    return out;
}

// Whether the term is the number n, as a constant or a size.
bool is_size(const View& v, Term t, const Dim& n) {
    if (v.is(t, ExprOp::Cast)) {
        t = v.arg(t, 0);
    }
    auto leaf = v.leaf(t);
    HostRef host = leaf ? v.graph().host(*leaf) : nullptr;
    auto dims = host != nullptr ? host->dims() : std::nullopt;
    return dims && dims->size() == 1 && (*dims)[0] == n;
}

} // namespace

std::optional<Reduction> reduction(const View& v, Term t, std::string_view fn) {
    const Graph& g = v.graph();
    const Node* n = v.node(t, reduce_def);
    const Node* keep = v.node(t, reshape_def);
    if (keep != nullptr) {
        n = g.producer(keep->inputs[0]);
    }
    if (n == nullptr || !n->is(reduce_def) || n->as<Reduce>().fn != fn) {
        return std::nullopt;
    }
    Reduction r{n->inputs[0], n->as<Reduce>().axes};
    const Dims& in = g.type(r.x).dims;
    // Without axes of size 1 in their place, only leading axes may have been removed.
    bool leading = r.axes.back() + 1 == static_cast<int64_t>(r.axes.size());
    bool fits = keep != nullptr ? keep->as<Reshape>().dims == with_ones(in, r.axes) : leading;
    return fits ? std::optional(r) : std::nullopt;
}

std::optional<Reduction> mean(const View& v, Term t, double coefficient) {
    Product p = v.product(t);
    if (p.num.size() != 1) {
        return std::nullopt;
    }
    auto r = reduction(v, p.num[0], "sum");
    if (!r) {
        return std::nullopt;
    }
    Dim n = 1;
    for (int64_t a : r->axes) {
        n = n * v.graph().type(r->x).dims[static_cast<size_t>(a)];
    }
    double scale = p.scale * coefficient;
    if (p.den.empty()) {
        bool counts = n.is_const() && nearly(scale * static_cast<double>(n.value()), 1, 1e-5);
        return counts ? r : std::nullopt;
    }
    bool counts = p.den.size() == 1 && nearly(scale, 1) && is_size(v, p.den[0], n);
    return counts ? r : std::nullopt;
}

std::optional<int64_t> trailing(const std::vector<int64_t>& axes, int64_t rank) {
    auto first = rank - static_cast<int64_t>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i] != first + static_cast<int64_t>(i)) {
            return std::nullopt;
        }
    }
    return axes.empty() ? std::nullopt : std::optional(first);
}

DType wider(DType a, DType b) {
    if (a == b) {
        return a;
    }
    return a == DType::F64 || b == DType::F64 ? DType::F64 : DType::F32;
}

bool all_are(const Tensor* t, double v) {
    for (int64_t i = 0; t != nullptr && i < t->count(); ++i) {
        if (t->get_f64(i) != v) {
            return false;
        }
    }
    return t != nullptr;
}

std::optional<Value> over_last(Graph& g, Value v, int64_t axes) {
    const Dims d = g.type(v).dims;
    auto rank = static_cast<int64_t>(d.size());
    for (int64_t i = 0; i < rank - axes; ++i) {
        if (!d[static_cast<size_t>(i)].is_const(1)) {
            return std::nullopt;
        }
    }
    return rank <= axes ? v : ops::reshape(g, v, Dims(d.end() - axes, d.end()));
}

} // namespace ingot::passes
