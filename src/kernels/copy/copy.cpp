// SPDX-License-Identifier: Apache-2.0
// Family copy: ops that make or move elements without arithmetic: pad, iota, random, and concat of
// packed types (others are placed by the planner).
#include "kernels/copy/copy.h"

#include "kernels/copy/movement.h"

namespace ingot::kernels {

namespace {

double bytes_of(const Problem& p) {
    double bytes = 0;
    for (const Operand& o : p.in) {
        bytes += static_cast<double>(byte_size(o.dtype, o.view.count()));
    }
    return bytes + static_cast<double>(byte_size(p.out[0].dtype, p.out[0].view.count()));
}

std::vector<Tactic> one_tactic(const Problem& p) {
    Tactic t;
    t.name = "generic";
    t.cost_us = 1.5 + bytes_of(p) / (p.arch.dram_gbs * 1e3);
    return {t};
}

const Family families[] = {
    {"pad", refuse_pad, plan::any_strides, one_tactic, emit_pad, true, false, false},
    {"iota", refuse_iota, nullptr, one_tactic, emit_iota, true, false, false},
    {"random", refuse_random, nullptr, one_tactic, emit_random, true, false, false},
    {"concat", refuse_concat, plan::any_strides, one_tactic, emit_concat, true, false, false},
};

} // namespace

extern const FamilyTable copy_families;
const FamilyTable copy_families = families;

} // namespace ingot::kernels
