// SPDX-License-Identifier: Apache-2.0
// Family copy: ops that make or move elements without arithmetic: pad, iota, random, and concat and
// the views of packed types (others are placed by the planner); and products of packed types, which
// widen them first.
#include "kernels/copy/copy.h"

#include "base/error.h"
#include "kernels/copy/movement.h"
#include "kernels/copy/unpacked.h"
#include "ops/primitives.h"

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

std::optional<std::string> refuse_packed_dot(const Group& group) {
    const Graph& g = group.graph;
    bool packed = is_packed(g.type(group.outputs[0]).dtype);
    for (Value v : group.inputs) {
        packed = packed || is_packed(g.type(v).dtype);
    }
    return group.nodes.size() == 1 && packed
               ? std::nullopt
               : std::optional<std::string>("only single products of packed types are widened");
}

/// The family for products of elements that stand alone.
const Family& dot_family(const Group& group) {
    for (const FamilyTable* table : all_families()) {
        for (const Family& f : *table) {
            if (f.name == dot_def.name && !f.refuse(group)) {
                return f;
            }
        }
    }
    fail(ErrorCode::Internal, "no family takes a dot of widened elements");
}

std::vector<Tactic> dot_tactics(const Problem& p) {
    return {dot_family(p.group).tactics(p).back()};
}

Emitted emit_dot(const Problem& p, const Tactic& t) {
    return dot_family(p.group).emit(p, t);
}

const Family families[] = {
    {"pad", refuse_pad, plan::any_strides, one_tactic, emit_pad, true, false, false},
    {"iota", refuse_iota, nullptr, one_tactic, emit_iota, true, false, false},
    {"random", refuse_random, nullptr, one_tactic, emit_random, true, false, false},
    {"concat", refuse_concat, plan::any_strides, one_tactic, emit_concat, true, false, false},
    {"dot", refuse_packed_dot, nullptr, tactics_of_any<dot_tactics>, emit_any<emit_dot>, false,
     false, false},
    {"permute", refuse_packed_view, nullptr, one_tactic, emit_packed_view, false, false, false},
    {"broadcast", refuse_packed_view, nullptr, one_tactic, emit_packed_view, false, false, false},
    {"slice", refuse_packed_view, nullptr, one_tactic, emit_packed_view, false, false, false},
    {"window", refuse_packed_view, nullptr, one_tactic, emit_packed_view, false, false, false},
};

} // namespace

extern const FamilyTable copy_families;
const FamilyTable copy_families = families;

} // namespace ingot::kernels
