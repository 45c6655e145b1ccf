// SPDX-License-Identifier: Apache-2.0
#include "passes/dims_util.h"

namespace ingot::passes {

namespace {

// Walks one shape, axis by axis, dividing the current size by factors.
struct Walk {
    const Dims& dims;
    std::vector<size_t> spans;
    size_t axis = 0;
    Dim left = 1;

    explicit Walk(const Dims& d) : dims(d), spans(d.size(), 0) { next(); }
    bool done() const { return axis == dims.size(); }
    void next() {
        while (axis < dims.size() && dims[axis].is_const(1)) {
            ++axis;
        }
        left = axis < dims.size() ? dims[axis] : Dim(1);
    }
    void take(const Dim& rest) {
        ++spans[axis];
        left = rest;
        if (left.is_const(1)) {
            ++axis;
            next();
        }
    }
};

} // namespace

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
    if (b.is_const(0)) {
        return std::nullopt;
    }
    Dim q = floor_div(a, b);
    return q * b == a ? std::optional(q) : std::nullopt;
}

bool always_le(const Dim& a, const Dim& b) {
    return (b - a).bounds().low >= 0;
}

Dims without_ones(const Dims& d) {
    Dims out;
    for (const Dim& x : d) {
        if (!x.is_const(1)) {
            out.push_back(x);
        }
    }
    return out;
}

bool is_identity(const std::vector<int64_t>& perm) {
    for (size_t i = 0; i < perm.size(); ++i) {
        if (perm[i] != static_cast<int64_t>(i)) {
            return false;
        }
    }
    return true;
}

std::optional<Refinement> refine(const Dims& a, const Dims& b) {
    Refinement r;
    Walk x(a);
    Walk y(b);
    while (!x.done() && !y.done()) {
        if (x.left == y.left) {
            r.atoms.push_back(x.left);
            x.take(1);
            y.take(1);
        } else if (auto q = exact_quotient(y.left, x.left)) {
            r.atoms.push_back(x.left);
            x.take(1);
            y.take(*q);
        } else if (auto p = exact_quotient(x.left, y.left)) {
            r.atoms.push_back(y.left);
            y.take(1);
            x.take(*p);
        } else {
            return std::nullopt;
        }
    }
    if (!x.done() || !y.done()) {
        return std::nullopt;
    }
    r.a = std::move(x.spans);
    r.b = std::move(y.spans);
    return r;
}

} // namespace ingot::passes
