// SPDX-License-Identifier: Apache-2.0
// Rules for contractions: permutations and repetitions of operands become axis numbers.
#include "passes/dims_util.h"
#include "passes/simplify.h"

#include <algorithm>

namespace ingot::passes {

namespace {

using Axes = std::vector<int64_t>;

bool contains(const Axes& axes, int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Renames the axes of one operand through a permutation; false where its free axes would change
// order.
bool unpermute(const Axes& perm, Axes& batch, Axes& contract) {
    int64_t last = -1;
    for (size_t i = 0; i < perm.size(); ++i) {
        auto axis = static_cast<int64_t>(i);
        if (contains(batch, axis) || contains(contract, axis)) {
            continue;
        }
        if (perm[i] < last) {
            return false;
        }
        last = perm[i];
    }
    for (Axes* axes : {&batch, &contract}) {
        for (int64_t& axis : *axes) {
            axis = perm[static_cast<size_t>(axis)];
        }
    }
    return true;
}

std::optional<Values> dot_of_permute(Site& s) {
    Dot d = s.as<Dot>();
    const Node* a = s.producer(0, permute_def);
    const Node* b = s.producer(1, permute_def);
    bool left = a != nullptr && unpermute(a->as<Permute>().perm, d.a_batch, d.a_contract);
    bool right = b != nullptr && unpermute(b->as<Permute>().perm, d.b_batch, d.b_contract);
    if (!left && !right) {
        return std::nullopt;
    }
    return Values{
        ops::dot(s.g(), d, left ? a->inputs[0] : s.in(0), right ? b->inputs[0] : s.in(1))};
}

bool is_run(const Axes& axes, int64_t from) {
    for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i] != from + static_cast<int64_t>(i)) {
            return false;
        }
    }
    return true;
}

// b is equal for all batches: the leading batch axes of a become free axes.
std::optional<Values> dot_with_repeated(Site& s) {
    Dot d = s.as<Dot>();
    const Node* p = s.producer(1, broadcast_def);
    if (p == nullptr || d.a_batch.empty() || !is_run(d.a_batch, 0) || !is_run(d.b_batch, 0)) {
        return std::nullopt;
    }
    const Dims& to = s.in_type(1).dims;
    const Dims from = s.g().type(p->inputs[0]).dims;
    size_t batch = d.b_batch.size();
    size_t shift = to.size() - from.size();
    for (size_t i = 0; i < to.size(); ++i) {
        bool repeated = i < shift || (from[i - shift].is_const(1) && !to[i].is_const(1));
        bool one = i >= shift && from[i - shift].is_const(1);
        if (i < batch ? !(repeated || one) : repeated) {
            return std::nullopt;
        }
    }
    // Keep a batch size that only b's repetition introduces.
    for (size_t i = 0; i < batch; ++i) {
        if (!(s.in_type(0).dims[i] == to[i])) {
            return std::nullopt;
        }
    }
    Value b =
        ops::reshape(s.g(), p->inputs[0], Dims(to.begin() + static_cast<int64_t>(batch), to.end()));
    for (int64_t& axis : d.b_contract) {
        axis -= static_cast<int64_t>(batch);
    }
    d.a_batch.clear();
    d.b_batch.clear();
    return Values{ops::dot(s.g(), d, s.in(0), b)};
}

// Leading axes that were flattened for the contraction are kept: the flattening moves to the
// result, where it may cancel.
std::optional<Values> dot_of_flattened(Site& s) {
    const Dot& d = s.as<Dot>();
    const Node* p = s.producer(0, reshape_def);
    const Dims& flat = s.in_type(0).dims;
    if (p == nullptr || !d.a_batch.empty() || flat.size() != 2 || d.a_contract != Axes{1}) {
        return std::nullopt;
    }
    Value x = p->inputs[0];
    const Dims from = s.g().type(x).dims;
    auto parts = refine(from, flat);
    if (!parts || parts->b[0] < 2) {
        return std::nullopt;
    }
    Dims dims(parts->atoms.begin(), parts->atoms.begin() + static_cast<int64_t>(parts->b[0]));
    Dot now = d;
    now.a_contract = {static_cast<int64_t>(dims.size())};
    dims.push_back(flat[1]);
    Value y = ops::dot(s.g(), now, ops::reshape(s.g(), x, dims), s.in(1));
    return Values{ops::reshape(s.g(), y, s.result().dims)};
}

// Weights whose columns have several axes (einsum of heads): one axis for the product, told apart
// behind it.
std::optional<Values> dot_with_flat_columns(Site& s) {
    Dot d = s.as<Dot>();
    const Dims b = s.in_type(1).dims;
    if (s.g().constant(s.in(1)) == nullptr || !d.a_batch.empty()) {
        return std::nullopt;
    }
    Axes columns;
    for (size_t i = 0; i < b.size(); ++i) {
        auto axis = static_cast<int64_t>(i);
        if (std::find(d.b_contract.begin(), d.b_contract.end(), axis) == d.b_contract.end()) {
            columns.push_back(axis);
        }
    }
    if (columns.size() < 2 || !is_run(columns, columns[0])) {
        return std::nullopt;
    }
    Dims flat;
    Dim merged = 1;
    for (size_t i = 0; i < b.size(); ++i) {
        bool column =
            std::find(columns.begin(), columns.end(), static_cast<int64_t>(i)) != columns.end();
        merged = column ? merged * b[i] : merged;
        if (!column || static_cast<int64_t>(i) == columns.back()) {
            flat.push_back(column ? merged : b[i]);
        }
    }
    auto fewer = static_cast<int64_t>(columns.size()) - 1;
    for (int64_t& axis : d.b_contract) {
        axis -= axis > columns[0] ? fewer : 0;
    }
    Value y = s.g().add1(dot_def, d, {s.in(), ops::reshape(s.g(), s.in(1), flat)});
    return Values{ops::reshape(s.g(), y, s.result().dims)};
}

} // namespace

Rules dot_rules() {
    static const RuleRow rows[] = {{&dot_def, dot_of_permute},
                                   {&dot_def, dot_with_repeated},
                                   {&dot_def, dot_of_flattened},
                                   {&dot_def, dot_with_flat_columns}};
    return rows;
}

} // namespace ingot::passes
