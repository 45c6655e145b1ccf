// SPDX-License-Identifier: Apache-2.0
// Family scan_sort: scan, sort and topk; dynamic.h has the steps with data-dependent result sizes.
#include "kernels/copy/unpacked.h"
#include "kernels/scan_sort/scan.h"
#include "kernels/scan_sort/sort.h"

namespace ingot::kernels {

namespace {

std::optional<std::string> refuse(const Group& group) {
    return group.nodes.size() == 1 ? std::nullopt : std::optional<std::string>("not a single node");
}

template <TacticsOf Tactics, EmitOf Emit>
Family family(std::string_view name) {
    Family f{};
    f.name = name;
    f.refuse = refuse;
    f.layout = plan::any_strides;
    f.tactics = tactics_of_any<Tactics>;
    f.emit = emit_any<Emit>;
    f.strided_results = true;
    return f;
}

const Family rows[] = {family<scan_tactics, emit_scan>("scan"),
                       family<sort_tactics, emit_sort>("sort"),
                       family<sort_tactics, emit_sort>("topk")};

} // namespace

extern const FamilyTable scan_sort_families;
const FamilyTable scan_sort_families = rows;

} // namespace ingot::kernels
