// SPDX-License-Identifier: Apache-2.0
// split_depth: a product of few results and a long depth (of channels with channels, along all
// pixels) becomes products of parts of the depth, side by side, and their sum. The kernels split a
// depth by at most 8, so that most of the device had nothing to do: 45 us for 40 x 40 results of
// 65,536 on an H200.
#include "base/integers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr int64_t longest = 2048; // that stays whole
constexpr int64_t least_part = 256;
constexpr int64_t tile = 64; // of rows and columns
/// Products of fewer rows or columns read one operand once, by blocks that share its rows.
constexpr int64_t least_extent = 16;

bool is_batch(const std::vector<int64_t>& batch, size_t axis) {
    return std::find(batch.begin(), batch.end(), static_cast<int64_t>(axis)) != batch.end();
}

/// Tiles of the result of one depth; nullopt for open sizes.
std::optional<int64_t> tiles_of(const Graph& g, const Node& n) {
    const auto& d = n.as<Dot>();
    auto count = [&](Value v, const std::vector<int64_t>& batch, int64_t depth, bool batches) {
        std::optional<int64_t> all = 1;
        const Dims& dims = g.type(v).dims;
        for (size_t i = 0; i < dims.size(); ++i) {
            if (is_batch(batch, i) == batches && static_cast<int64_t>(i) != depth) {
                all = all && dims[i].is_const() ? std::optional(*all * dims[i].value())
                                                : std::nullopt;
            }
        }
        return all;
    };
    std::optional<int64_t> batches = count(n.inputs[0], d.a_batch, d.a_contract[0], true);
    std::optional<int64_t> rows = count(n.inputs[0], d.a_batch, d.a_contract[0], false);
    std::optional<int64_t> columns = count(n.inputs[1], d.b_batch, d.b_contract[0], false);
    bool thin = std::min(rows.value_or(0), columns.value_or(0)) < least_extent;
    return batches && rows && columns && !thin
               ? std::optional(*batches * div_up(*rows, tile) * div_up(*columns, tile))
               : std::nullopt;
}

/// Parts of the depth; 1: it stays whole.
int64_t parts_of(const Graph& g, const Node& n, int64_t most) {
    const auto& d = n.as<Dot>();
    DType t = g.type(n.inputs[0]).dtype;
    if (d.a_contract.size() != 1 || (!is_half(t) && t != DType::F32) ||
        g.type(n.inputs[1]).dtype != t || !is_float(d.dtype)) {
        return 1;
    }
    const Dim& depth = g.type(n.inputs[0]).dims[static_cast<size_t>(d.a_contract[0])];
    std::optional<int64_t> tiles = tiles_of(g, n);
    if (!tiles || depth.as_const().value_or(0) <= longest) {
        return 1;
    }
    int64_t parts = 1;
    while (2 * parts * std::max<int64_t>(*tiles, 1) <= most && depth.value() % (2 * parts) == 0 &&
           depth.value() / (2 * parts) >= least_part) {
        parts *= 2;
    }
    constexpr int64_t of_kernels = 8;
    return parts > of_kernels ? parts : 1;
}

/// The operand with its depth in parts, an axis before what remains of it.
Value in_parts(Graph& g, Value v, int64_t depth, int64_t parts) {
    Dims dims = g.type(v).dims;
    auto at = static_cast<size_t>(depth);
    dims[at] = dims[at].value() / parts;
    dims.insert(dims.begin() + depth, Dim(parts));
    return ops::reshape(g, v, dims);
}

Values split(Graph& g, const Node& n, std::span<const Value> in, int64_t parts) {
    auto d = n.as<Dot>();
    DType type = d.dtype;
    auto behind = [](std::vector<int64_t>& batch, int64_t depth) {
        for (int64_t& axis : batch) {
            axis += axis > depth ? 1 : 0;
        }
        batch.push_back(depth);
    };
    Value a = in_parts(g, in[0], d.a_contract[0], parts);
    Value b = in_parts(g, in[1], d.b_contract[0], parts);
    behind(d.a_batch, d.a_contract[0]);
    behind(d.b_batch, d.b_contract[0]);
    ++d.a_contract[0];
    ++d.b_contract[0];
    d.dtype = DType::F32;
    auto axis = static_cast<int64_t>(d.a_batch.size()) - 1;
    return {ops::cast(g, ops::reduce_sum(g, ops::dot(g, d, a, b), {axis}), type)};
}

} // namespace

Pass split_depth(const KernelSet&) {
    return {
        .name = "split_depth",
        .summary = "products of few results and a long depth become sums of products of its parts",
        .run =
            [](const Graph& g, const PassOptions& o) {
                return rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                    int64_t parts = n.is(dot_def) ? parts_of(g, n, o.depth_parts) : 1;
                    return parts > 1 ? std::optional(split(r.out(), n, in, parts)) : std::nullopt;
                });
            },
    };
}

} // namespace ingot::plan
