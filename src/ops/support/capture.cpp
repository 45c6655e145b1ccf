// SPDX-License-Identifier: Apache-2.0
#include "ops/support/capture.h"

#include "ops/primitives.h"

namespace ingot::ops {

Captured capture(Graph& body, const Graph& outer, Value v, const std::string& name) {
    const Node* p = outer.producer(v);
    if (p != nullptr && (p->is(constant_def) || p->is(dims_to_tensor_def))) {
        Value again = body.add(*p->def, p->attrs, {})[0];
        body.set_value_name(again, outer.value_name(v));
        return {again, false};
    }
    Value input = body.add_input(name, outer.type(v));
    body.set_host(input, outer.host(v));
    return {input, true};
}

} // namespace ingot::ops
