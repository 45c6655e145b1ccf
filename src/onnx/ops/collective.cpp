// SPDX-License-Identifier: Apache-2.0
// AllReduce, AllGather, AllToAll of com.microsoft: the same model on each of `group_size` ranks.
#include "ops/collective.h"

#include "base/error.h"
#include "onnx/importer.h"

namespace ingot::onnx {

namespace {

Values exchanged(NodeContext& c, std::string_view operation, std::string_view reduction, Value x) {
    int64_t ranks = c.i("group_size", 1);
    c.ensure(ranks >= 1, "group_size is ", ranks, ", expected 1 or more");
    Collective op{std::string(operation), std::string(reduction), ranks, {}, -1};
    return {ops::collective(c.g, std::move(op), x)};
}

Values all_reduce(NodeContext& c) {
    return exchanged(c, "all_reduce", "sum", c.in(0));
}

Values all_to_all(NodeContext& c) {
    return exchanged(c, "all_to_all", "", c.in(0));
}

// all_gather joins along axis 0, so the requested axis is moved to the front and back.
Values all_gather(NodeContext& c) {
    int64_t axis = normalize_axis(c.i("axis", 0), c.rank(0));
    if (axis == 0) {
        return exchanged(c, "all_gather", "", c.in(0));
    }
    std::vector<int64_t> first = {axis};
    std::vector<int64_t> back;
    for (int64_t i = 0; i < c.rank(0); ++i) {
        if (i != axis) {
            first.push_back(i);
        }
        back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
    }
    Values all = exchanged(c, "all_gather", "", ops::permute(c.g, c.in(0), first));
    return {ops::permute(c.g, all[0], back)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "AllReduce", 1, all_reduce, no_shapes},
    {"com.microsoft", "AllGather", 1, all_gather, no_shapes},
    {"com.microsoft", "AllToAll", 1, all_to_all, no_shapes},
};

} // namespace

extern const ImporterTable collective_importers;
const ImporterTable collective_importers = rows;

} // namespace ingot::onnx
