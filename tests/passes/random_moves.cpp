// SPDX-License-Identifier: Apache-2.0
#include "passes/random_generator.h"

#include <numeric>

namespace ingot::test {

using namespace ops;

void GraphGenerator::views() {
    Value v = any();
    Dims d = dims_of(v);
    switch (d_.below(6)) {
    case 0: {
        int64_t axis = axis_of(v);
        v = unsqueeze(g_, v, {axis});
        return keep(d_.chance(40) ? squeeze(g_, v, {axis}) : v);
    }
    case 1: {
        std::vector<int64_t> perm(d.size());
        std::iota(perm.begin(), perm.end(), 0);
        for (size_t i = perm.size(); i > 1; --i) {
            std::swap(perm[i - 1], perm[static_cast<size_t>(d_.below(static_cast<int64_t>(i)))]);
        }
        v = permute(g_, v, perm);
        return keep(d_.chance(40) ? permute(g_, v, perm) : v);
    }
    case 2: { // merge two axes, perhaps permute, split again
        if (d.size() < 2) {
            return keep(flatten(g_, v));
        }
        Dims merged(d.begin() + 1, d.end());
        merged[0] = merged[0] * d[0];
        Value m = reshape(g_, v, merged);
        if (merged.size() == 2 && d_.chance(60)) {
            m = permute(g_, m, {1, 0});
            Dims back = {d[2], d[0], d[1]};
            m = reshape(g_, m, back);
        }
        return keep(m);
    }
    case 3:
        d.insert(d.begin(), Dim(2));
        v = broadcast_to(g_, v, d);
        d.insert(d.begin(), Dim(1));
        return keep(d_.chance(30) ? broadcast_to(g_, v, d) : v);
    case 4:
        return keep(flatten(g_, v));
    default:
        if (g_.type(v).dtype == DType::U8) {
            return keep(bitcast(g_, bitcast(g_, v, DType::I8), DType::U8));
        }
        if (!d.empty() && d.back().is_const() && d.back().value() > 2) {
            auto last = static_cast<int64_t>(d.size()) - 1;
            return keep(window(g_, v, Window{{last}, {2}, {1}, {1}}));
        }
    }
}

void GraphGenerator::slices() {
    Value v = any_that([](const Type& t) {
        return t.rank() > 0 && t.dims.back().is_const() && t.dims.back().value() > 2;
    });
    if (!v.valid()) {
        return;
    }
    int64_t axis = g_.type(v).rank() - 1;
    int64_t size = dims_of(v).back().value();
    Value a = slice(g_, v, axis, 0, size / 2);
    Value b = slice(g_, v, axis, size / 2, size - size / 2);
    switch (d_.below(4)) {
    case 0:
        return keep(concat(g_, std::array{a, b}, axis));
    case 1:
        return keep(concat(g_, std::array{b, a}, axis));
    case 2:
        return keep(slice(g_, slice(g_, v, axis, size - 1, size - 1, -1), axis, 1, 1));
    default:
        keep(a);
        return keep(slice(g_, concat(g_, std::array{a, v, b}, axis), axis, size / 2 + 1, 1));
    }
}

void GraphGenerator::pads() {
    Value v = any_that([](const Type& t) { return t.rank() > 0 && t.dtype != DType::Bool; });
    if (!v.valid()) {
        return;
    }
    Dims low(dims_of(v).size(), Dim(0));
    Dims high = low;
    high.back() = d_.below(3);
    low.back() = d_.below(2);
    static const std::array<std::string, 3> modes = {"constant", "edge", "constant"};
    Value fill = scalar_i64(g_, DType::I64, d_.below(2));
    std::string mode = d_.of(modes);
    Value p = pad(g_, v, low, high, cast(g_, fill, g_.type(v).dtype), mode);
    keep(d_.chance(40) ? pad(g_, p, high, low, cast(g_, fill, g_.type(v).dtype), mode) : p);
}

void GraphGenerator::concats() {
    Value v = any_that([](const Type& t) { return t.rank() > 0; });
    if (!v.valid()) {
        return;
    }
    int64_t axis = axis_of(v);
    Value both = concat(g_, std::array{v, v}, axis);
    keep(d_.chance(50) ? concat(g_, std::array{both, v}, axis) : both);
}

void GraphGenerator::gathers() {
    Value v = any_that([](const Type& t) {
        return t.rank() > 0 && t.dims[0].is_const() && t.dims[0].value() >= 2;
    });
    if (!v.valid()) {
        return;
    }
    static const std::array<std::vector<int64_t>, 4> lists = {
        std::vector<int64_t>{0, 1}, {1, 0}, {1, 1, 0}, {1}};
    Value indices = i64_list(g_, d_.of(lists));
    if (d_.chance(30)) {
        indices = scalar_i64(g_, DType::I64, d_.below(2));
    } else if (d_.chance(30)) {
        indices = broadcast_to(g_, indices, {2, g_.type(indices).dims[0]});
    } else if (d_.chance(30)) {
        indices = add(g_, iota(g_, DType::I64, {1, dims_of(v)[0]}, 1), 0);
    }
    keep(gather(g_, v, indices, 0));
}

void GraphGenerator::scatters() {
    Value v = any_that([](const Type& t) {
        return t.rank() > 0 && t.dims[0].is_const() && t.dims[0].value() >= 2 &&
               t.dtype != DType::Bool;
    });
    if (!v.valid()) {
        return;
    }
    Value rows = slice(g_, v, 0, 0, 2);
    keep(scatter(g_, v, i64_list(g_, {1, 0}), rows, d_.chance(50) ? "none" : "max"));
}

// Shape arithmetic as exporters spell it.
void GraphGenerator::shapes() {
    Value v = any_that([](const Type& t) { return t.rank() >= 2; });
    if (!v.valid()) {
        return;
    }
    const Dims d = dims_of(v);
    Value shape = dims_tensor(g_, d);
    Value first = gather(g_, shape, i64_list(g_, {0}), 0);
    Value rest = slice(g_, shape, 0, 1, Dim(static_cast<int64_t>(d.size()) - 1));
    Value count = mul(g_, first, reduce(g_, "prod", rest, {0}, true));
    keep(reshape(g_, v, dims_from(g_, count)));
    keep(add(g_, shape, 1));
}

} // namespace ingot::test
