// SPDX-License-Identifier: Apache-2.0
#include "ops/op_table.h"

#include "base/error.h"

#include <unordered_map>

namespace ingot {

const OpDef* find_op(std::string_view name) {
    static const std::unordered_map<std::string_view, const OpDef*> by_name = [] {
        std::unordered_map<std::string_view, const OpDef*> m;
        for (const OpTable* table : all_ops()) {
            for (const OpDef* d : *table) {
                CHECK(m.emplace(d->name, d).second, "two ops are named '", d->name, "'");
            }
        }
        return m;
    }();
    auto it = by_name.find(name);
    return it == by_name.end() ? nullptr : it->second;
}

} // namespace ingot
