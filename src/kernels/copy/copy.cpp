// SPDX-License-Identifier: Apache-2.0
// Family copy: ops that make or move elements without arithmetic: pad, iota, random, and concat and
// views of packed types (the planner places those of other types); and products of packed types,
// which it widens first.
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

struct Generic : NoParameters {
    static constexpr std::string_view pattern = "generic";
};

std::vector<Tactic> one_tactic(const Problem& p) {
    return {make_tactic(Generic{}, 1.5 + bytes_of(p) / (p.arch.dram_gbs * 1e3))};
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

/// The family for products of unpacked elements.
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
    Problem any = p;
    any.batch_invariant = false; // the last one is batch invariant anyway
    return {dot_family(p.group).tactics(any).back()};
}

Emitted emit_dot(const Problem& p, const Tactic& t) {
    return dot_family(p.group).emit(p, t);
}

/// The result lies as the padded operand does.
void layout_pad(LayoutArgs& args) {
    auto x = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    if (auto order = plan::memory_order(args.in[x])) {
        args.order[0] = *order;
    }
}

const Family families[] = {{.name = "pad",
                            .refuse = refuse_pad,
                            .layout = layout_pad,
                            .tactics = one_tactic,
                            .emit = emit_pad,
                            .strided_results = true},
                           {.name = "iota",
                            .refuse = refuse_iota,
                            .tactics = one_tactic,
                            .emit = emit_iota,
                            .strided_results = true},
                           {.name = "random",
                            .refuse = refuse_random,
                            .tactics = one_tactic,
                            .emit = emit_random,
                            .strided_results = true},
                           {.name = "concat",
                            .refuse = refuse_concat,
                            .layout = plan::any_strides,
                            .tactics = one_tactic,
                            .emit = emit_concat,
                            .strided_results = true},
                           {.name = "dot",
                            .refuse = refuse_packed_dot,
                            .tactics = tactics_of_any<dot_tactics>,
                            .emit = emit_any<emit_dot>},
                           {.name = "permute",
                            .refuse = refuse_packed_view,
                            .tactics = one_tactic,
                            .emit = emit_packed_view},
                           {.name = "broadcast",
                            .refuse = refuse_packed_view,
                            .tactics = one_tactic,
                            .emit = emit_packed_view},
                           {.name = "slice",
                            .refuse = refuse_packed_view,
                            .tactics = one_tactic,
                            .emit = emit_packed_view},
                           {.name = "window",
                            .refuse = refuse_packed_view,
                            .tactics = one_tactic,
                            .emit = emit_packed_view}};

} // namespace

extern const FamilyTable copy_families;
const FamilyTable copy_families = families;

} // namespace ingot::kernels
