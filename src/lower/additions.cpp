// SPDX-License-Identifier: Apache-2.0
#include "lower/additions.h"

#include "ops/primitives.h"

namespace ingot::plan {

bool is_addition(const Node& n) {
    if (!n.is(map_def) || n.inputs.size() != 2) {
        return false;
    }
    const auto& code = n.as<Map>().body.code;
    auto reads = [&code](size_t i) {
        return code[i].op == ExprOp::In && code[i].type == DType::F32;
    };
    return code.size() == 3 && reads(0) && reads(1) && code[0].args[0] != code[1].args[0] &&
           code[2].op == ExprOp::Add && code[2].args[0] != code[2].args[1];
}

} // namespace ingot::plan
