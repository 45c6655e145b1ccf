// SPDX-License-Identifier: Apache-2.0
#include "lower/map_builder.h"

#include <algorithm>

namespace ingot::plan {

int MapBuilder::input(Value v) {
    auto it = std::find(inputs.begin(), inputs.end(), v);
    auto index = static_cast<int>(it - inputs.begin());
    if (it == inputs.end()) {
        inputs.push_back(v);
    }
    return body.in(index, g.type(v).dtype);
}

int MapBuilder::inline_map(const Map& map, std::span<const int> operands) {
    int result = body.inline_expr(map.body, operands);
    DType stored = map.dtype;
    bool computed = map.body.code.size() > 1;
    bool keeps = compute_type(stored) == stored ||
                 (computed && (stored == DType::F16 || stored == DType::BF16));
    return keeps ? result : body.cast(result, stored);
}

int MapBuilder::inline_map(const Node& map) {
    std::vector<int> at;
    for (Value v : map.inputs) {
        at.push_back(input(v));
    }
    return inline_map(map.as<Map>(), at);
}

} // namespace ingot::plan
