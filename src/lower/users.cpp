// SPDX-License-Identifier: Apache-2.0
#include "lower/users.h"

namespace ingot::plan {

Users users_of(const Graph& g) {
    Users users(g.value_count());
    for (const Node& n : g.nodes()) {
        for (Value v : n.inputs) {
            users[v.id].push_back(&n);
        }
    }
    return users;
}

} // namespace ingot::plan
