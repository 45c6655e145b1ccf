// SPDX-License-Identifier: Apache-2.0
// Family pointwise: maps. One kernel text per expression, dtypes, number of merged axes and vector
// width; reads and writes every element once.
#include "kernels/pointwise/map_job.h"
#include "ops/primitives.h"

namespace ingot::kernels {

namespace {

constexpr size_t most_inputs = 64; // their pointers and strides are kernel parameters

std::optional<std::string> refuse_map(const Group& group) {
    if (group.nodes.size() != 1 || !group.first().is(map_def)) {
        return "not a single map";
    }
    if (group.first().inputs.size() > most_inputs) {
        return str("a map of ", group.first().inputs.size(), " inputs, at most ", most_inputs);
    }
    return std::nullopt;
}

/// The result follows the first dense input of its shape, else the first one with any memory order,
/// so that most accesses are contiguous.
void map_layout(LayoutArgs& args) {
    for (auto find : {plan::dense_order, plan::memory_order}) {
        for (size_t k = 0; k < args.in.size(); ++k) {
            if (args.in[k].shape == args.out[0]) {
                if (auto order = find(args.in[k])) {
                    args.order[0] = *order;
                    return;
                }
            }
        }
    }
}

double bytes_of(const Problem& p) {
    double bytes = 0;
    for (const Operand& o : p.in) {
        bytes += static_cast<double>(byte_size(o.dtype, o.view.count()));
    }
    return bytes + static_cast<double>(byte_size(p.out[0].dtype, p.out[0].view.count()));
}

struct MapLaunch : NoParameters {
    static constexpr std::string_view pattern = "map";
};

std::vector<Tactic> map_tactics(const Problem& p) {
    return {make_tactic(MapLaunch{}, 1.5 + bytes_of(p) / (p.arch.dram_gbs * 1e3))};
}

Emitted emit(const Problem& p, const Tactic&) {
    const Node& node = p.group.first();
    std::vector<Operand> in;
    for (Value v : node.inputs) {
        in.push_back(p.operand(v));
    }
    return emit_map({node.as<Map>().body, in, p.out[0], "pointwise"});
}

const Family families[] = {{.name = "map",
                            .refuse = refuse_map,
                            .layout = map_layout,
                            .tactics = map_tactics,
                            .emit = emit,
                            .strided_results = true,
                            .in_place = true}};

} // namespace

extern const FamilyTable pointwise_families;
const FamilyTable pointwise_families = families;

} // namespace ingot::kernels
