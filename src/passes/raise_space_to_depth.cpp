// SPDX-License-Identifier: Apache-2.0
// raise_space_to_depth: every n-th element along some axes, from each start, concatenated along an
// axis, is one permutation, as in patch merging.
#include "passes/passes.h"
#include "passes/rules.h"

#include <algorithm>

namespace ingot::passes {

namespace {

// Slices of x with equal steps and sizes, by their starts.
struct Phases {
    Value x;
    std::vector<int64_t> steps;
    Dims sizes;
    std::vector<std::vector<int64_t>> starts; // per part
};

std::optional<Phases> phases(const Site& s) {
    Phases out;
    for (size_t k = 0; k < s.input_count(); ++k) {
        const Node* n = s.producer(k, slice_def);
        if (n == nullptr) {
            return std::nullopt;
        }
        const Slice& a = n->as<Slice>();
        auto starts = as_const(a.starts);
        bool first = k == 0;
        if (first) {
            out = {n->inputs[0], a.steps, a.sizes, {}};
        }
        if (!starts || (!first && (out.x != n->inputs[0] || out.steps != a.steps ||
                                   !(out.sizes == a.sizes)))) {
            return std::nullopt;
        }
        out.starts.push_back(*starts);
    }
    return out;
}

// The axes with steps, slowest first, when the parts enumerate all starts in that order.
std::optional<std::vector<size_t>> counted(const Phases& p, const Dims& whole) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < whole.size(); ++i) {
        if (p.steps[i] < 1 || !(p.sizes[i] * Dim(p.steps[i]) == whole[i])) {
            return std::nullopt;
        }
        if (p.steps[i] > 1) {
            axes.push_back(i);
        }
    }
    // The part that starts at 1 along one axis alone gives the weight of that axis.
    std::vector<int64_t> weight(whole.size(), 0);
    for (size_t k = 0; k < p.starts.size(); ++k) {
        const auto& at = p.starts[k];
        auto one = std::find(at.begin(), at.end(), 1);
        if (one != at.end() &&
            std::count(at.begin(), at.end(), 0) + 1 == static_cast<int64_t>(at.size())) {
            weight[static_cast<size_t>(one - at.begin())] = static_cast<int64_t>(k);
        }
    }
    std::stable_sort(axes.begin(), axes.end(),
                     [&weight](size_t a, size_t b) { return weight[a] > weight[b]; });
    int64_t count = 1;
    for (size_t i = axes.size(); i-- > 0; count *= p.steps[axes[i]]) {
        if (weight[axes[i]] != count) {
            return std::nullopt;
        }
    }
    if (axes.empty() || count != static_cast<int64_t>(p.starts.size())) {
        return std::nullopt;
    }
    for (size_t k = 0; k < p.starts.size(); ++k) {
        int64_t at = 0;
        for (size_t i = 0; i < whole.size(); ++i) {
            int64_t start = p.starts[k][i];
            if (start < 0 || start >= p.steps[i]) {
                return std::nullopt;
            }
            at += start * weight[i];
        }
        if (at != static_cast<int64_t>(k)) {
            return std::nullopt;
        }
    }
    return axes;
}

std::optional<Values> raise(Site& s) {
    auto p = phases(s);
    if (!p) {
        return std::nullopt;
    }
    const Dims whole = s.g().type(p->x).dims;
    auto slowest_first = counted(*p, whole);
    if (!slowest_first) {
        return std::nullopt;
    }
    auto joined = static_cast<size_t>(s.as<Concat>().axis);
    Dims split;
    std::vector<int64_t> place(whole.size()); // position of each axis among the split ones
    for (size_t i = 0; i < whole.size(); ++i) {
        place[i] = static_cast<int64_t>(split.size());
        split.push_back(p->sizes[i]);
        if (p->steps[i] > 1) {
            split.emplace_back(p->steps[i]);
        }
    }
    std::vector<int64_t> perm;
    for (size_t i = 0; i < whole.size(); ++i) {
        for (size_t k = 0; i == joined && k < slowest_first->size(); ++k) {
            perm.push_back(place[(*slowest_first)[k]] + 1);
        }
        perm.push_back(place[i]);
    }
    Graph& g = s.g();
    return Values{
        ops::reshape(g, ops::permute(g, ops::reshape(g, p->x, split), perm), s.result().dims)};
}

} // namespace

const Pass raise_space_to_depth = {
    .name = "raise_space_to_depth",
    .summary = "recognise merged patches",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&concat_def, raise}};
            return apply_rules(g, Rules(rows));
        },
    .structural = true,
};

} // namespace ingot::passes
