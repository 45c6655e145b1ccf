// SPDX-License-Identifier: Apache-2.0
#include "kernels/roll/walk.h"

#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

Shape sizes_of(const Shape& shape, const std::vector<size_t>& axes) {
    Shape out;
    for (size_t axis : axes) {
        out.push_back(shape[axis]);
    }
    return out;
}

} // namespace

std::vector<AxisGroup> axis_groups(const Shape& a, const Shape& b) {
    std::vector<AxisGroup> out;
    size_t i = 0;
    size_t k = 0;
    auto next = [](const Shape& s, size_t& at, std::vector<size_t>& axes, int64_t& product) {
        while (at < s.size() && s[at] == 1) {
            ++at;
        }
        if (at == s.size()) {
            return false;
        }
        product *= s[at];
        axes.push_back(at++);
        return true;
    };
    for (;;) {
        AxisGroup g;
        int64_t of_a = 1;
        int64_t of_b = 1;
        bool more_a = next(a, i, g.a, of_a);
        bool more_b = next(b, k, g.b, of_b);
        while (of_a != of_b) {
            bool grown = of_a < of_b ? next(a, i, g.a, of_a) : next(b, k, g.b, of_b);
            CHECK(grown, "a reshape of ", a, " to ", b, " that changes the number of elements");
        }
        if (!more_a && !more_b) {
            return out;
        }
        out.push_back(std::move(g));
    }
}

void Run::reshape(const Shape& to) {
    for (const AxisGroup& g : axis_groups(shape, to)) {
        if (std::find(g.a.begin(), g.a.end(), axis) != g.a.end()) {
            unit = g.a.back() == axis ? std::gcd(unit, to[g.b.back()]) : 1;
            axis = g.b.back();
            break;
        }
    }
    shape = to;
}

void Run::permute(std::span<const int64_t> perm) {
    Shape from(shape.size());
    for (size_t i = 0; i < perm.size(); ++i) {
        from[static_cast<size_t>(perm[i])] = shape[i];
    }
    shape = std::move(from);
    axis = static_cast<size_t>(perm[axis]);
}

void Run::roll(std::span<const int64_t> axes, const Shape& shifts) {
    for (size_t k = 0; k < axes.size(); ++k) {
        if (static_cast<size_t>(axes[k]) == axis) {
            unit = std::gcd(std::gcd(unit, shifts[k]), shape[axis]);
        }
    }
}

std::string WalkText::parameter(int64_t v, bool is_offset) {
    std::string name = str("k", names_++);
    is_offset ? parameters_.offset(name, v) : parameters_.size(name, v);
    return name;
}

std::string WalkText::declare(const std::string& value) {
    std::string name = str("c", names_++);
    append(body, str("const ", index_type(), " ", name, " = ", value, ";\n"));
    return name;
}

void WalkText::begin(const Shape& shape, const plan::Order& order, int64_t vector) {
    shape_ = shape;
    at_.assign(shape.size(), {});
    std::vector<size_t> axes;
    for (int axis : order) {
        if (shape[static_cast<size_t>(axis)] != 1) {
            axes.push_back(static_cast<size_t>(axis));
        }
    }
    if (axes.empty()) {
        return;
    }
    Shape sizes = sizes_of(shape, axes);
    sizes.back() /= vector;
    IndexText index(sizes, wide_);
    index.add(parameters_);
    append(body, index.split("i"));
    for (size_t k = 0; k < axes.size(); ++k) {
        at_[axes[k]] = str("x", k);
    }
    if (vector > 1) {
        std::string& last = at_[axes.back()];
        last = declare(str(last, " * ", vector));
    }
}

void WalkText::reshape(const Shape& from) {
    std::vector<std::string> at(from.size());
    for (const AxisGroup& g : axis_groups(shape_, from)) {
        std::string joined = at_[g.a[0]];
        for (size_t k = 1; k < g.a.size(); ++k) {
            std::string size = parameter(shape_[g.a[k]]);
            joined = str("(", joined, ") * ", size, " + ", at_[g.a[k]]);
        }
        if (g.a.size() > 1) {
            joined = declare(joined);
        }
        if (g.b.size() == 1) {
            at[g.b[0]] = joined;
            continue;
        }
        std::string divisor = str("d", names_++, "_");
        std::string coordinate = str("x", names_++, "_");
        IndexText split(sizes_of(from, g.b), wide_, divisor);
        split.add(parameters_);
        append(body, split.split(joined, coordinate));
        for (size_t k = 0; k < g.b.size(); ++k) {
            at[g.b[k]] = str(coordinate, k);
        }
    }
    shape_ = from;
    at_ = std::move(at);
}

void WalkText::permute(std::span<const int64_t> perm) {
    Shape shape(shape_.size());
    std::vector<std::string> at(at_.size());
    for (size_t i = 0; i < perm.size(); ++i) {
        shape[static_cast<size_t>(perm[i])] = shape_[i];
        at[static_cast<size_t>(perm[i])] = at_[i];
    }
    shape_ = std::move(shape);
    at_ = std::move(at);
}

void WalkText::roll(std::span<const int64_t> axes, const Shape& shifts) {
    for (size_t k = 0; k < axes.size(); ++k) {
        auto axis = static_cast<size_t>(axes[k]);
        std::string& c = at_[axis];
        if (c.empty()) {
            continue;
        }
        std::string shift = parameter(shifts[k]);
        std::string back = parameter(shape_[axis] - shifts[k]);
        c = declare(str(c, " >= ", shift, " ? ", c, " - ", shift, " : ", c, " + ", back));
    }
}

void WalkText::offset(const std::string& name, const View& v, int inner) {
    std::vector<std::string> coordinates;
    std::vector<std::string> strides;
    for (size_t n = 0; n < at_.size(); ++n) {
        if (!at_[n].empty() && v.strides[n] != 0) {
            coordinates.push_back(at_[n]);
            strides.push_back(static_cast<int>(n) == inner ? "1" : parameter(v.strides[n], true));
        }
    }
    append(body, str("const ", offset_type(), " ", name, " = ",
                     offset_text(offset_type(), coordinates, strides), ";\n"));
}

} // namespace ingot::kernels
