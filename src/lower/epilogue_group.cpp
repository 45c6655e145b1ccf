// SPDX-License-Identifier: Apache-2.0
#include "lower/epilogue_group.h"

#include "lower/canonical.h"
#include "lower/group_inputs.h"
#include "ops/primitives.h"

namespace ingot::plan {

GraphRef epilogue_group(const Graph& g, const Node& producer, const Node& map,
                        std::span<const Value> map_in, size_t leading, Values& inputs) {
    const auto& attrs = map.as<Map>();
    CanonicalExpr c =
        canonical(attrs.body, static_cast<int>(map_in.size()), static_cast<int>(leading));
    Value result = map_in[leading];
    Graph body = g.sibling("group");
    GroupInputs group(body, g);
    Values in;
    for (Value v : producer.inputs) {
        in.push_back(group.of(v));
    }
    body.set_origin(producer.name);
    Values results = body.add(*producer.def, producer.attrs, in);
    in.clear();
    for (int i : c.inputs) {
        Value v = map_in[static_cast<size_t>(i)];
        in.push_back(v == result ? results[0] : group.of(v));
    }
    body.set_origin(map.name);
    body.add_output("", body.add1(map_def, Map{c.body, attrs.dtype}, in));
    inputs = group.values();
    return std::make_shared<const Graph>(std::move(body));
}

} // namespace ingot::plan
