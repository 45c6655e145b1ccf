// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "ir/expr.h"

namespace ingot {

uint64_t hash_of(const Expr& e) {
    uint64_t h = e.code.size();
    for (const ExprInstr& c : e.code) {
        h = mix(h, static_cast<uint64_t>(c.op) | static_cast<uint64_t>(c.type) << 8 |
                       static_cast<uint64_t>(c.to) << 16 |
                       static_cast<uint64_t>(static_cast<uint32_t>(c.args[0])) << 32);
        h = mix(h, static_cast<uint64_t>(static_cast<uint32_t>(c.args[1])) |
                       static_cast<uint64_t>(static_cast<uint32_t>(c.args[2])) << 32);
        h = mix(h, static_cast<uint64_t>(c.imm));
    }
    return h;
}

} // namespace ingot
